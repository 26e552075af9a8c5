"""The page of the study of trust."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedlasso.report import figures
from fedlasso.report.trust_section import discovery_figure, interval_figure
from fedlasso.report.write import write_report
from fedlasso.study import Scenario, Store, run_study
from fedlasso.study.trust import TrustStudy

FEW = Scenario("few", sizes=(60, 60), p=30, nonzeros=4, validation=40, test=10)


@pytest.mark.usefixtures("svg_only")
def test_discoveries_and_intervals_have_tables_and_figures(tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    run_study(TrustStudy(seed=5), [FEW], 2, store, workers=1)
    out = tmp_path / "report"
    results = write_report(store.folder, out)
    assert results.axes == ["scenario", "family", "method", "rate"]
    page = (out / "index.html").read_text()
    assert re.search("Linear, q = 0.1( and q = 0.2)?: the mean false discovery proportion", page)
    table = pd.read_csv(out / "tables" / "discoveries.csv").set_index(["method", "rate"])
    rows = results.at(method="one split", rate=0.2)
    assert table.loc[("one split", 0.2), "fdp"] == pytest.approx(rows["fdp"].mean())
    ours = results.at(method="discoveries", rate=0.2)
    difference = ours["recall"].to_numpy() - rows["recall"].to_numpy()
    paired = pd.read_csv(out / "tables" / "paired-discoveries.csv").set_index("rate")
    assert paired.loc[0.2, "recall"] == pytest.approx(difference.mean())
    assert paired.loc[0.2, "recall_se"] == pytest.approx(difference.std(ddof=1) / np.sqrt(2))
    intervals = pd.read_csv(out / "tables" / "intervals.csv").set_index("rate")
    assert intervals.loc[0.2, "coverage_zero"] == pytest.approx(ours["coverage_zero"].mean())
    for name, words in (("discoveries", "20 splits"), ("intervals", "Zero beside nonzero")):
        assert words in (out / "figures" / f"{name}.svg").read_text()
    for make in (discovery_figure, interval_figure):
        figure = make(results)
        assert figure is not None
        # A panel is narrow: more labels would run into each other.
        for axes in figure.canvas.axes:
            low, high = axes.get_xlim()
            assert sum(low <= tick <= high for tick in axes.get_xticks()) <= 5


@pytest.mark.usefixtures("svg_only")
def test_designs_are_named_and_many_methods_stay_in_their_rows(tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    cells = [replace(FEW, name=name, design=name) for name in ("digits", "visits")]
    run_study(TrustStudy(seed=5), cells, 2, store, workers=1)
    results = write_report(store.folder, tmp_path / "report")
    page = (tmp_path / "report" / "index.html").read_text()
    assert "design visits" in page
    assert "Fed-FDR in" in page
    scenarios = (tmp_path / "report" / "tables" / "scenarios.md").read_text()
    assert "| visits" in scenarios
    table = pd.read_csv(tmp_path / "report" / "tables" / "intervals.csv")
    assert (table["not_given"] == 0).all()
    figure = discovery_figure(results)
    assert figure is not None
    # Marks of a scenario lie nearer to its row than to the next.
    for axes in figure.canvas.axes:
        marks = [line for line in axes.get_lines() if line.get_marker() in figures._MARKERS]
        places = np.array([line.get_ydata() for line in marks], dtype=float)
        assert places.shape == (5, 2)
        assert (np.abs(places - np.round(places)) < 0.45).all()
