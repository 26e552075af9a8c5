"""A table, as numbers (CSV) and as text, and the means and differences in it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from fedlasso.csv_text import plain_frame
from fedlasso.report.figures import looks
from fedlasso.report.filling import fill
from fedlasso.report.records import Results, count_of
from fedlasso.study.means import average, measure
from fedlasso.study.record_columns import COLUMNS, axes, display_name, known, title

# Means and standard errors below this are rounding errors of sums.
NEGLIGIBLE = 1e-14


@dataclass(frozen=True, eq=False)
class ReportTable:
    """One table."""

    name: str
    title: str
    note: str
    data: pd.DataFrame  # every row, as numbers; written as CSV
    shown: pd.DataFrame  # the printed rows, as text
    block: str | None = None  # column of `shown` whose values head blocks of rows
    prose: str = ""  # text before the table in the supplement

    def write(self, folder: Path) -> None:
        """Write ``NAME.csv``, ``NAME.md`` and ``NAME.tex``."""
        plain_frame(self.data).to_csv(folder / f"{self.name}.csv", index=False)
        for kind in ("md", "tex"):
            text = fill(f"table.{kind}", table=self)
            (folder / f"{self.name}.{kind}").write_text(text, encoding="utf-8")

    @cached_property
    def columns(self) -> list[str]:
        return [c for c in self.shown.columns if c != self.block]

    @cached_property
    def alignment(self) -> str:
        """One letter per column: l for text, r for numbers."""
        texts = {self.columns[0], "Contrast"}
        texts |= {axis.heading for axis in axes().values() if not axis.number}
        return "".join("l" if column in texts else "r" for column in self.columns)

    @cached_property
    def colours(self) -> dict[tuple[str, str], str]:
        drawn = looks(self.shown.get("Method", []))
        return {("Method", method): look.colour for method, look in drawn.items()}

    @cached_property
    def blocks(self) -> list[tuple[str, list[tuple[str, ...]]]]:
        """Heading and rows of each block; without blocks, one with an empty heading."""
        rows = zip(*(self.shown[column].astype(str) for column in self.columns), strict=True)
        headings = [""] * len(self.shown) if self.block is None else self.shown[self.block]
        blocks: dict[str, list[tuple[str, ...]]] = {}
        for heading, row in zip(headings, rows, strict=True):
            blocks.setdefault(str(heading), []).append(row)
        return list(blocks.items())


def mean_se(mean: Iterable[float], se: Iterable[float], sign: bool = False) -> list[str]:
    """Return a column of ``mean (SE)``, with a dash for an unknown SE.

    The median standard error gets two significant digits. A cell with a smaller standard error gets
    more decimals, so that it has two digits too. Rounding errors are printed as zero.
    """
    pairs = [
        (0.0, 0.0) if abs(m) < NEGLIGIBLE and s < NEGLIGIBLE else (m, s)
        for m, s in zip(mean, se, strict=True)
    ]
    errors = [s for _, s in pairs if s > 0 and math.isfinite(s)]
    typical = decimals_of(median(errors) if errors else math.nan)
    return [_pair(m, s, max(typical, decimals_of(s)), sign) for m, s in pairs]


def decimals_of(se: float) -> int:
    """Return the decimals that give a standard error two significant digits; 3 without one."""
    if not math.isfinite(se) or se <= 0:
        return 3
    return max(1 - math.floor(math.log10(se)), 0)


def _pair(mean: float, se: float, digits: int, sign: bool) -> str:
    if math.isnan(mean):
        return "—"
    if math.isnan(se):
        digits = 3
    # z: no minus zero. More than seven decimals are written as a power of ten.
    form = f"z.{digits}f" if digits <= 7 else ".1e"
    text = f"{mean:{'+' if sign else ''}{form}}"
    return f"{text} ({'—' if math.isnan(se) else f'{se:{form}}'})".replace("-", "−")


def means(results: Results, rows: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Return one row per cell: axes, n, and ``METRIC`` and ``METRIC_se`` of every metric."""
    table = average(rows, results.axes, metrics)
    pairs = [name for metric in metrics for name in (metric, f"{metric}_se")]
    return in_order(results, table[[*results.axes, "n", *pairs]])


def differences(results: Results, along: str, metrics: Sequence[str]) -> pd.DataFrame:
    """Return mean paired differences of every pair of values of one axis, later minus earlier."""
    values = results.values(along)
    if len(values) < 2:
        return pd.DataFrame()
    keys = [axis for axis in results.axes if axis != along]
    rows = results.outcome.set_index([*keys, "replicate", along])[list(metrics)]
    # One column per value of the axis: a contrast is a difference of two columns.
    columns = rows.unstack(along)
    pairs = {
        f"{title(along, second)} minus {title(along, first)}": (first, second)
        for first, second in combinations(values, 2)
    }
    changes = {
        (contrast, metric): columns[metric, second] - columns[metric, first]
        for contrast, (first, second) in pairs.items()
        for metric in metrics
    }
    wide = pd.DataFrame(changes)
    wide.columns.names = ["contrast", None]
    groups = wide.groupby(level=keys, sort=False)
    mean, error, count = (each.stack("contrast", future_stack=True) for each in measure(groups))
    table = mean.join(error.add_suffix("_se"))
    table.insert(0, "n", count.max(axis=1))
    table = in_order(results, table[table["n"] > 0].reset_index())
    # Contrasts are in the order of the values that they compare.
    order = {contrast: place for place, contrast in enumerate(pairs)}
    table = table.sort_values("contrast", key=lambda names: names.map(order), kind="stable")
    return table[["contrast", *table.columns.drop("contrast")]]


def replicates_text(table: pd.DataFrame) -> str:
    """Return the number of replicates behind a table, such as "4 to 5 replicates"."""
    return count_of(int(table["n"].min()), "replicate", int(table["n"].max()))


def collapse(table: pd.DataFrame, axis: str, count: int) -> pd.DataFrame:
    """Replace rows that are equal for every value of an axis by one, with the value "either"."""
    keys = [name for name in table.columns if name != axis]
    groups = table.groupby(keys, sort=False, dropna=False)[axis]
    same = groups.transform("size") == count
    repeated = same & table.duplicated(keys)
    return table.assign(**{axis: table[axis].where(~same, "either")})[~repeated]


def shown(table: pd.DataFrame, metrics: Sequence[str] = (), sign: bool = False) -> pd.DataFrame:
    """Return the cells as text: display names of axes, and mean (SE) of every metric."""
    text: dict[str, Any] = {}
    if "contrast" in table:
        text["Contrast"] = table["contrast"]
    for axis in known("axis", table):
        text[COLUMNS[axis].heading] = [display_name(axis, v) for v in table[axis]]
    for name in metrics:
        text[COLUMNS[name].label] = mean_se(table[name], table[f"{name}_se"], sign)
    return pd.DataFrame(text)


def in_order(
    results: Results, table: pd.DataFrame, by: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return cells sorted by these axes, default all, in the order of values in the results."""
    by = [axis for axis in results.order if axis in table] if by is None else list(by)
    position = {axis: {v: i for i, v in enumerate(results.values(axis))} for axis in by}
    return table.sort_values(
        by, key=lambda own: own.map(position[str(own.name)]), ignore_index=True, kind="stable"
    )
