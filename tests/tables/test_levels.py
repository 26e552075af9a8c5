"""Levels of text: agreed by counts per site, rare ones pooled, alike however the rows are split."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedlasso import FedLassoError
from fedlasso.cli import main
from fedlasso.tables import OTHER, agree_levels, common_levels, count_others, union_levels
from fedlasso.tables.values import from_cells

pytestmark = pytest.mark.usefixtures("no_charts")

NORTH = ["east"] * 12 + ["west"] * 11 + ["attic"] * 3 + [None] * 4
SOUTH = ["west"] * 2 + ["cellar"] * 10 + ["east"] * 9


def write(path: Path, wards: Sequence[str | None], seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.standard_normal(len(wards)), "ward": wards})
    frame["y"] = frame["age"] + (frame["ward"] == "west") + 0.1 * rng.standard_normal(len(wards))
    frame.to_csv(path, index=False)
    return path


def run(*arguments: object) -> int:
    return main([str(a) for a in arguments])


def levels_in(model: Path) -> list[str]:
    columns = json.loads((model / "model.json").read_text())["schema"]["columns"]
    (levels,) = [column["levels"] for column in columns if column["name"] == "ward"]
    return list(levels)


def test_a_level_counts_if_some_site_has_it_often() -> None:
    columns = [from_cells(wards) for wards in (NORTH, SOUTH)]
    reported = [common_levels(column, 10) for column in columns]
    assert reported == [("east", "west"), ("cellar",)]
    assert [count_others(column, union_levels(reported)) > 0 for column in columns] == [True, False]
    for per_site in (reported, reported[::-1]):
        assert agree_levels("ward", per_site, True) == ("cellar", "east", "west", OTHER)
        assert agree_levels("ward", per_site, False) == ("cellar", "east", "west")


def test_rare_levels_are_one_level_at_every_site_and_for_predictions(tmp_path: Path) -> None:
    files = [write(tmp_path / "north.csv", NORTH), write(tmp_path / "south.csv", SOUTH, 1)]
    options = ("--target", "y", "--missing", "mean", "--penalty", 0.001, "--no-compare", "--out")
    assert run("fit", *files, *options, tmp_path / "model") == 0
    assert levels_in(tmp_path / "model") == ["cellar", "east", "west", OTHER]
    write(tmp_path / "rare.csv", ["attic", "roof"] * 5)
    write(tmp_path / "other.csv", [OTHER] * 10)
    for name in ("rare", "other"):
        assert run("predict", tmp_path / "model", tmp_path / f"{name}.csv", "--out",
                   tmp_path / f"{name} predicted.csv") == 0  # fmt: skip
    rare, other = (tmp_path / f"{name} predicted.csv" for name in ("rare", "other"))
    assert rare.read_bytes() == other.read_bytes()


def test_one_table_and_files_agree_on_the_same_levels(tmp_path: Path) -> None:
    files = [write(tmp_path / "north.csv", NORTH), write(tmp_path / "south.csv", SOUTH, 1)]
    parts = [pd.read_csv(file).assign(site=file.stem) for file in files]
    pd.concat(parts).to_csv(tmp_path / "all.csv", index=False)
    options = ("--target", "y", "--missing", "mean", "--penalty", 0.01, "--no-compare", "--out")
    assert run("fit", *files, *options, tmp_path / "one") == 0
    table = ("fit", tmp_path / "all.csv", "--site-column", "site")
    assert run(*table, *options, tmp_path / "two") == 0
    for name in ("coefficients.csv", "model.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_every_level_may_count(tmp_path: Path) -> None:
    file = write(tmp_path / "north.csv", NORTH)
    options = ("--target", "y", "--missing", "mean", "--penalty", 0.01, "--no-compare", "--out")
    assert run("fit", file, "--min-level", 1, *options, tmp_path / "model") == 0
    assert levels_in(tmp_path / "model") == ["attic", "east", "west"]


@pytest.mark.parametrize("wards", [["a", "b"], ["a"] * 9])
def test_no_level_that_counts_is_one_clear_error(wards: list[str]) -> None:
    column = from_cells(wards)
    reported = [common_levels(column)]
    with pytest.raises(FedLassoError, match="no level has 10 rows or more at any site"):
        agree_levels("ward", reported, count_others(column, union_levels(reported)) > 0)
