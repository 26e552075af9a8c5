"""The outcome: the response, and the columns of offsets, weights and clusters."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError, QuotesRecords
from fedlasso.families import DEFAULT, FAMILIES, Family, find_family
from fedlasso.federation.ledger import Notify
from fedlasso.numerics import Array
from fedlasso.tables.files import File
from fedlasso.tables.values import to_float

# Texts of an event, and of none, in lower case.
EVENTS = (
    *("yes", "y", "true", "t", "1", "case", "cases", "positive", "pos", "+", "event"),
    *("dead", "died", "death", "deceased", "disease", "diseased", "ill", "sick", "malignant"),
    *("present", "abnormal", "relapse", "recurrence", "failure", "ja", "oui", "si"),
)
NO_EVENTS = (
    *("no", "n", "false", "f", "0", "control", "controls", "negative", "neg", "-", "none"),
    *("never", "censored", "alive", "survived", "survivor", "healthy", "benign", "absent"),
    *("normal", "nein", "non"),
)
OF_CLASSES = next(name for name, family in FAMILIES.items() if family.takes_classes)
TWO_CLASSES = f"if it has two classes, use --family {OF_CLASSES}"


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


def find_classes(
    outcome: Outcome, files: Sequence[File], positive: str | None, notify: Notify
) -> Outcome:
    """Return the outcome with the two texts of its target over all files; the second is 1."""
    found: set[str] = set()
    for file in files:
        ((_, values),) = file.columns([outcome.target])
        found |= set(values.counts())
    outcome = replace(outcome, classes=order_classes(outcome, found, positive))
    notify(class_notice(outcome, positive))
    return outcome


def order_classes(
    outcome: Outcome, found: Collection[str], positive: str | None
) -> tuple[str, ...]:
    """Return the two texts of a target, that of an event last; refuse more or fewer.

    By default an event is what its text says it is: yes, case, dead, the opposite of no, control,
    alive; else the larger of two numbers, and the last of two texts in alphabetical order.
    """
    numbers = [to_float(text) for text in sorted(found)]
    texts = sorted(found) if None in numbers else sorted(found, key=float)
    some = ", ".join(map(repr, texts[:4])) + (", ..." if len(texts) > 4 else "")
    if len(texts) != 2:
        raise FedLassoError(
            f"the target {outcome.target!r} holds {len(texts)} different texts in all files "
            f"({some}), but --family {outcome.family} needs two; group them, or code it as 0 and 1"
        )
    if positive is not None and positive not in texts:
        raise FedLassoError(
            f"the target {outcome.target!r} never is {positive!r}; use --positive with one of "
            f"its texts: {some}"
        )
    if positive is None and None not in numbers:
        positive = texts[1]
    if positive is None:
        events = [text for text in texts if text.strip().lower() in EVENTS]
        others = [text for text in texts if text.strip().lower() not in NO_EVENTS]
        positive = next((own[0] for own in (events, others) if len(own) == 1), texts[1])
    return (next(text for text in texts if text != positive), positive)


def class_notice(outcome: Outcome, positive: str | None) -> str:
    """Return the notice which text of a target is 1."""
    zero, one = outcome.classes
    text = f"notice: in the target {outcome.target!r}, {one!r} is 1 and {zero!r} is 0"
    return text if positive is not None else f"{text}; --positive chooses the other one"


def check_responses(site: str, outcome: Outcome, columns: Mapping[str, Array]) -> Responses:
    """Return the responses of one site; messages name site, column and count, but no value."""
    for role, problem, what in _find_problems(outcome, columns):
        if rows := int(problem.sum()):
            name = outcome.roles[role]
            column = f"the {role}{' column' if role != 'target' else ''} {name!r}"
            texts = (what.format(rows=many) for many in (count_rows(rows), "some rows"))
            raise QuotesRecords(*(f"site {site!r}: {column} {text}" for text in texts))
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
