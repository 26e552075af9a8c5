"""The controls of the page, form by form: what a reader chooses."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from fedlasso.report.glossary import axis_texts
from fedlasso.report.records import Results
from fedlasso.study.record_columns import COLUMNS, CostField, axes, title

# The outcome that is shown first, if a study has it.
FIRST_OUTCOMES = ("fdp", "f1", "test_mse", "test_deviance")


@dataclass(frozen=True)
class Control:
    """A list of options, as value and label, of which one is chosen."""

    name: str
    label: str
    options: Sequence[tuple[str, str]]
    chosen: str = ""
    tip: str = ""


@dataclass(frozen=True)
class Pair:
    """Two values of an axis, by their places, that cells can be compared along."""

    name: str
    first: int
    second: int
    value: str
    label: str


def find_pairs(results: Results) -> list[Pair]:
    """Pairs of values of one axis, later minus earlier; the paper's contrast comes first."""
    pairs = []
    for axis in results.axes:
        values = results.values(axis)
        for (i, first), (j, second) in combinations(enumerate(values), 2):
            # A method without epochs has 0 of them.
            if axis != "scenario" and (axis != "epochs" or first):
                label = f"{title(axis, second)} minus {title(axis, first)}"
                value = f"{axis}~{_text(first)}~{_text(second)}"
                pairs.append(Pair(axis, i, j, value, label))
    epochs = [number for number in results.values("epochs") if number]
    paper = f"epochs~{epochs[0]}~{epochs[-1]}" if epochs else ""
    return sorted(pairs, key=lambda pair: pair.value != paper)


def make_controls(results: Results, data: dict[str, Any]) -> dict[str, list[Control]]:
    """The controls of every form of the page, whose data these are."""
    side = [axis for axis in results.axes if not axes()[axis].control]
    start = {"scenario": results.first_scenario, **results.primary}
    metrics = [(name, COLUMNS[name].label) for name in results.metrics]
    outcome = next((name for name in FIRST_OUTCOMES if name in results.metrics), "")
    kind = "data set" if results.on_real_data else "scenario"
    costs = [COLUMNS[column["name"]] for column in data["columns"]]
    bills = dict.fromkeys(cost.bill for cost in costs if isinstance(cost, CostField) and cost.bill)
    first = dict(zip(results.axes, data["cells"][0], strict=False))
    lines = [("best", "each method at its best E"), ("all", "every E")]
    pairs = [(pair.value, pair.label) for pair in find_pairs(results)]
    return {
        "main": [
            *(_axis(results, axis, start.get(axis)) for axis in results.axes if axis not in side),
            Control("metric", "Outcome", metrics, outcome),
        ],
        "uploads": [Control("epochs_shown", "Lines", lines)],
        "contrast": [
            Control("pair", "Difference", pairs),
            Control("scope", "In", [("one", f"the chosen {kind}"), ("all", f"all {kind}s")]),
        ],
        "ledger": [Control("cost", "Cost", [(bill, bill) for bill in bills])],
        "rows": [
            *(_axis(results, axis, results.values(axis)[first[axis]], "row-") for axis in side),
            Control(
                "replicate", "Replicate to rerun", [(str(n), str(n)) for n in data["replicates"][0]]
            ),
        ],
    }


def _axis(results: Results, axis: str, chosen: object, prefix: str = "") -> Control:
    label = "Data set" if axis == "scenario" and results.on_real_data else COLUMNS[axis].label
    options = [(_text(value), title(axis, value)) for value in results.values(axis)]
    value = _text(results.values(axis)[0] if chosen is None else chosen)
    return Control(f"{prefix}{axis}", label, options, value, axis_texts(results).get(axis, ""))


def _text(value: object) -> str:
    """A value as the page's script writes it: 1.0 is 1."""
    return str(value).removesuffix(".0")
