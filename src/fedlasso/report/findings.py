"""What the records say, in sentences: each with its count, its paired standard error and a view.

Sentences are made from the records alone and change with them. Every difference is taken within a
replicate, averaged over the cells of a scenario and then over replicates; scenarios are drawn
apart from each other, so the standard error of their mean adds their variances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from fedlasso.report.compare import agree_with_paper
from fedlasso.report.records import Results, count_of
from fedlasso.report.tables import decimals_of
from fedlasso.study.columns import COLUMNS, titles
from fedlasso.study.conclusions import CONCLUSIONS

FOUR = ("CD", "ST", "P", "DA")
TARGET = 1e-8
FEW = 30  # uploads
MANY_REPLICATES = 20  # with fewer, only large differences from the paper can be seen
SHORT = {"epochs": "E"}  # how a sentence calls an axis, where not by its name
MANY = {"epochs": "values of E", "family": "families"}  # and several values of it


@dataclass(frozen=True)
class Finding:
    """A sentence, the chart that shows it, and the choices that the page makes to show it there."""

    name: str
    text: str
    chart: str = ""
    view: Mapping[str, str] = field(default_factory=dict)


def find(results: Results) -> list[Finding]:
    """Every finding of these records, in the order of the page."""
    return [finding for look in FINDINGS for finding in look(results)]


def agreement_finding(results: Results) -> Iterator[Finding]:
    """Whether the paper's main table is reproduced."""
    comparison = agree_with_paper(results)
    if comparison is None:
        return
    z = comparison.cells["z"].dropna()
    if len(z):
        replicates = int(comparison.cells["n"].min())
        count = count_of(replicates, "replicate")
        claim = ""
        if comparison.agrees and replicates < MANY_REPLICATES:
            claim = f"Within {count} no difference from the paper shows, though more may: "
        elif comparison.agrees:
            claim = "The paper is reproduced: "
        yield Finding(
            "agreement",
            f"{claim}{int((z.abs() > 1.96).sum())} of {len(z)} means of the paper's main table lie "
            f"more than 1.96 standard errors from ours (about {0.05 * len(z):.1f} would by chance; "
            f"largest |z| {z.abs().max():.2f}; {count}).",
            "agreement",
        )


def lead_findings(results: Results) -> Iterator[Finding]:
    """Whether DA ends nearest the pooled optimum, and whether it selects best, cell by cell."""
    rivals = [method for method in FOUR[:3] if method in results.values("method")]
    if "DA" not in results.values("method") or not rivals:
        return
    words = {
        "relative_gap": "ends nearer the pooled optimum than",
        "f1": "selects better (higher mean F1) than",
    }
    for metric, claim in words.items():
        if metric not in results.metrics:
            continue
        lead = compare_with_best(results, metric, ["DA"], rivals)
        if lead.cells:
            yield Finding(
                f"lead-{metric}",
                f"DA {claim} the best of {_and(rivals)} in {lead.counted}{_except(lead)}; "
                f"difference in mean {_label(metric)} {lead.told}.",
                "overview",
                {"metric": metric},
            )


def goal_findings(results: Results) -> Iterator[Finding]:
    """Whether fits by goal beat the best of the paper's four at its best epoch count."""
    rivals = [method for method in FOUR if method in results.values("method")]
    claims = {
        "goal:prediction": ("test_mse", "predicts better (lower mean test error)"),
        "goal:selection": ("f1", "selects better (higher mean F1)"),
    }
    for goal, (metric, claim) in claims.items():
        if goal not in results.values("method") or not rivals or metric not in results.metrics:
            continue
        lead = compare_with_best(results, metric, [goal], rivals, over_epochs=True)
        if lead.cells:
            yield Finding(
                goal.replace(":", "-"),
                f"The fit for {goal.removeprefix('goal:')} {claim} than each of {_and(rivals)} at "
                f"every E in {lead.counted}{_except(lead)}; difference to "
                f"the best of them in mean {_label(metric)} {lead.told}.",
                "contrast",
                {"metric": metric, "pair": f"method~{rivals[-1]}~{goal}", "scope": "all"},
            )


def upload_finding(results: Results) -> Iterator[Finding]:
    """How many uploads Secant takes to the pooled optimum, and where DA is after all of them."""
    rows = results.outcome
    if not {"relative_gap", "budget"} <= set(rows.columns):
        return
    first = min((b for b in results.values("budget") if b >= FEW), default=None)
    last = results.values("budget")[-1]
    fixed = {axis: value for axis, value in results.primary.items() if axis != "budget"}
    for method in ("Secant", "SecantWS"):
        ours = _gaps(results.at(method=method, budget=first, **fixed))
        theirs = _gaps(results.at(method="DA", budget=last, **fixed))
        if ours.empty:
            continue
        text = (
            f"{method} is within a relative gap of 1e−8 of the pooled optimum after {first} "
            f"uploads in {int((ours <= TARGET).sum())} of {len(ours)} replicates"
        )
        if len(theirs):
            best = theirs.groupby(level=["scenario", "replicate"]).min()
            ratio = np.log10(_positive(best)) - np.log10(_positive(ours))
            mean, se = _over_scenarios(ratio)
            best_of = " at its best E" if results.several_epochs else ""
            text += (
                f"; DA{best_of} is there in {int((best <= TARGET).sum())} of {len(best)} "
                f"after {last}, and {mean:.1f} powers of ten further away on average "
                f"(paired SE {_two_digits(se)})"
            )
        yield Finding(f"uploads-{method}", f"{text}.", "uploads")


def epoch_findings(results: Results) -> Iterator[Finding]:
    """What more local epochs change: F1 and test error, all methods together."""
    epochs = [number for number in results.values("epochs") if number]
    if len(epochs) < 2:
        return
    first, last = epochs[0], epochs[-1]
    for metric in ("f1", "test_mse", "test_deviance"):
        yield from _contrast_finding(
            results, metric, "epochs", first, last, f"From E = {first} to E = {last}"
        )


def tuning_findings(results: Results) -> Iterator[Finding]:
    """What choosing the penalty too changes, in the study that has both arms."""
    if len(results.values("tuning")) < 2:
        return
    for metric in ("test_mse", "f1"):
        yield from _contrast_finding(
            results, metric, "tuning", "inherited", "joint", "With the penalty tuned too"
        )


def rule_finding(results: Results) -> Iterator[Finding]:
    """What the one-standard-error rule trades."""
    if not {"min", "1se"} <= set(results.values("rule")) or "candidate" not in results.candidate:
        return
    parts: list[str] = []
    # Only a method with candidates has something to choose.
    choosing = results.candidate.groupby("method")["candidate"].nunique()
    methods = list(choosing.index[choosing > 1])
    for metric, words in (("f1", "F1"), ("test_mse", "test error")):
        if metric in results.metrics and methods:
            change = paired_change(results, metric, "rule", "min", "1se", methods)
            counted = f"{change.count} of them" if parts else change.counted
            parts.append(f"{words} {counted} (average change {change.told})")
    if parts:
        text = f"From the smallest validation error to the one-standard-error rule, {_and(parts)}."
        yield Finding("rule", text, "tradeoff")


def told_findings(results: Results) -> Iterator[Finding]:
    """What a study concludes itself, in sentences."""
    tell = CONCLUSIONS.get(results.manifest.name)
    for number, text in enumerate(tell(results.outcome) if tell else []):
        yield Finding(f"told-{number}", text, "figures")


@dataclass(frozen=True)
class Lead:
    """In how many cells one beats the best of others, by how much, and where it does not."""

    wins: int
    cells: int
    mean: float
    se: float
    keys: tuple[str, ...] = ()
    exceptions: tuple[tuple[str, int], ...] = ()

    @property
    def counted(self) -> str:
        """In how many combinations of what."""
        return f"{self.wins} of {self.cells} {_combinations(self.keys)}"

    @property
    def told(self) -> str:
        """The mean difference with its standard error."""
        return f"{_signed(self.mean, self.se)} (paired SE {_two_digits(self.se)})"


@dataclass(frozen=True)
class Change:
    """In how many cells a mean rises and falls, of how many, and by how much on average."""

    rises: int
    falls: int
    cells: int
    mean: float
    se: float
    keys: tuple[str, ...] = ()

    @property
    def count(self) -> str:
        """Which way it goes on average, and in how many cells."""
        return f"falls in {self.falls}" if self.mean < 0 else f"rises in {self.rises}"

    @property
    def counted(self) -> str:
        """The same, with how many combinations there are of what."""
        return f"{self.count} of {self.cells} {_combinations(self.keys)}"

    @property
    def told(self) -> str:
        """The mean change with its standard error."""
        return f"{_signed(self.mean, self.se)}, paired SE {_two_digits(self.se)}"


def compare_with_best(
    results: Results,
    metric: str,
    ours: Sequence[str],
    rivals: Sequence[str],
    over_epochs: bool = False,
) -> Lead:
    """Compare a method with the best of others by mean, cell by cell, within replicate.

    A cell is a scenario and an epoch count; with ``over_epochs`` a scenario alone, where the rivals
    take their best epoch count.
    """
    sign = 1 if COLUMNS[metric].better == "higher" else -1
    rows = results.at(**results.primary).dropna(subset=[metric])
    if "epochs" not in rows:
        rows = rows.assign(epochs=0)
    over_epochs = over_epochs or not results.several_epochs
    where = ["scenario", *results.arms]
    by = where + ([] if over_epochs else ["epochs"])
    among = ["method", "epochs"] if over_epochs else ["method"]
    others = rows[rows["method"].isin(rivals)].set_index([*by, *among])
    means = others.groupby(level=[*by, *among])[metric].mean().groupby(level=by, sort=False)
    best = others[others.index.isin(means.idxmax() if sign > 0 else means.idxmin())]
    theirs = best.droplevel(among).set_index("replicate", append=True)[metric]
    own = rows[rows["method"].isin(ours)].set_index([*by, "replicate"])[metric]
    cells = own.index.droplevel("replicate").unique()
    cells = cells[cells.isin(theirs.index.droplevel("replicate"))]
    if cells.empty:
        return Lead(0, 0, np.nan, np.nan)
    difference = (own - theirs.reindex(own.index)).dropna()
    won = sign * difference.groupby(level=by).mean().reindex(cells) > 0
    exceptions = tuple(
        (titles(dict(zip(where, key, strict=False))), 0 if over_epochs else int(key[-1]))
        for key in cells[~won].to_frame()[by].itertuples(index=False, name=None)
    )
    within = difference.groupby(level=["scenario", "replicate"]).mean()
    return Lead(int(won.sum()), len(cells), *_over_scenarios(within), tuple(by), exceptions)


def paired_change(
    results: Results,
    metric: str,
    along: str,
    first: object,
    second: object,
    methods: Sequence[str] = (),
) -> Change:
    """How a metric changes along one axis, over every other cell of the paper's view."""
    fixed = {axis: value for axis, value in results.primary.items() if axis != along}
    rows = results.at(**fixed)
    if methods:
        rows = rows[rows["method"].isin(methods)]
    keys = [axis for axis in results.axes if axis != along]
    before, after = (
        rows[rows[along] == value].set_index([*keys, "replicate"])[metric]
        for value in (first, second)
    )
    difference = (after - before).dropna()
    cells = difference.groupby(level=keys).mean()
    within = difference.groupby(level=["scenario", "replicate"]).mean()
    told = [axis for axis in keys if axis not in fixed and len(results.values(axis)) > 1]
    rises, falls = int((cells > 0).sum()), int((cells < 0).sum())
    return Change(rises, falls, len(cells), *_over_scenarios(within), tuple(told))


def _contrast_finding(
    results: Results, metric: str, along: str, first: Any, second: Any, words: str
) -> Iterator[Finding]:
    if metric not in results.metrics:
        return
    change = paired_change(results, metric, along, first, second)
    if change.cells:
        yield Finding(
            f"{along}-{metric}",
            f"{words}, mean {_label(metric)} {change.counted}; average change {change.told}.",
            "contrast",
            {"metric": metric, "pair": f"{along}~{first}~{second}", "scope": "all"},
        )


def _gaps(rows: pd.DataFrame) -> pd.Series:
    if rows.empty:
        return pd.Series(dtype=float)
    keys = [name for name in ("scenario", "epochs", "family", "replicate") if name in rows]
    return (
        rows.set_index(keys)["relative_gap"]
        .dropna()
        .droplevel([name for name in keys if name == "epochs"])
    )


def _positive(gaps: pd.Series) -> pd.Series:
    """Gaps that have a logarithm: what rounding leaves is no closer than this."""
    return gaps.clip(lower=1e-16)


def _over_scenarios(within: pd.Series) -> tuple[float, float]:
    """Mean over scenarios, and its standard error, of one number per scenario and replicate."""
    groups = within.groupby(level="scenario")
    means = groups.mean()
    return float(means.mean()), float(np.sqrt((groups.sem() ** 2).sum(skipna=False)) / len(means))


def _except(lead: Lead) -> str:
    if not 0 < len(lead.exceptions) <= 12:
        return ""
    by_place: dict[str, list[str]] = {}
    for place, epochs in lead.exceptions:
        by_place.setdefault(place, []).append(str(epochs))
    told = [
        place + (f" at E = {_and(numbers)}" if numbers != ["0"] else "")
        for place, numbers in by_place.items()
    ]
    return f" (not in: {'; '.join(told)})"


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _combinations(keys: Sequence[str]) -> str:
    """What was counted: values of one axis, or combinations of several."""
    if len(keys) < 2:
        key = keys[0] if keys else "scenario"
        return MANY.get(key, f"{key}s")
    return f"combinations of {_and([SHORT.get(key, key) for key in keys])}"


def _label(metric: str) -> str:
    """A metric's name within a sentence."""
    label = COLUMNS[metric].label
    return label[0].lower() + label[1:] if label[1].islower() else label


def _signed(value: float, se: float) -> str:
    """A difference with as many decimals as its standard error has."""
    known = np.isfinite(se) and se > 0
    decimals = decimals_of(se)
    form = f"+.{decimals}f" if known and decimals <= 7 else "+.3g"
    return f"{value:{form}}".replace("-", "−")


def _two_digits(se: float) -> str:
    if np.isnan(se):
        return "unknown with one replicate"
    decimals = decimals_of(se)
    return f"{se:.{decimals}f}" if se > 0 and decimals <= 7 else f"{se:.2g}"


# What is looked for, in the order of the page; append to add a finding from outside. Each gives
# nothing for records that cannot tell.
FINDINGS: list[Callable[[Results], Iterator[Finding]]] = [
    agreement_finding,
    told_findings,
    lead_findings,
    upload_finding,
    goal_findings,
    tuning_findings,
    epoch_findings,
    rule_finding,
]
