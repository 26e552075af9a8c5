"""A procedure whose first round the budget does not pay for has no outcome, not a bad one."""

from pathlib import Path

import pandas as pd
import pytest
from helpers.study.small import SMALL

from fedlasso.report import Results, read_results
from fedlasso.report.table_registry import empty_table, grid_table
from fedlasso.study import Store, run_study
from fedlasso.study.literature import LiteratureStudy


@pytest.fixture(scope="module")
def unpaid(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder: Path = tmp_path_factory.mktemp("unpaid")
    study = LiteratureStudy(methods=("CD", "OneShotGram"), budgets=(5, 100))
    run_study(study, [SMALL], 2, Store(folder), workers=1)
    return read_results(folder)


def test_what_was_not_fitted_is_missing(unpaid: Results) -> None:
    rows = unpaid.outcome.set_index(["method", "budget"])
    assert (rows.loc[("OneShotGram", 5), "rounds"] == 0).all()
    assert rows.loc[("OneShotGram", 5), unpaid.metrics].isna().all(axis=None)
    for cell in (("OneShotGram", 100), ("CD", 5)):
        assert rows.loc[cell, unpaid.metrics].notna().all(axis=None)


def test_tables_have_a_dash_for_it(unpaid: Results) -> None:
    grid = grid_table(unpaid)
    row = grid.shown[grid.data["method"].eq("OneShotGram") & grid.data["budget"].eq(5)]
    assert set(row[["F1", "Test MSE", "Relative gap"]].to_numpy().ravel()) == {"—"}
    empty = empty_table(unpaid)
    assert empty is not None
    counted: pd.DataFrame = empty.data.query("method == 'OneShotGram'")
    assert counted["budget"].tolist() == [100]
