"""Conclusions of the study of trust: false discovery rates, power and coverage by scenario."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fedlasso.study.means import average, format_mean, pair
from fedlasso.study.record_columns import COLUMNS, DISCOVERIES, display_name, title

if TYPE_CHECKING:
    import pandas as pd

OURS = DISCOVERIES
ONE = "one split"
MANY = "20 splits"
FED = "Fed-FDR"
BH = "debiased BH"
BEST = "best possible"
# A rate is kept if the mean exceeds it by no more than this many standard errors.
STANDARD_ERRORS = 2.0
# The fraction of a rival's power that should be reached.
POWER = 0.9
# Scenarios that a sentence names at most.
NAMED = 3
# Acceptable coverage of 95% intervals.
LEAST = 0.93
MOST = 0.97
SELECTION_METRICS = ("fdp", "recall", "f1", "active", "uploads", "flagged")
COVERAGES = ("coverage_nonzero", "coverage_zero", "coverage_near", "coverage_found")
WIDTHS = ("width_named", "width_found", "not_given")
# A scenario is marked if this fraction of its fits, or more, cannot promise the rate.
MARKED = 0.5
PAIRED = ("fdp", "recall", "f1")
CELL = ("scenario", "family", "rate")


def trust_means(rows: pd.DataFrame) -> pd.DataFrame:
    """Return ``METRIC`` and ``METRIC_se`` of each metric by scenario, family, rate and method.

    ``kept``: is the mean false discovery proportion at most the rate plus two standard errors?
    """
    metrics = [name for name in (*SELECTION_METRICS, *COVERAGES, *WIDTHS) if name in rows]
    table = average(rows, [*CELL, "method"], metrics).drop(columns="n")
    limit = table["rate"] + STANDARD_ERRORS * table["fdp_se"].fillna(0.0)
    return table.assign(kept=table["fdp"] <= limit)


def trust_differences(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean paired differences of our discoveries minus those of one split."""
    return average(pair(rows, "method", ONE, OURS, PAIRED), CELL, PAIRED).drop(columns="n")


def trust_conclusions(rows: pd.DataFrame) -> list[str]:
    """Return sentences on false discoveries, power and coverage, by family and rates."""
    lines = []
    for family, of_family in trust_means(rows).groupby("family", sort=False):
        rates: dict[str, list[str]] = {}
        for rate, own in of_family.groupby("rate", sort=False):
            here = rows[(rows["family"] == family) & (rows["rate"] == rate)]
            methods = dict(list(own.groupby("method", sort=False)))
            if OURS in methods:
                for line in _sentences(here, methods):
                    rates.setdefault(line, []).append(title("rate", rate))
        name = display_name("family", family)
        lines += [f"{name}, {' and '.join(names)}: {line}." for line, names in rates.items()]
    return lines


def _sentences(here: pd.DataFrame, methods: dict[str, pd.DataFrame]) -> Iterator[str]:
    ours = methods[OURS]
    rivals = [name for name in (ONE, MANY, FED, BH) if name in methods]
    others = [f"{name} in {methods[name]['kept'].sum()}" for name in rivals]
    marked = ours["flagged"] >= MARKED if "flagged" in ours else ours["kept"] & False
    own = ours[~marked]
    apart = f", apart from {marked.sum()} where fits state that they cannot promise it"
    yield (
        f"the mean false discovery proportion of the goal {OURS!r} is at most q plus "
        f"{STANDARD_ERRORS:g} standard errors in {_count(own, 'fdp', own['kept'])}"
        f"{apart if marked.any() else ''}{'; ' if others else ''}{', '.join(others)}"
    )
    if ONE in methods:
        differences = trust_differences(here)
        counted = _count(differences, "recall", differences["recall"] >= 0, "difference ")
        yield f"the goal {OURS!r} has at least the power of {ONE} in {counted}"
    enough = f"the goal {OURS!r} has at least {POWER:g} times the power of"
    if parts := [_against(ours, methods[name], name, kept=True) for name in rivals if name != ONE]:
        yield f"{enough} rivals that keep their rate: {'; '.join(parts)}"
    if BEST in methods:
        words = f"the {BEST}, which knows how the data were drawn,"
        yield f"{enough} {_against(ours, methods[BEST], words, kept=False)}"
    for name in COVERAGES:
        known = ours[ours[name].notna()] if name in ours else ours[:0]
        if len(known):
            kind = COLUMNS[name].label.partition(", ")[2]
            counted = _count(known, name, known[name].between(LEAST, MOST))
            good = f"{LEAST:.0%} to {MOST:.0%} coverage"
            yield f"95% intervals of columns {kind} have {good} in {counted}"
    if "not_given" in ours and (ours["not_given"] > 0).any():
        counted = _count(ours, "not_given", ours["not_given"] == 0, "fraction without ")
        yield f"every named column has an interval in {counted}"


def _against(ours: pd.DataFrame, rival: pd.DataFrame, name: str, *, kept: bool) -> str:
    """In how many scenarios the goal has enough of a rival's power; if `kept`, where it may win."""
    both = ours.merge(rival, on="scenario", suffixes=("", "_rival"))
    both = both[both["kept_rival"]] if kept else both
    counted = _count(both, "recall", both["recall"] >= POWER * both["recall_rival"])
    return f"{name} in {counted}"


def _count(own: pd.DataFrame, metric: str, good: pd.Series[bool], before: str = "") -> str:
    """How many scenarios are good, and the others: if many, only the smallest and the largest."""
    bad = own[~good]
    many = len(bad) > NAMED
    if many:
        bad = bad.sort_values(metric, kind="stable")
    named = []
    for scenario, mean, se in bad[["scenario", metric, f"{metric}_se"]].itertuples(index=False):
        signed = f"{mean:.3f}".replace("-", "−")
        error = "" if np.isnan(se) else f", SE {se:.3f}"
        named.append(f"{display_name('scenario', scenario)}: {before}{signed}{error}")
    text = f"{len(own) - len(bad)} of {len(own)} scenarios"
    if many:
        return f"{text} (the others range from {named[0]}, to {named[-1]})"
    return f"{text} (not in {'; '.join(named)})" if named else text


def trust_lines(rows: pd.DataFrame) -> list[str]:
    """Return the conclusions, then means and paired differences by scenario, for every rate."""
    lines = trust_conclusions(rows)
    differences = trust_differences(rows) if {OURS, ONE} <= set(rows["method"]) else None
    for (family, rate), own in trust_means(rows).groupby(["family", "rate"], sort=False):
        where = f"{display_name('family', family)}, {title('rate', rate)}"
        lines += ["", f"{where}: means (standard errors)"]
        lines += _table_lines(own.set_index(["scenario", "method"]), SELECTION_METRICS)
        ours = own[own["method"] == OURS].set_index("scenario")
        if len(ours):
            lines += ["", f"{where}: 95% intervals of {OURS}, widths per standard deviation"]
            lines += _table_lines(ours, (*COVERAGES, *WIDTHS))
        if differences is not None:
            both = (differences["family"] == family) & (differences["rate"] == rate)
            if both.any():
                lines += ["", f"{where}: {OURS} minus {ONE}, paired (standard errors)"]
                lines += _table_lines(differences[both].set_index("scenario"), PAIRED, "+")
    return [*lines, ""]


def _table_lines(own: pd.DataFrame, metrics: tuple[str, ...], sign: str = "") -> list[str]:
    text = own[[]].copy()
    for name in metrics:
        if name in own:
            pairs = zip(own[name], own[f"{name}_se"], strict=True)
            text[name] = [format_mean(mean, se, f"{sign}.3f", ".3f", "–") for mean, se in pairs]
    shown: str = text.to_string()
    return shown.splitlines()
