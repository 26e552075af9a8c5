"""Procedures by their names in the literature. A new procedure is one file and one line here."""

import difflib
from typing import Any

from fedlasso.errors import FedLassoError
from fedlasso.procedures.averaging import Averaging as Averaging
from fedlasso.procedures.averaging import ThresholdedAverage, ThresholdedRounds
from fedlasso.procedures.csl import CSL, DANE
from fedlasso.procedures.dual_averaging import CFedDA, DualAveraging, FastFedDA
from fedlasso.procedures.fista import FISTA
from fedlasso.procedures.local_gradient import FedMid, ProxSkip
from fedlasso.procedures.newton import Newton as Newton
from fedlasso.procedures.one_shot import Debiased, OneShot, OneShotGram
from fedlasso.procedures.procedure import Average as Average
from fedlasso.procedures.procedure import Coefficients as Coefficients
from fedlasso.procedures.procedure import Problem as Problem
from fedlasso.procedures.procedure import Procedure as Procedure
from fedlasso.procedures.procedure import State as State
from fedlasso.procedures.secant import Secant as Secant
from fedlasso.procedures.splitting import ADMM, FedDR
from fedlasso.procedures.voting import Voting
from fedlasso.procedures.working_set_gram import WorkingSetGram
from fedlasso.procedures.working_set_secant import WorkingSetSecant

_PROCEDURES: tuple[type[Procedure[Any]], ...] = (
    Averaging, ThresholdedAverage, ThresholdedRounds, DualAveraging, Secant, WorkingSetSecant,
    Newton, FedMid, FastFedDA, CFedDA, CSL, DANE, Debiased, ADMM, FedDR, FISTA, ProxSkip, OneShot,
    OneShotGram, WorkingSetGram, Voting,
)  # fmt: skip
REGISTRY = {procedure.name: procedure for procedure in _PROCEDURES}


def find_procedure(name: str) -> type[Procedure[Any]]:
    """Return the procedure of that name, in any case.

    Examples
    --------
    >>> from fedlasso import find_procedure
    >>> find_procedure("secant").name
    'Secant'
    """
    by_name = {known.lower(): known for known in REGISTRY}
    if name.lower() in by_name:
        return REGISTRY[by_name[name.lower()]]
    near = difflib.get_close_matches(name.lower(), by_name, n=1, cutoff=0.3)
    hint = f"did you mean {by_name[near[0]]!r}?" if near else f"known: {', '.join(REGISTRY)}"
    raise FedLassoError(f"no procedure is called {name!r}; {hint}")
