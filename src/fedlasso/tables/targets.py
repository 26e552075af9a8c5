"""The outcome: the response, and the columns of offsets, weights and clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.families import DEFAULT, Family, find_family
from fedlasso.numerics import Array
from fedlasso.tables.files import File


@dataclass(frozen=True)
class Outcome:
    """Names of the columns that are not predictors.

    Attributes
    ----------
    target : the response, or the survival time
    family : name of the response family
    event : whether a survival time ended in an event (1) or was censored (0)
    offset : added to the linear predictor
    weights : row weights
    cluster : what rows that may depend on each other have in common, such as the patient
    classes : the two texts of a target that is not 0 or 1; the second one is 1
    """

    target: str
    _: KW_ONLY
    family: str = DEFAULT
    event: str | None = None
    offset: str | None = None
    weights: str | None = None
    cluster: str | None = None
    classes: tuple[str, ...] = ()

    @property
    def response_family(self) -> Family:
        return find_family(self.family)

    @property
    def roles(self) -> dict[str, str]:
        """Names of the columns by role."""
        columns = {
            self.response_family.roles[0]: self.target,
            "event": self.event,
            "offset": self.offset,
            "weights": self.weights,
            "cluster": self.cluster,
        }
        return {role: name for role, name in columns.items() if name is not None}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.roles.values())


@dataclass(frozen=True, eq=False)
class Responses:
    """Responses of a table's rows, negative for censored times, with weights and offsets.

    `clusters` are labels of rows that may depend on each other.
    """

    y: Array
    weights: Array | None = None
    offset: Array | None = None
    clusters: Any = None

    def take(self, rows: Any) -> Responses:
        others = (self.weights, self.offset, self.clusters)
        return Responses(self.y[rows], *(None if own is None else own[rows] for own in others))


def find_classes(outcome: Outcome, files: Sequence[File]) -> tuple[str, ...]:
    """Return the two texts of a target over all files, sorted; refuse more or fewer."""
    name = outcome.target
    found: set[str] = set()
    for file in files:
        ((_, values),) = file.columns([name])
        found |= {str(value) for value in values.drop_null().unique().to_pylist()}
    if len(found) == 2:
        return tuple(sorted(found))
    some = ", ".join(map(repr, sorted(found)[:4])) + (", ..." if len(found) > 4 else "")
    raise FedLassoError(
        f"{files[0].path}: the target {name!r} holds {len(found)} different texts in all files "
        f"({some}), but --family {outcome.family} needs two; group them, or code it as 0 and 1"
    )


def check_responses(site: str, outcome: Outcome, columns: Mapping[str, Array]) -> Responses:
    """Return the responses of one site; messages name site, column and count, but no value."""
    for role, problem, what in _find_problems(outcome, columns):
        if rows := int(problem.sum()):
            name = outcome.roles[role]
            column = f"the {role}{' column' if role != 'target' else ''} {name!r}"
            raise FedLassoError(f"site {site!r}: {column} {what.format(rows=count_rows(rows))}")
    family = outcome.response_family
    y = family.encode({role: columns[outcome.roles[role]] for role in family.roles})
    weights = None if outcome.weights is None else columns[outcome.weights]
    offset = None if outcome.offset is None else columns[outcome.offset]
    clusters = None if outcome.cluster is None else columns[outcome.cluster]
    return Responses(y, weights, offset, clusters)


def count_rows(count: int) -> str:
    return f"{count} row{'s' * (count > 1)}"


def _find_problems(
    outcome: Outcome, columns: Mapping[str, Array]
) -> Iterator[tuple[str, Any, str]]:
    """Yield a role, a mask of its invalid rows, and what is wrong with {rows} of them."""
    family = outcome.response_family
    for role, name in outcome.roles.items():
        numbers = columns[name]
        yield role, np.isnan(numbers), "is missing in {rows}; remove those rows"
        yield role, np.isinf(numbers), "is infinite in {rows}; correct or remove those rows"
        if role in family.roles:
            for problem, what in family.find_problems(role, numbers):
                yield role, problem, what
        if role == "weights":
            what = "is not positive in {rows}; give positive weights, or remove those rows"
            yield role, numbers <= 0, what
