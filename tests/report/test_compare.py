"""Comparison with published means."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fedlasso.cli import main
from fedlasso.report import compare
from fedlasso.report.compare import find_spread
from fedlasso.report.records import Results

CELLS = ["scenario", "method", "epochs"]


@pytest.fixture
def published(results: Results) -> pd.DataFrame:
    """Our own main table, as if somebody had printed it."""
    rows = results.at(budget=100, panel="joint", rule="min", scenario="baseline")
    groups = rows.groupby(CELLS)["test_mse"].agg(["mean", "sem"]).reset_index()
    return groups.rename(columns={"sem": "se"}).assign(metric="test_mse")


def test_our_own_table_agrees_with_itself(
    folder: Path, published: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "table.csv"
    published.to_csv(file, index=False)
    comparison = compare(folder, file)
    assert comparison.agrees
    assert len(comparison.cells) == 12
    assert np.abs(comparison.cells["z"]).max() < 1e-9
    assert main(["compare", str(folder), "--published", str(file)]) == 0
    assert "Agree: largest |z| 0.00" in capsys.readouterr().out


def test_a_shifted_cell_is_found_with_its_z(
    folder: Path, published: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "table.csv"
    published.loc[3, "mean"] -= 10 * published.loc[3, "se"]
    published.to_csv(file, index=False)
    comparison = compare(folder, file)
    assert not comparison.agrees
    assert comparison.cells["z"].to_numpy() == pytest.approx(
        [0, 0, 0, 10 / 2**0.5, *[0] * 8], abs=1e-9
    )
    assert main(["compare", str(folder), "--published", str(file)]) == 1
    assert "Differ: largest |z| 7.07" in capsys.readouterr().out


@pytest.mark.parametrize("count", [1, 2, 4])
def test_known_replicates_are_a_t_test_of_two_samples(count: int, results: Results) -> None:
    """With the published values at hand, SciPy's test of equal means has the same statistic."""
    rows = results.at(budget=100, panel="joint", rule="min", scenario="baseline")
    own = rows[(rows["method"] == "DA") & (rows["epochs"] == 20)]["test_mse"].to_numpy()
    theirs = own.mean() + own.std() * np.random.default_rng(3).standard_normal(9) + 1
    cell = pd.DataFrame(
        {
            "our_se": [stats.sem(own[:count]) if count > 1 else np.nan],
            "n": [count],
            "se": [stats.sem(theirs)],
            "replicates": [theirs.size],
        }
    )
    expected = stats.ttest_ind(own[:count], theirs).statistic
    difference = own[:count].mean() - theirs.mean()
    assert difference / find_spread(cell)[0] == pytest.approx(expected)


def test_a_table_may_say_how_many_replicates_it_has(
    folder: Path, published: pd.DataFrame, tmp_path: Path
) -> None:
    file = tmp_path / "table.csv"
    published.loc[3, "mean"] -= 3 * published.loc[3, "se"]
    published.assign(replicates=4).to_csv(file, index=False)
    # As many replicates on either side: the variances add.
    assert compare(folder, file).cells["z"][3] == pytest.approx(3 / 2**0.5)


def test_cells_that_are_not_in_the_records_are_said(
    folder: Path, published: pd.DataFrame, tmp_path: Path
) -> None:
    file = tmp_path / "table.csv"
    published["scenario"] = ["elsewhere"] + ["baseline"] * 11
    published.to_csv(file, index=False)
    comparison = compare(folder, file)
    assert not comparison.agrees
    assert "1 of 12 published cells could not be compared" in comparison.verdict
    published.assign(scenario="elsewhere").to_csv(file, index=False)
    assert "Nothing to compare" in compare(folder, file).verdict


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("scenario,method\na,b\n", "lacks the columns epochs, metric, mean, se"),
        ("scenario,method,epochs,metric,mean,se\n", "has no rows"),
        ("scenario,method,epochs,metric,mean,se\nbaseline,CD,1,beauty,1,1\n", "no metric 'beauty'"),
        ("scenario,method,epochs,metric,mean,se\nbaseline,CD,1,f1,1,-1\n", "error is negative"),
        ("scenario,method,epochs,metric,mean,se,replicates\nbaseline,CD,1,f1,1,1,1\n", "above 1"),
        ("scenario,method,epochs,metric,mean,se\nbaseline,CD,1,f1,x,1\n", "'mean' must be numeric"),
        ("", "is not a CSV table"),
    ],
)
def test_bad_tables_are_one_clear_line(
    text: str, error: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "table.csv"
    file.write_text(text)
    assert main(["compare", str(folder), "--published", str(file)]) == 2
    said = capsys.readouterr().err
    assert error in said
    assert said.count("\n") == 1


def test_a_missing_table_is_one_clear_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(folder), "--published", "nowhere.csv"]) == 2
    assert "cannot read nowhere.csv: No such file" in capsys.readouterr().err
