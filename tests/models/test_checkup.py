"""`fedlasso check`: every problem of all files at once, and Table 1 by site."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedlasso.cli import main
from fedlasso.fitting import Settings
from fedlasso.models import FileSource
from fedlasso.models.check_page import describe_check, draw_check, write_findings_csv
from fedlasso.models.checkup import Checked, check_files, find_in_table
from fedlasso.models.table_one_cells import table_cells, write_table_csv

BINOMIAL = Settings(family="binomial")
SITES = ("north", "south", "west")


def draw_clean(rows: int, seed: int) -> pd.DataFrame:
    """Patients of one site: nothing to mend."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(60, 10, rows).round(1),
            "weight": rng.normal(80, 12, rows).round(1),
            "sex": rng.choice(["male", "female"], rows),
            "smoker": rng.integers(0, 2, rows),
            "score": rng.normal(5, 1, rows).round(2),
        }
    )
    risk = 0.05 * (frame["age"] - 60) + 0.8 * frame["smoker"]
    frame["relapse"] = np.where(rng.random(rows) < 1 / (1 + np.exp(-risk)), "yes", "no")
    return frame


def write(frames: dict[str, pd.DataFrame]) -> tuple[str, ...]:
    for name, frame in frames.items():
        frame.to_csv(f"{name}.csv", index=False)
    return tuple(f"{name}.csv" for name in frames)


@pytest.fixture
def frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, pd.DataFrame]:
    monkeypatch.chdir(tmp_path)
    return {name: draw_clean(60 + 10 * k, k) for k, name in enumerate(SITES)}


def check(frames: dict[str, pd.DataFrame], settings: Settings = BINOMIAL, **more: Any) -> Checked:
    source = {"files": write(frames), "target": "relapse"} | more
    return check_files(FileSource(**source), settings)


def test_clean_files_have_nothing_to_mend(
    frames: dict[str, pd.DataFrame], capsys: pytest.CaptureFixture[str]
) -> None:
    files = write(frames)
    out = ["--out", "check.html"]
    assert main(["check", *files, "--target", "relapse", "--family", "binomial", *out]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(
        "0 problems to mend, 1 note.\nnote  column 'relapse': has two classes"
    )
    assert "Table 1: mean (SD) or n (%)" in printed
    assert {path.name for path in Path().glob("check*")} == {
        "check.html",
        "check-findings.csv",
        "check-table1.csv",
    }


def test_all_problems_of_three_files_are_found_at_once(
    frames: dict[str, pd.DataFrame], capsys: pytest.CaptureFixture[str]
) -> None:
    north, south, west = frames.values()
    rng = np.random.default_rng(9)
    for k, frame in enumerate(frames.values()):
        frame["record"] = np.arange(1000 * k, 1000 * k + len(frame))
        frame["who"] = [f"P{k}{row}" for row in range(len(frame))]
        frame["country"] = "NO"
        frame["stage"] = rng.integers(1, 5, len(frame))
        frame["ward"] = rng.choice(["a", "b"], len(frame))
        frame["dose"] = rng.choice([1.0, 2.5, 4.0, 5.5], len(frame))
        frame["unit"] = rng.choice(["x", "y"], len(frame))
        frame["letter"] = (frame["relapse"] == "yes") * 10 + rng.normal(0, 1, len(frame)).round(2)
    south["weight"] = (south["weight"] * 2.2046).round(1)
    south["sex"] = south["sex"].str.title()
    south["dose"] = south["dose"].astype(str)
    south.loc[3, "dose"] = "?"
    south.loc[:1, "unit"] = "rare"
    west.loc[:4, "smoker"] = np.nan
    west.loc[5:8, "score"] = -9
    west["ward"] = rng.integers(1, 3, len(west))
    west["extra"] = 1.0
    frames["west"] = pd.concat([west, north.iloc[:5].assign(ward=1, extra=2)], ignore_index=True)
    frames["south"] = south.rename(columns={"age": "Age "})
    checked = check(frames)
    found = {(f.column, f.sites): str(f) for f in checked.findings}
    expected = {
        ("Age ", ("south",)): "is called 'age' at other sites; rename it",
        (
            "extra",
            ("west",),
        ): "is not at north, south; add it there, or leave it out (--drop",
        ("", ("north", "west")): "5 rows are the same at both",
        ("record", SITES): "identifies the rows: every value differs; a fit leaves it out",
        ("who", SITES): "identifies the rows",
        ("weight", ("south",)): "by about 2.2046 (pounds and kilograms); use one unit",
        ("sex", ()): "differ only in case or blanks: 'Female' at south; 'Male' at south;",
        ("smoker", ()): "is missing: 5 at west; fill them, or replace them by the mean",
        ("score", ("west",)): "holds -9, which may mean a missing value",
        ("ward", ()): "holds texts at north, south but numbers at west; use one type",
        ("dose", ("south",)): "holds '?' among numbers; correct it, or name it as missing",
        ("country", ()): "is 'NO' in every row of all sites; a fit leaves it out",
        ("stage", ()): "holds only 1, 2, 3, 4; if these are codes and not amounts, make them",
        ("unit", ()): "a level has fewer than 10 rows at every site ('rare')",
        ("letter", ()): "alone predicts 'relapse' almost perfectly (AUROC 1.000)",
        ("relapse", ()): "has two classes: 'yes' is 1 and 'no' is 0; name the event",
    }
    assert set(found) == set(expected)
    for place, text in expected.items():
        assert text in found[place]
    options = (
        "--drop=extra,ward,letter --missing=mean --na='-9,?' --categorical=stage --positive=yes"
    )
    assert checked.options == options
    notes = {f.column for f in checked.findings if not f.mend}
    assert notes == {"record", "who", "country", "stage", "unit", "relapse"}
    files = [f"{name}.csv" for name in SITES]
    assert main(["check", *files, "--target", "relapse", "--family", "binomial"]) == 1
    assert "10 problems to mend, 6 notes." in capsys.readouterr().out
    assert "&#x27;Age &#x27;" in draw_check(checked)
    assert write_findings_csv(checked).count("\n") == len(expected) + 1


def test_the_options_of_a_check_make_the_files_ready(frames: dict[str, pd.DataFrame]) -> None:
    frames["west"].loc[:5, "score"] = -9
    for frame in frames.values():
        frame["letter"] = (frame["relapse"] == "yes") * 2.0 + 0.001 * frame["age"]
    checked = check(frames)
    assert checked.options == "--na=-9 --drop=letter --positive=yes"
    files = [f"{name}.csv" for name in SITES]
    how = ["--target", "relapse", "--family", "binomial", "--missing=mean"]
    assert main(["check", *files, *how, *checked.options.split()]) == 0


CODINGS = [
    ({"no": 0, "yes": 1}, None, False, "has two classes: '1' is 1 and '0' is 0"),
    ({"no": 1, "yes": 2}, None, True, "'2' is 1 and '1' is 0; name the event (--positive=2)"),
    ({"no": 1, "yes": 2}, "2", False, "'2' is 1 and '1' is 0; name the event (--positive=2)"),
    ({"no": "no", "yes": "Yes"}, None, False, "'Yes' is 1 and 'no' is 0"),
]


@pytest.mark.parametrize(("codes", "positive", "mend", "text"), CODINGS)
def test_the_coding_of_an_outcome_is_stated(
    frames: dict[str, pd.DataFrame],
    codes: dict[str, object],
    positive: str | None,
    mend: bool,
    text: str,
) -> None:
    for frame in frames.values():
        frame["relapse"] = frame["relapse"].map(codes)
    (finding,) = check(frames, positive=positive).findings
    assert (finding.mend, text in str(finding)) == (mend, True)


def test_sites_that_code_an_outcome_differently_are_found(
    frames: dict[str, pd.DataFrame],
) -> None:
    for k, frame in enumerate(frames.values()):
        frame["relapse"] = (frame["relapse"] == "yes").astype(int) + (k == 1)
    (finding,) = check(frames).findings
    assert str(finding) == (
        "column 'relapse': is coded differently: 0/1 at north, 1/2 at south, 0/1 at west; "
        "code it alike"
    )


@pytest.mark.parametrize("seed", range(4))
def test_units_are_named_by_the_factor_of_the_means(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frames = {
        site: pd.DataFrame({"weight": rng.normal(75, 10, 40), "heat": rng.normal(37, 0.5, 40)})
        for site in SITES
    }
    frames["south"]["weight"] *= 2.2046
    frames["north"]["heat"] = 32 + 1.8 * frames["north"]["heat"]
    # With few rows SDs differ by chance.
    frames["south"]["weight"] += 0.15 * (frames["south"]["weight"] - 75 * 2.2046)
    found = [str(f) for f in check(frames, target=None).findings]
    assert any("by about 2.2046 (pounds and kilograms); use one unit" in text for text in found)
    heat = "is larger here than at south, west as degrees Fahrenheit are than Celsius; use one unit"
    assert any(heat in text for text in found)


def test_missing_values_that_a_fit_replaces_need_no_option(frames: dict[str, pd.DataFrame]) -> None:
    frames["north"].loc[:6, "age"] = np.nan
    checked = check(frames, missing="mean")
    (finding,) = [str(f) for f in checked.findings if f.column == "age"]
    assert finding.endswith("is missing: 7 at north; a fit replaces them by the mean")
    assert "missing" not in checked.options


def test_a_leak_of_a_linear_outcome_and_of_a_text_column(frames: dict[str, pd.DataFrame]) -> None:
    for frame in frames.values():
        frame["pounds"] = frame["weight"] * 2.2046
        frame["reason"] = frame.pop("relapse").map({"yes": "relapse", "no": "well"})
    checked = check(frames, Settings(), target="weight")
    assert [f.column for f in checked.findings if f.mend] == ["pounds"]
    for frame in frames.values():
        frame["ended"] = (frame["reason"] == "well").astype(int)
    checked = check(frames, target="ended")
    assert [f.column for f in checked.findings if f.mend] == ["reason"]


def test_table_one_has_the_means_and_counts_of_the_records(
    frames: dict[str, pd.DataFrame],
) -> None:
    frames["north"].loc[:6, "age"] = np.nan
    checked = check(frames, missing="mean")
    table = checked.table
    assert table is not None
    whole = pd.concat(frames)
    assert table.rows == (60, 70, 80)
    assert table.events == tuple((f["relapse"] == "yes").sum() for f in frames.values())
    columns = {column.name: column for column in table.columns}
    assert next(iter(columns)) == "relapse"
    for name in ("age", "weight", "score"):
        parts = (*columns[name].sites, columns[name].pooled)
        for part, frame in zip(parts, (*frames.values(), whole), strict=True):
            assert part.mean == pytest.approx(frame[name].mean(), rel=1e-12)
            assert part.sd == pytest.approx(frame[name].std(), rel=1e-12)
            assert part.missing == frame[name].isna().sum()
    assert columns["sex"].levels == ("female", "male")
    assert columns["sex"].pooled.counts == tuple(whole["sex"].value_counts().sort_index())
    assert columns["smoker"].pooled.counts[1] == whole["smoker"].sum()
    heads, rows = table_cells(table)
    assert heads == ["", *SITES, "all sites"]
    assert ["age, missing", "7 (12%)", "0 (0%)", "0 (0%)", "7 (3%)"] in rows
    assert "age,,north,60,7," in write_table_csv(table)


def test_few_rows_are_withheld_so_that_no_difference_shows_them(
    frames: dict[str, pd.DataFrame],
) -> None:
    for frame in frames.values():
        frame["ward"] = np.resize(["a", "b", "c"], len(frame))
    frames["north"].loc[frames["north"].index[:3], "ward"] = "d"
    frames["south"].loc[frames["south"].index[:30], "ward"] = "d"
    checked = check(frames)
    assert checked.table is not None
    (ward,) = [column for column in checked.table.columns if column.name == "ward"]
    # Level d has 3 rows at north; with it goes the smallest other level, at every site.
    assert [part.counts.count(None) for part in ward.sites] == [2, 2, 2]
    assert all(part.counts[3] is None for part in ward.sites)
    assert None not in ward.pooled.counts
    assert "withheld, because fewer than 5 rows" in describe_check(checked)


def test_findings_withhold_what_table_one_withholds(frames: dict[str, pd.DataFrame]) -> None:
    for frame, count in zip(frames.values(), (7, 2, 7), strict=True):
        frame.loc[: count - 1, "age"] = np.nan
        frame.loc[:5, "score"] = np.nan
    checked = check(frames)
    found = {f.column: f.what for f in checked.findings}
    few = "numbers withheld, because fewer than 5 rows of some site lack it"
    assert found["age"] == f"is missing at north, south, west; {few}"
    assert found["score"] == "is missing: 6 at north, 6 at south, 6 at west"
    assert checked.table is not None
    described = {column.name: column for column in checked.table.columns}
    assert [part.missing for part in described["age"].sites] == [None] * 3
    assert [part.missing for part in described["score"].sites] == [6] * 3
    texts = {f.column: f.what for f in find_in_table(checked.table, fills=False)}
    assert texts["age"] == f"is missing in some of 210 rows; {few}"
    assert texts["score"] == "is missing in 18 of 210 rows"


def test_no_difference_shows_a_few_rows_or_missing_values(
    frames: dict[str, pd.DataFrame],
) -> None:
    for frame in frames.values():
        frame["ward"] = "a"
        frame.loc[frame.index[:2], "ward"] = "b"
        frame.loc[frame.index[2:4], "ward"] = "c"
    frames["north"].loc[frames["north"].index[:3], "age"] = np.nan
    checked = check(frames)
    assert checked.table is not None
    columns = {column.name: column for column in checked.table.columns}
    # Together b and c have four rows, which those of level a would show.
    assert all(set(part.counts) == {None} for part in columns["ward"].sites)
    assert [part.missing for part in columns["age"].sites] == [None, 0, 0]
    assert columns["age"].pooled.missing is None
    _, rows = table_cells(checked.table)
    (missing,) = [row for row in rows if row[0] == "age, missing"]
    assert (missing[1], missing[-1]) == ("–", "–")


def test_files_that_cannot_be_read_are_findings_too(
    frames: dict[str, pd.DataFrame], capsys: pytest.CaptureFixture[str]
) -> None:
    files = write(frames)
    Path("empty.csv").write_bytes(b"")
    Path("copy.csv").write_bytes(Path("north.csv").read_bytes())
    options = ["--target", "relapse", "--family", "binomial"]
    assert main(["check", "empty.csv", "none.csv", *files, "copy.csv", *options]) == 1
    printed = capsys.readouterr().out
    assert "MEND  site empty: empty.csv is empty; give a table with a header and rows" in printed
    assert "MEND  site none: none.csv: no such file" in printed
    assert "MEND  sites north, copy: the files hold the same bytes" in printed


def test_a_check_needs_no_outcome(frames: dict[str, pd.DataFrame]) -> None:
    checked = check_files(FileSource(files=write(frames)), Settings())
    assert checked.mends == 0
    assert checked.table is not None
    assert checked.table.events is None


def test_of_files_that_cannot_be_read_nothing_else_is_stated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sites.csv").write_text("hospital,age,y\nnorth,1,2\n,2,3\nsouth,3,4\n")
    for source, what in (
        (FileSource(files=("none.csv",), target="y"), "none.csv: no such file"),
        (
            FileSource(files=("sites.csv",), target="y", site_column="hospital"),
            "sites.csv: 1 row without a site in 'hospital'; fill it, or remove those rows",
        ),
    ):
        (finding,) = check_files(source, Settings()).findings
        assert finding.mend
        assert finding.what == what
