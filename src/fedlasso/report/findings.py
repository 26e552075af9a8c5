"""Findings: sentences made from the records, each with a count, a paired standard error and a view.

Every difference is taken within a replicate, averaged over the cells of a scenario and then over
replicates. Scenarios are independent, so the variance of their mean is the sum of their variances
over the squared number of scenarios.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from fedlasso.report.compare import agree_with_paper
from fedlasso.report.records import Results, count_of
from fedlasso.report.tables import decimals_of
from fedlasso.study.conclusions import CONCLUSIONS
from fedlasso.study.means import over_scenarios, pair, pair_with_best
from fedlasso.study.record_columns import COLUMNS, TRAINING_ROWS, titles

FOUR = ("CD", "ST", "P", "DA")
TARGET = 1e-8
FEW = 30  # uploads
MANY_REPLICATES = 20  # with fewer, only large differences from the paper can be detected
SHORT = {"epochs": "E"}  # an axis within a sentence, if not by its name
MANY = {"epochs": "values of E", "family": "families"}  # and several values of it


@dataclass(frozen=True)
class Finding:
    """A sentence, the chart that shows it with its settings, and a weight: larger ones first."""

    name: str
    text: str
    chart: str = ""
    view: Mapping[str, str] = field(default_factory=dict)
    weight: int = 1


def find(results: Results) -> list[Finding]:
    """Every finding of these records, in the order of the page: by weight, then as listed."""
    found = [finding for look in FINDINGS for finding in look(results)]
    return sorted(found, key=lambda finding: -finding.weight)


def agreement_finding(results: Results) -> Iterator[Finding]:
    """Whether the paper's main table is reproduced."""
    # A comparison, if there is one, has at least one cell.
    if comparison := agree_with_paper(results):
        z = comparison.cells["z"].dropna().abs()
        replicates = int(comparison.cells["n"].min())
        count = count_of(replicates, "replicate")
        claim = ""
        if comparison.agrees and replicates < MANY_REPLICATES:
            claim = f"With {count}, no difference from the paper is detected; more may show one: "
        elif comparison.agrees:
            claim = "The paper is reproduced: "
        yield Finding(
            "agreement",
            f"{claim}{(z > 1.96).sum()} of {len(z)} means of the paper's main table lie more than "
            f"1.96 standard errors from ours (about {0.05 * len(z):.1f} expected by chance; "
            f"largest |z| {z.max():.2f}; {count}).",
            "agreement",
            # A paper that is not reproduced comes before everything else.
            weight=2 if comparison.agrees else 6,
        )


def lead_findings(results: Results) -> Iterator[Finding]:
    """In how many cells DA has the smallest gap, and in how many the best selection."""
    rivals = [method for method in FOUR[:3] if method in results.values("method")]
    if "DA" not in results.values("method") or not rivals:
        return
    claims = {
        "relative_gap": "ends closer to the pooled optimum",
        "f1": "selects better (higher mean F1)",
    }
    for metric in results.measured(*claims):
        lead = compare_with_best(results, metric, "DA", rivals)
        if lead.cells:
            yield Finding(
                f"lead-{metric}",
                f"DA {claims[metric]} than the best of {_and(rivals)} in {lead.counted}"
                f"{_except(lead)}; difference in mean {_label(metric)} {lead.text} ({lead.error}).",
                "overview",
                {"metric": metric},
                weight=2,
            )


def goal_findings(results: Results) -> Iterator[Finding]:
    """Whether fits by goal beat the best of the paper's four at its best epoch count.

    Those to the training rows only are compared first: the four never see the validation rows.
    """
    rivals = [method for method in FOUR if method in results.values("method")]
    claims = {
        "goal:prediction": ("test_mse", "predicts better (lower mean test error)"),
        "goal:selection": ("f1", "selects better (higher mean F1)"),
    }
    rows = {
        TRAINING_ROWS: "fitted to the training rows only, as these are,",
        "": "fitted to all rows, as a user's model is,",
    }
    for goal, (metric, claim) in claims.items():
        if not rivals or metric not in results.metrics:
            continue
        parts = []
        for suffix, fitted in rows.items():
            lead = compare_with_best(results, metric, goal + suffix, rivals, over_epochs=True)
            if lead.cells:
                parts.append(
                    f"{fitted} in {lead.counted}{_except(lead)}, with a difference to the best of "
                    f"them in mean {_label(metric)} of {lead.text} ({lead.error})"
                )
        if parts:
            fair = goal + TRAINING_ROWS
            shown = fair if fair in results.values("method") else goal
            yield Finding(
                goal.replace(":", "-"),
                f"The fit for {goal.removeprefix('goal:')} {claim} than each of {_and(rivals)} at "
                f"every E: {'; '.join(parts)}.",
                "contrast",
                {"metric": metric, "pair": f"method~{rivals[-1]}~{shown}", "scope": "all"},
                weight=4,
            )


def upload_finding(results: Results) -> Iterator[Finding]:
    """How often Secant is at the pooled optimum after few uploads, and DA after all of them."""
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
            ratio = _log10(best) - _log10(ours)
            mean, se = over_scenarios(ratio.rename("ratio").reset_index(), "ratio")
            best_of = " at its best E" if results.several_epochs else ""
            text += (
                f"; DA{best_of} in {int((best <= TARGET).sum())} of {len(best)} "
                f"after {last}, with a gap {mean:.1f} powers of ten larger on average "
                f"(paired SE {_two_digits(se)})"
            )
        yield Finding(f"uploads-{method}", f"{text}.", "uploads", weight=3)


def epoch_findings(results: Results) -> Iterator[Finding]:
    """Change of F1 and test error with more local epochs, over all methods."""
    epochs = [number for number in results.values("epochs") if number]
    if len(epochs) > 1:
        first, last = epochs[0], epochs[-1]
        for metric in results.measured("f1", "test_mse", "test_deviance"):
            words = f"From E = {first} to E = {last}"
            yield from _contrast_finding(results, metric, "epochs", first, last, words)


def tuning_findings(results: Results) -> Iterator[Finding]:
    """Change of test error and F1 with joint tuning, in the study that has both arms."""
    if len(results.values("tuning")) > 1:
        for metric in results.measured("test_mse", "f1"):
            words = "With the penalty tuned jointly"
            yield from _contrast_finding(results, metric, "tuning", "inherited", "joint", words)


def rule_finding(results: Results) -> Iterator[Finding]:
    """Change of F1 and test error with the one-standard-error rule."""
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
            parts.append(f"{words} {counted} (average change {change.text}, {change.error})")
    if parts:
        text = f"From the minimum rule to the one-standard-error rule, {_and(parts)}."
        yield Finding("rule", text, "tradeoff")


def study_findings(results: Results) -> Iterator[Finding]:
    """Yield the study's own conclusions."""
    conclude = CONCLUSIONS.get(results.manifest.name)
    for number, text in enumerate(conclude(results.outcome) if conclude else []):
        yield Finding(f"study-{number}", text, "figures", weight=5)


@dataclass(frozen=True)
class Paired:
    """In how many cells a comparison holds, and the mean difference.

    ``keys`` are the axes of a cell; ``exceptions`` are cells where the comparison does not hold,
    each with its epoch count.
    """

    count: str
    cells: int
    mean: float
    se: float
    keys: tuple[str, ...]
    exceptions: tuple[tuple[str, int], ...] = ()

    @property
    def counted(self) -> str:
        return f"{self.count} of {self.cells} {_combinations(self.keys)}"

    @property
    def text(self) -> str:
        return _signed(self.mean, self.se)

    @property
    def error(self) -> str:
        return f"paired SE {_two_digits(self.se)}"


def compare_with_best(
    results: Results, metric: str, ours: str, rivals: Sequence[str], over_epochs: bool = False
) -> Paired:
    """Compare a method with the best of others by mean, cell by cell, within replicate.

    A cell is a scenario and an epoch count; with ``over_epochs`` a scenario only, and the rivals
    have their best epoch count.
    """
    rows = results.at(**results.primary).dropna(subset=[metric])
    if "epochs" not in rows:
        rows = rows.assign(epochs=0)
    over_epochs = over_epochs or not results.several_epochs
    where = ["scenario", *results.arms]
    by = where + ([] if over_epochs else ["epochs"])
    pairs = pair_with_best(rows, metric, ours, rivals, by)
    if pairs.empty:
        return Paired("0", 0, np.nan, np.nan, ())
    means = pairs.groupby(by, sort=False)["difference"].mean()
    won = means > 0 if COLUMNS[metric].better == "higher" else means < 0
    exceptions = tuple(
        (titles(dict(zip(where, key, strict=False))), 0 if over_epochs else int(key[-1]))
        for key in won[~won].reset_index()[by].itertuples(index=False, name=None)
    )
    mean, se = over_scenarios(pairs, "difference")
    return Paired(str(won.sum()), len(won), mean, se, tuple(by), exceptions)


def paired_change(
    results: Results,
    metric: str,
    along: str,
    first: object,
    second: object,
    methods: Sequence[str] = (),
) -> Paired:
    """Return how a metric changes along one axis, over every other cell of the paper's view."""
    fixed = {axis: value for axis, value in results.primary.items() if axis != along}
    rows = results.at(**fixed)
    if methods:
        rows = rows[rows["method"].isin(methods)]
    keys = [axis for axis in results.axes if axis != along]
    pairs = pair(rows, along, first, second, [metric])
    cells = pairs.groupby(keys)[metric].mean()
    counted = [axis for axis in keys if axis not in fixed and len(results.values(axis)) > 1]
    mean, se = over_scenarios(pairs, metric)
    count = f"falls in {(cells < 0).sum()}" if mean < 0 else f"rises in {(cells > 0).sum()}"
    return Paired(count, len(cells), mean, se, tuple(counted))


def _contrast_finding(
    results: Results, metric: str, along: str, first: Any, second: Any, words: str
) -> Iterator[Finding]:
    change = paired_change(results, metric, along, first, second)
    if change.cells:
        yield Finding(
            f"{along}-{metric}",
            f"{words}, mean {_label(metric)} {change.counted}; average change {change.text}, "
            f"{change.error}.",
            "contrast",
            {"metric": metric, "pair": f"{along}~{first}~{second}", "scope": "all"},
            weight=5 if along == "tuning" else 1,
        )


def _gaps(rows: pd.DataFrame) -> pd.Series:
    if rows.empty:
        return pd.Series(dtype=float)
    keys = [name for name in ("scenario", "family", "replicate") if name in rows]
    return rows.set_index(keys)["relative_gap"].dropna()


def _log10(gaps: pd.Series) -> pd.Series:
    """Logarithms of gaps; gaps below 1e-16 are rounding."""
    return np.log10(gaps.clip(lower=1e-16))


def _except(lead: Paired) -> str:
    if not 0 < len(lead.exceptions) <= 12:
        return ""
    by_place: dict[str, list[str]] = {}
    for place, epochs in lead.exceptions:
        by_place.setdefault(place, []).append(str(epochs))
    named = [f"{place} at E = {_and(n)}" if n != ["0"] else place for place, n in by_place.items()]
    return f" (not in: {'; '.join(named)})"


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _combinations(keys: Sequence[str]) -> str:
    """The counted cells: values of one axis, or combinations of several."""
    if len(keys) < 2:
        (key,) = keys or ("scenario",)
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


# Findings in the order of the page; append to add one from outside. Each yields nothing for records
# that lack its columns.
FINDINGS: list[Callable[[Results], Iterator[Finding]]] = [
    agreement_finding,
    study_findings,
    lead_findings,
    upload_finding,
    goal_findings,
    tuning_findings,
    epoch_findings,
    rule_finding,
]
