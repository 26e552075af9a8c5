"""Which promises of discoveries and intervals the study of trust saw kept, and where not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fedlasso.study.means import average as average_cells
from fedlasso.study.means import pair as pair_cells
from fedlasso.study.means import show
from fedlasso.study.record_columns import COLUMNS, DISCOVERIES, display_name, title

if TYPE_CHECKING:
    import pandas as pd

OURS = DISCOVERIES
ONE = "one split"
MANY = "20 splits"
BEST = "best possible"
# A rate is kept when the mean exceeds it by no more than this many standard errors.
STANDARD_ERRORS = 2.0
# The share of the power of many splits that is to be reached, where those keep their rate, and of
# the most that can be found.
SHARE = 0.9
# Scenarios where a promise was not kept are named up to so many.
NAMED = 3
# How often intervals of 95% are to cover.
LEAST = 0.93
MOST = 0.97
SELECTION = ("fdp", "recall", "f1", "active", "uploads")
COVERAGES = ("coverage_nonzero", "coverage_zero", "coverage_near", "coverage_found")
WIDTHS = ("width_named", "width_found")
PAIRED = ("fdp", "recall", "f1")
CELL = ("scenario", "family", "rate")


def average(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per scenario, family, rate and method: ``METRIC`` and ``METRIC_se`` of each metric.

    ``kept``: is the mean false discovery proportion at most the rate and two standard errors?
    """
    wanted = [name for name in (*SELECTION, *COVERAGES, *WIDTHS) if name in rows]
    table = average_cells(rows, [*CELL, "method"], wanted).drop(columns="n")
    bar = table["rate"] + STANDARD_ERRORS * table["fdp_se"].fillna(0.0)
    return table.assign(kept=table["fdp"] <= bar)


def pair(rows: pd.DataFrame) -> pd.DataFrame:
    """Differences of our discoveries minus those of one split, within replicate, as `average`."""
    differences = pair_cells(rows, "method", ONE, OURS, PAIRED)
    return average_cells(differences, CELL, PAIRED).drop(columns="n")


def find_promises_kept(rows: pd.DataFrame) -> list[str]:
    """Sentences per family and rate: false discoveries, power, and how often intervals cover.

    A sentence that holds at several rates is told once.
    """
    lines = []
    for family, of_family in average(rows).groupby("family", sort=False):
        rates: dict[str, list[str]] = {}
        for rate, own in of_family.groupby("rate", sort=False):
            here = rows[(rows["family"] == family) & (rows["rate"] == rate)]
            methods = dict(list(own.groupby("method", sort=False)))
            if OURS not in methods:
                continue
            told = [_tell_rate(methods), *_tell_power(here, methods)]
            for line in [*told, *_tell_coverage(methods[OURS])]:
                rates.setdefault(line, []).append(title("rate", rate))
        name = display_name("family", family)
        lines += [f"{name}, {' and '.join(names)}: {line}." for line, names in rates.items()]
    return lines


def _tell_rate(methods: dict[str, pd.DataFrame]) -> str:
    ours = methods[OURS]
    told = (
        f"of the columns that the goal {OURS!r} finds, a share of at most q plus "
        f"{STANDARD_ERRORS:g} standard errors is false on average in "
        f"{_count(ours, 'fdp', ours['kept'])}"
    )
    others = [f"{name} in {methods[name]['kept'].sum()}" for name in (ONE, MANY) if name in methods]
    return f"{told}; with {', '.join(others)}" if others else told


def _tell_power(here: pd.DataFrame, methods: dict[str, pd.DataFrame]) -> Iterator[str]:
    if ONE in methods:
        differences = pair(here)
        counted = _count(differences, "recall", differences["recall"] >= 0, "by ")
        yield (
            f"the goal {OURS!r} finds at least as large a share of the true columns (power) as "
            f"{ONE} in {counted}"
        )
    rivals = {
        MANY: f"{MANY}, where those keep their rate",
        BEST: f"the {BEST}, which knows how the data were drawn",
    }
    enough = f"the goal {OURS!r} has at least {SHARE:g} of the power of"
    for rival in (name for name in rivals if name in methods):
        both = methods[OURS].merge(methods[rival], on="scenario", suffixes=("", "_rival"))
        both = both[both["kept_rival"]] if rival == MANY else both
        counted = _count(both, "recall", both["recall"] >= SHARE * both["recall_rival"])
        yield f"{enough} {rivals[rival]}, in {counted}"


def _tell_coverage(own: pd.DataFrame) -> Iterator[str]:
    for name in COVERAGES:
        told = own[own[name].notna()] if name in own else own[:0]
        if len(told):
            words = COLUMNS[name].label.partition(", ")[2]
            counted = _count(told, name, told[name].between(LEAST, MOST))
            yield (
                f"95% intervals hold the true coefficient in {LEAST:.0%} to {MOST:.0%} of cases "
                f"for columns {words} in {counted}"
            )


def _count(own: pd.DataFrame, metric: str, good: pd.Series[bool], before: str = "") -> str:
    """How many scenarios are good, and the mean and standard error of those that are not.

    Where these are many, the smallest and the largest stand for them.
    """
    bad = own[~good]
    many = len(bad) > NAMED
    if many:
        bad = bad.sort_values(metric, kind="stable")
    told = []
    for scenario, mean, se in bad[["scenario", metric, f"{metric}_se"]].itertuples(index=False):
        signed = f"{mean:.3f}".replace("-", "−")
        error = "" if np.isnan(se) else f", SE {se:.3f}"
        told.append(f"{display_name('scenario', scenario)}: {before}{signed}{error}")
    text = f"{len(own) - len(bad)} of {len(own)} scenarios"
    if many:
        return f"{text} (the others go from {told[0]}, to {told[-1]})"
    return f"{text} (not in {'; '.join(told)})" if told else text


def tell_trust(rows: pd.DataFrame) -> list[str]:
    """Lines: the promises, and means and paired differences by scenario, rate by rate."""
    lines = find_promises_kept(rows)
    differences = pair(rows) if {OURS, ONE} <= set(rows["method"]) else None
    for (family, rate), own in average(rows).groupby(["family", "rate"], sort=False):
        where = f"{display_name('family', family)}, {title('rate', rate)}"
        lines += ["", f"{where}: means (standard errors)"]
        lines += _tell_table(own.set_index(["scenario", "method"]), SELECTION)
        ours = own[own["method"] == OURS].set_index("scenario")
        if len(ours):
            lines += ["", f"{where}: 95% intervals of {OURS}, widths per standard deviation"]
            lines += _tell_table(ours, (*COVERAGES, *WIDTHS))
        if differences is not None:
            both = (differences["family"] == family) & (differences["rate"] == rate)
            if both.any():
                lines += ["", f"{where}: {OURS} minus {ONE}, paired (standard errors)"]
                lines += _tell_table(differences[both].set_index("scenario"), PAIRED, "+")
    return [*lines, ""]


def _tell_table(own: pd.DataFrame, metrics: tuple[str, ...], sign: str = "") -> list[str]:
    """Lines of a table: scenarios down, metrics across."""
    text = own[[]].copy()
    for name in metrics:
        if name in own:
            pairs = zip(own[name], own[f"{name}_se"], strict=True)
            text[name] = [show(mean, se, f"{sign}.3f", ".3f", "–") for mean, se in pairs]
    told: str = text.to_string()
    return told.splitlines()
