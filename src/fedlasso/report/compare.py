"""Compare records with a table of published means and standard errors."""

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pandas as pd

from fedlasso.errors import FedLassoError
from fedlasso.report.records import Results, read_results
from fedlasso.study import SCENARIOS, summarise
from fedlasso.study.record_columns import axes

# Replicates behind the paper's means.
PUBLISHED_REPLICATES = 50


@dataclass(frozen=True, eq=False)
class Comparison:
    """Our mean beside every published one, and the overall verdict."""

    cells: pd.DataFrame  # with z, ours minus published in standard errors of the difference
    agrees: bool
    verdict: str


def compare(folder: Path, published: Path | None = None) -> Comparison:
    """Compare a results folder with a CSV file of published means; by default the paper's own."""
    results = read_results(folder)
    table = read_main() if published is None else _read_published(published)
    return compare_with_table(results, table, str(published or "the paper's main table"))


def compare_with_table(results: Results, table: pd.DataFrame, source: str) -> Comparison:
    """Return our mean beside every published one, with the difference in standard errors."""
    metrics = list(dict.fromkeys(table["metric"]))
    numbers = results.outcome.select_dtypes("number")
    for metric in metrics:
        if metric not in numbers:
            known = ", ".join(results.metrics)
            raise FedLassoError(f"{source}: no metric {metric!r} in these records; known: {known}")
    if absent := [axis for axis in results.axes if axis not in table]:
        raise FedLassoError(f"{source} lacks the columns {', '.join(absent)}")
    rows = results.outcome[[*results.axes, *metrics]]
    for axis in results.axes:
        rows = rows[rows[axis].isin(set(table[axis]))]
    ours = summarise(rows, metrics).rename(columns={"mean": "our_mean", "se": "our_se"})
    by = [*results.axes, "metric"]
    shown = ours[[*by, "our_mean", "our_se", "n"]]
    cells = table.merge(shown, how="left", on=by, validate="many_to_one")
    spread = find_spread(cells)
    difference = cells["our_mean"] - cells["mean"]
    # Without any standard error, means either agree exactly or differ infinitely.
    exact = np.where(difference == 0, 0.0, np.copysign(np.inf, difference))
    cells["z"] = np.where(spread == 0, exact, difference / spread.where(spread > 0))
    return Comparison(cells, *_judge(cells["z"]))


def find_spread(cells: pd.DataFrame) -> pd.Series:
    """Return the standard error of the difference between our mean and the published one.

    Both studies have the same variance. If the published number of replicates is known, the
    variance is pooled over both, since few replicates of ours estimate it badly.
    """
    ours = cells["our_se"] ** 2
    theirs = cells["se"] ** 2
    if "replicates" not in cells:
        return np.sqrt(ours + theirs)
    n = cells["n"]
    m = cells["replicates"]
    # One replicate has no estimate of the variance.
    squares = (n - 1) * n * ours.mask(n == 1, 0.0) + (m - 1) * m * theirs
    return np.sqrt(squares / (n + m - 2) * (1 / n + 1 / m))


@lru_cache(maxsize=1)
def agree_with_paper(results: Results) -> Comparison | None:
    """Compare with the paper's main table; None if no cell is in both."""
    scenarios = results.manifest.scenarios
    same = [s for s in results.values("scenario") if scenarios[s] == SCENARIOS.get(s)]
    table = read_main()
    table = table[table["scenario"].isin(same)]
    needed = {"scenario", "method", "epochs", "budget", "panel", "rule"}
    if table.empty or set(results.axes) != needed or 100 not in results.values("budget"):
        return None
    comparison = compare_with_table(results, table, "the paper's main table")
    return None if comparison.cells["z"].isna().all() else comparison


def read_main() -> pd.DataFrame:
    """Return the paper's main table, one row per published mean."""
    with (files("fedlasso.report") / "published" / "main.csv").open(encoding="utf-8") as file:
        wide = pd.read_csv(file).rename(columns={"E": "epochs"})
    wide["scenario"] = wide["scenario"].replace("different", "different-distributions")
    cell = wide[["scenario", "method", "epochs"]]
    parts = [
        cell.assign(metric=metric, mean=wide[name], se=wide[f"{name}_se"])
        for name, metric in (("f1", "f1"), ("mse", "test_mse"), ("gap", "gap"))
    ]
    return _usual_axes(pd.concat(parts, ignore_index=True).assign(replicates=PUBLISHED_REPLICATES))


def read_citation() -> str:
    text = files("fedlasso.report") / "published" / "CITATION.txt"
    return text.read_text(encoding="utf-8").strip()


def _read_published(file: Path) -> pd.DataFrame:
    """Read a published table; axes that it lacks are as in the paper's main table."""
    try:
        table = pd.read_csv(file)
    except OSError as error:
        raise FedLassoError(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise FedLassoError(f"{file} is not a CSV table: {error}") from error
    needed = ("scenario", "method", "epochs", "metric", "mean", "se")
    if absent := [name for name in needed if name not in table]:
        raise FedLassoError(f"{file} lacks the columns {', '.join(absent)}")
    if table.empty:
        raise FedLassoError(f"{file} has no rows")
    for name in ("epochs", "mean", "se"):
        if not pd.api.types.is_numeric_dtype(table[name]):
            raise FedLassoError(f"{file}: column {name!r} must be numeric")
    if (table["se"] < 0).any():
        raise FedLassoError(f"{file}: a standard error is negative")
    if "replicates" in table and not (pd.to_numeric(table["replicates"], "coerce") > 1).all():
        raise FedLassoError(f"{file}: column 'replicates' must hold numbers above 1")
    return _usual_axes(table)


def _usual_axes(table: pd.DataFrame) -> pd.DataFrame:
    for name, axis in axes().items():
        if axis.usual is not None:
            table[name] = table[name].fillna(axis.usual) if name in table else axis.usual
    return table


def _judge(z: pd.Series) -> tuple[bool, str]:
    known = z.dropna()
    absent = len(z) - len(known)
    left = f" {absent} of {len(z)} published cells could not be compared." if absent else ""
    if known.empty:
        return False, "Nothing to compare: no published cell is in these records." + left
    limit = -NormalDist().inv_cdf(0.025 / len(known))
    worst = float(known.abs().max())
    beyond = int((known.abs() > 1.96).sum())
    agrees = worst <= limit
    word = "Agree" if agrees else "Differ"
    return agrees and not absent, (
        f"{word}: largest |z| {worst:.2f} against {limit:.2f}, the 5% limit for {len(known)} cells "
        f"at once (Bonferroni); {beyond} of {len(known)} cells beyond 1.96, "
        f"about {0.05 * len(known):.1f} expected by chance." + left
    )
