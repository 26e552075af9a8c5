"""A metric, a figure and a scenario that are added from outside the package."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from helpers.study.signs import count_wrong_signs
from matplotlib import pyplot as plt

from fedlasso.report import FIGURES, Results, write_report
from fedlasso.report.figures import Figure, look
from fedlasso.study import SCENARIOS, PaperStudy, Scenario, Store, run_study
from fedlasso.study.outcomes import METRICS, add_metric
from fedlasso.study.record_columns import COLUMNS, Field

SIGNS = Field("wrong_signs", "Wrong signs", "metric", "lower", caption="Signs that are wrong.")
TINY = Scenario("tiny", sizes=(15, 12), p=20, nonzeros=3, validation=10, test=20)


def sign_figure(results: Results) -> Figure | None:
    if SIGNS.name not in results.metrics:
        return None
    with look():
        canvas, axes = plt.subplots()
        axes.hist(results.outcome[SIGNS.name])
    return Figure("signs", "Wrong signs", "How often a sign is wrong.", canvas)


@pytest.fixture
def added() -> Iterator[None]:
    add_metric(SIGNS, count_wrong_signs)
    FIGURES.append(sign_figure)
    SCENARIOS[TINY.name] = TINY
    yield
    del SCENARIOS[TINY.name]
    FIGURES.remove(sign_figure)
    del METRICS[SIGNS.name]
    del COLUMNS[SIGNS.name]


def test_they_are_recorded_and_reported(added: None, tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    # Worker processes are new ones, which have not added anything themselves.
    study = PaperStudy(epochs=(1, 5), budgets=(30,))
    run_study(study, [SCENARIOS["tiny"]], 2, store, workers=1)
    rows = store.table()
    assert rows["wrong_signs"].notna().all()
    assert store.table("reference")["wrong_signs"].notna().all()
    write_report(store.folder, tmp_path)
    grid = pd.read_csv(tmp_path / "tables" / "grid.csv")
    assert grid["wrong_signs"].mean() == pytest.approx(rows["wrong_signs"].mean())
    page = (tmp_path / "index.html").read_text()
    assert '"label":"Wrong signs"' in page
    assert "How often a sign is wrong." in page
    assert (tmp_path / "figures" / "signs.pdf").stat().st_size > 0


def test_without_them_nothing_is_left() -> None:
    assert "wrong_signs" not in PaperStudy(epochs=(1,), budgets=(30,)).replicate(TINY, 0)[-1]
