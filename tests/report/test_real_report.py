"""The page of the study of real data."""

from pathlib import Path

import pandas as pd
import pytest
from helpers.study.tiny_data import write_data

from fedlasso.report.write import write_report
from fedlasso.study import Store, run_study
from fedlasso.study.real import RealStudy

METHODS = ("prediction", "selection", "LassoCV")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    study = RealStudy(methods=METHODS, data=str(write_data(tmp_path / "data")))
    scenarios = [study.scenarios[name] for name in ("plain", "nearly")]
    store = Store(tmp_path / "results")
    run_study(study, scenarios, 2, store, workers=1)
    return store.folder


@pytest.mark.usefixtures("svg_only")
def test_findings_table_and_figure_are_on_the_page(folder: Path, tmp_path: Path) -> None:
    results = write_report(folder, tmp_path / "report")
    assert results.axes == ["scenario", "method", "split"]
    page = (tmp_path / "report" / "index.html").read_text()
    assert "What was found" in page
    assert "than pooled LassoCV on average over 2 data sets." in page
    assert "splits of real data" in page
    assert "simulated data sets" not in page
    judged = pd.read_csv(tmp_path / "report" / "tables" / "judged.csv")
    assert len(judged) == 2 * 2 * 3
    ours = results.at(scenario="plain", method="prediction", split="sorted")["test_mse"]
    judge = results.at(scenario="plain", method="LassoCV")["test_mse"]
    (row,) = judged.query(
        "scenario == 'plain' and method == 'prediction' and split == 'sorted'"
    ).to_dict("records")
    assert row["percent"] == pytest.approx(100 * (ours.mean() / judge.mean() - 1))
    data = pd.read_csv(tmp_path / "report" / "tables" / "data.csv")
    assert data[["scenario", "rows", "columns"]].to_numpy().tolist() == [
        ["plain", 40, 5],
        ["nearly", 40, 5],
    ]
    figure = (tmp_path / "report" / "figures" / "judged.svg").read_text()
    assert "plain" in figure
    assert "in order of the response" in figure
    for name in ("main", "scenarios"):
        assert not (tmp_path / "report" / "tables" / f"{name}.csv").exists()


@pytest.mark.usefixtures("svg_only")
def test_records_without_a_judge_are_reported_too(tmp_path: Path) -> None:
    study = RealStudy(methods=("selection",), data=str(write_data(tmp_path / "data")))
    store = Store(tmp_path / "results")
    run_study(study, [study.scenarios["plain"]], 1, store, workers=1)
    write_report(store.folder, tmp_path / "report")
    assert not (tmp_path / "report" / "tables" / "judged.csv").exists()
    assert (tmp_path / "report" / "tables" / "data.csv").exists()
