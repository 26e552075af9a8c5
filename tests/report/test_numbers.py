"""Printed numbers against the raw rows by another route: plain Python over the Parquet parts."""

import csv
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from fedlasso.report.figure_registry import (
    EPOCHS,
    PAIR,
    baseline_figure,
    contrast_figure,
    theory_figure,
)
from fedlasso.report.records import Results
from fedlasso.report.table_registry import TABLES, empty_table, grid_table

AXES = ("scenario", "method", "epochs", "budget", "panel", "rule")


@pytest.fixture(scope="module")
def raw(folder: Path) -> list[dict[str, Any]]:
    parts = sorted(folder.glob("parts/*/*.parquet"))
    rows = [row for part in parts for row in pq.ParquetFile(part).read().to_pylist()]
    return [row for row in rows if row["record"] == "outcome"]


def values(raw: list[dict[str, Any]], metric: str, **where: Any) -> dict[int, float]:
    return {
        row["replicate"]: row[metric] for row in raw if all(row[k] == v for k, v in where.items())
    }


def mean_se(numbers: list[float]) -> tuple[float, float]:
    return statistics.fmean(numbers), statistics.stdev(numbers) / len(numbers) ** 0.5


def read(file: Path) -> list[dict[str, str]]:
    with file.open() as lines:
        return list(csv.DictReader(lines))


@pytest.mark.parametrize("name", ["main", "grid", "cutoffs", "resources"])
def test_means_are_those_of_the_raw_rows(
    name: str, raw: list[dict[str, Any]], results: Results, report: Path
) -> None:
    table = read(report / "tables" / f"{name}.csv")
    assert len(table) == {"main": 12}.get(name, 2 * 4 * 3 * 2 * 2 * 2)
    metrics = [column for column in table[0] if f"{column}_se" in table[0] and column in raw[0]]
    assert metrics
    for row in table[:: max(1, len(table) // 15)]:
        where = {a: type(raw[0][a])(row[a]) for a in AXES}
        for metric in metrics:
            numbers = [v for v in values(raw, metric, **where).values() if v is not None]
            assert len(numbers) in (0, int(row["n"]), 4)
            if numbers:
                expected = mean_se(numbers)
                found = float(row[metric]), float(row[f"{metric}_se"])
                assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_paired_differences_are_taken_within_replicate(
    raw: list[dict[str, Any]], results: Results, report: Path
) -> None:
    table = read(report / "tables" / "paired-method.csv")
    assert len(table) == 6 * 2 * 3 * 2 * 2 * 2
    for row in table[::29]:
        second, _, first = row["contrast"].partition(" minus ")
        where = {a: type(raw[0][a])(row[a]) for a in AXES if a != "method"}
        a, b = (values(raw, "f1", method=m, **where) for m in (first, second))
        expected = mean_se([b[r] - a[r] for r in a])
        assert (float(row["f1"]), float(row["f1_se"])) == pytest.approx(expected, abs=1e-12)


def test_shares_of_empty_models(raw: list[dict[str, Any]], results: Results, report: Path) -> None:
    for row in read(report / "tables" / "empty.csv")[::17]:
        where = {a: type(raw[0][a])(row[a]) for a in AXES}
        active = list(values(raw, "active", **where).values())
        assert float(row["share"]) == sum(v == 0 for v in active) / len(active)


def test_the_printed_main_table_rounds_its_numbers(results: Results, report: Path) -> None:
    first = read(report / "tables" / "main.csv")[0]
    text = (report / "tables" / "main.md").read_text()
    line = next(line for line in text.splitlines() if line.startswith("| CD | 1 |"))
    shown = line.split("|")[3].split()[0]
    assert float(shown) == pytest.approx(float(first["f1"]), abs=0.51 * 10 ** -len(shown[2:]))
    latex = (report / "tables" / "main.tex").read_text()
    assert f"& {shown} (" in latex
    assert "Different site distributions" in text  # said to be absent


def test_points_of_the_baseline_figure(raw: list[dict[str, Any]], results: Results) -> None:
    figure = baseline_figure(results)
    assert figure is not None
    for axes, (panel, metric) in zip(
        figure.canvas.axes,
        [(p, m) for p in ("upload", "joint") for m in ("f1", "test_mse", "relative_gap")],
        strict=True,
    ):
        for container in axes.containers:
            expected = [
                statistics.fmean(
                    values(raw, metric, scenario="baseline", budget=100, rule="min", panel=panel,
                           method=container.get_label(), epochs=epochs).values()
                )
                for epochs in (1, 5, 20)
            ]  # fmt: skip
            line: Any = container[0]
            assert line.get_ydata() == pytest.approx(expected)


def test_points_of_the_contrast_figure(raw: list[dict[str, Any]], results: Results) -> None:
    figure = contrast_figure(results)
    assert figure is not None
    for axes, method in zip(figure.canvas.axes, ("CD", "ST", "P", "DA"), strict=True):
        expected = []
        for scenario in ("baseline", "other"):
            where = {"scenario": scenario, "budget": 100, "rule": "min", "panel": "joint"}
            a, b = (values(raw, "f1", method=method, epochs=e, **where) for e in (1, 20))
            expected.append(statistics.fmean(b[r] - a[r] for r in a))
        container: Any = axes.containers[0]
        assert container[0].get_xdata() == pytest.approx(expected, abs=1e-12)


def test_points_of_the_theory_figure_by_running_the_iteration() -> None:
    figure = theory_figure()
    assert figure is not None
    left = figure.canvas.axes[0]
    H = [np.asarray(h) for h in PAIR.grams]
    z = [np.asarray(score) for score in PAIR.scores]

    def objective(b: Any) -> float:
        smooth = sum(b @ h @ b / 2 - s @ b for h, s in zip(H, z, strict=True)) / 2
        return float(smooth + PAIR.lam * np.abs(b).sum())

    dots: Any = left.lines[1].get_ydata()
    for epochs, shown in zip(EPOCHS, dots, strict=True):
        b: Any = np.zeros(2)
        for _ in range(200):
            local = []
            for h, s in zip(H, z, strict=True):
                c = b.copy()
                for _ in range(epochs):
                    c[0] = max(s[0] - h[0, 1] * c[1] - PAIR.lam, 0)
                    c[1] = max(s[1] - h[0, 1] * c[0] - PAIR.lam, 0)
                local.append(c)
            b = sum(local) / 2
        best = np.linalg.solve(sum(H) / 2, sum(z) / 2 - PAIR.lam)
        assert shown == pytest.approx(objective(b) - objective(best), abs=1e-12)


def test_cells_that_are_the_same_are_printed_once(results: Results) -> None:
    grid = grid_table(results)
    assert len(grid.data) == 192
    assert len(grid.shown) < 192
    cd = grid.shown[(grid.shown["Method"] == "CD") & (grid.shown["E"] == "1")]
    assert set(cd["Rule"]) == set(cd["Panel"]) == {"either"}
    # Printed rows stand for all cells: an "either" for as many as there are values.
    weight = grid.shown[["Panel", "Rule"]].eq("either").sum(axis=1)
    assert (2**weight).sum() == 192


def test_zero_thresholds_are_counted_by_scenario(
    raw: list[dict[str, Any]], results: Results
) -> None:
    table = empty_table(results)
    assert table is not None
    for method in ("ST", "P"):
        chosen = [
            row["candidate"]
            for row in raw
            if (row["scenario"], row["method"], row["budget"], row["panel"], row["rule"])
            == ("other", method, 100, "joint", "min")
        ]
        (line,) = table.shown.query(f"Scenario == 'other' and Method == '{method}'").to_dict(
            "records"
        )
        assert line["Zero threshold"] == f"{sum(c == 0 for c in chosen)} of {len(chosen)}"
    (line,) = table.shown.query("Scenario == 'other' and Method == 'DA'").to_dict("records")
    assert line["Zero threshold"] == "—"


def test_every_table_of_the_supplement_is_introduced(results: Results) -> None:
    for make in TABLES:
        table = make(results)
        assert table is None or len(table.prose) > 80, table.name
