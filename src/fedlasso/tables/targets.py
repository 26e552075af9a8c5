"""The columns that are no predictors: what is to be explained, and how much each row counts."""

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
    """What is to be explained, by the names of its columns.

    Attributes
    ----------
    target : the response; of survival times, how long each lasted
    family : what kind of response it is
    event : whether a survival time ended in an event (1) or was censored (0)
    offset : what is added to every row's linear predictor
    weights : how much every row counts
    classes : the two texts of a target that is not 0 or 1; the second one counts as 1
    """

    target: str
    _: KW_ONLY
    family: str = DEFAULT
    event: str | None = None
    offset: str | None = None
    weights: str | None = None
    classes: tuple[str, ...] = ()

    @property
    def response_family(self) -> Family:
        """The family as an object."""
        return find_family(self.family)

    @property
    def roles(self) -> dict[str, str]:
        """What each of its columns is for, in words, and the column's name."""
        told = {
            self.response_family.roles[0]: self.target,
            "event": self.event,
            "offset": self.offset,
            "weights": self.weights,
        }
        return {role: name for role, name in told.items() if name is not None}

    @property
    def names(self) -> tuple[str, ...]:
        """Its columns, none of which is a predictor."""
        return tuple(self.roles.values())


@dataclass(frozen=True, eq=False)
class Responses:
    """What the rows of a table answer: y, and weights and offsets where there are any.

    A survival time that was censored has a minus sign.
    """

    y: Array
    weights: Array | None = None
    offset: Array | None = None

    def take(self, rows: Any) -> Responses:
        """Return some rows."""
        weights = None if self.weights is None else self.weights[rows]
        offset = None if self.offset is None else self.offset[rows]
        return Responses(self.y[rows], weights, offset)


def find_classes(outcome: Outcome, files: Sequence[File]) -> tuple[str, ...]:
    """Return the two texts that a target holds in all files, sorted; more or fewer are refused."""
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
        f"({some}), and --family {outcome.family} takes two; group them, or code the "
        "target as 0 and 1"
    )


def check_responses(site: str, outcome: Outcome, columns: Mapping[str, Array]) -> Responses:
    """Return the responses of one site by its columns as numbers; what does not fit is refused.

    What is said names the site and the column, and no value.
    """
    for role, problem, what in _find_problems(outcome, columns):
        rows = int(problem.sum())
        if rows:
            name = outcome.roles[role]
            words = f"the {role}{' column' if role != 'target' else ''} {name!r}"
            raise FedLassoError(f"site {site!r}: {words} {what.format(rows=count_rows(rows))}")
    family = outcome.response_family
    y = family.encode({role: columns[outcome.roles[role]] for role in family.roles})
    weights = None if outcome.weights is None else columns[outcome.weights]
    offset = None if outcome.offset is None else columns[outcome.offset]
    return Responses(y, weights, offset)


def count_rows(count: int) -> str:
    """Return a number of rows in words."""
    return f"{count} row{'s' * (count > 1)}"


def _find_problems(
    outcome: Outcome, columns: Mapping[str, Array]
) -> Iterator[tuple[str, Any, str]]:
    """Yield a role, the rows that do not fit it, and what to say and do about them."""
    family = outcome.response_family
    for role, name in outcome.roles.items():
        numbers = columns[name]
        yield role, np.isnan(numbers), "is missing in {rows}; remove those rows"
        yield role, np.isinf(numbers), "is infinite in {rows}; correct or remove those rows"
        if role in family.roles:
            for problem, what in family.find_problems(role, numbers):
                yield role, problem, what
        if role == "weights":
            what = "is not above zero in {rows}; give positive weights, or remove those rows"
            yield role, numbers <= 0, what
