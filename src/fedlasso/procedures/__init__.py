"""Procedures by the names the literature gives them. A new one is one file and one line here."""

import difflib
from typing import Any

from fedlasso.errors import FedLassoError
from fedlasso.procedures.averaging import Averaging
from fedlasso.procedures.certificate import Certificate
from fedlasso.procedures.dual_averaging import DualAveraging
from fedlasso.procedures.procedure import Problem, Procedure, State
from fedlasso.procedures.secant import Knowledge, Secant
from fedlasso.procedures.thresholded import ThresholdedAverage, ThresholdedRounds

REGISTRY: dict[str, type[Procedure[Any]]] = {
    "CD": Averaging,
    "ST": ThresholdedAverage,
    "P": ThresholdedRounds,
    "DA": DualAveraging,
    "Secant": Secant,
}


def find_procedure(name: str) -> type[Procedure[Any]]:
    """The procedure of that name, in any case."""
    by_name = {known.lower(): known for known in REGISTRY}
    if name.lower() in by_name:
        return REGISTRY[by_name[name.lower()]]
    near = difflib.get_close_matches(name.lower(), by_name, n=1, cutoff=0.3)
    hint = f"did you mean {by_name[near[0]]!r}?" if near else f"known: {', '.join(REGISTRY)}"
    raise FedLassoError(f"no procedure is called {name!r}; {hint}")


__all__ = [
    "REGISTRY",
    "Averaging",
    "Certificate",
    "DualAveraging",
    "Knowledge",
    "Problem",
    "Procedure",
    "Secant",
    "State",
    "ThresholdedAverage",
    "ThresholdedRounds",
    "find_procedure",
]
