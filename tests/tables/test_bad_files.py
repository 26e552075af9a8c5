"""A table of bad files, each with the one line that a user reads."""

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.models.files import draw_frame

from fedlasso.cli import main

pytestmark = pytest.mark.usefixtures("no_charts")

Change = Callable[[pd.DataFrame], pd.DataFrame | None]


def replaced(column: str, row: int, value: object) -> Change:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        frame[column] = frame[column].astype(object)
        frame.loc[row, column] = value
        return frame

    return change


def raw(data: bytes) -> Change:
    def change(frame: pd.DataFrame) -> None:
        Path("b.csv").write_bytes(data)

    return change


def latin(frame: pd.DataFrame) -> None:
    frame["ward"] = frame["ward"].str.replace("main", "Zürich")
    frame.to_csv("b.csv", index=False, encoding="latin-1")


def names_of_rows(frame: pd.DataFrame) -> pd.DataFrame:
    named = frame.assign(ward=[f"patient {i // 2}" for i in range(len(frame))])
    named.iloc[::-1].to_csv("a.csv", index=False)
    return named


BAD: list[tuple[str, Change, str]] = [
    ("missing file", lambda f: Path("b.csv").unlink(), "b.csv: no such file"),
    ("empty file", raw(b""), "b.csv is empty; give a table with a header and rows"),
    ("header only", raw(b"y,age\n"), "b.csv has a header but no rows; add rows"),
    (
        "no target",
        lambda f: f.drop(columns="y"),
        "b.csv has no column 'y'; its columns are 'age', 'dose', 'rate', 'bmi', 'noise1', "
        "'noise2' and 1 more",
    ),
    (
        "target not numeric",
        replaced("y", 2, "high"),
        "b.csv: the target 'y' is not numeric: it holds 'high'",
    ),
    (
        "target missing",
        replaced("y", 2, None),
        "site 'b': the target 'y' is missing in 1 row; remove those rows",
    ),
    (
        "duplicate names",
        raw(b"y,age,age\n1,2,3\n2,3,4\n"),
        "b.csv: two columns are called 'age'; rename one",
    ),
    (
        "a site lacks a column",
        lambda f: f.drop(columns=["age"]),
        "b.csv lacks the column 'age' that a.csv has; give every site the same columns, "
        "or --drop it",
    ),
    (
        "a site has more columns",
        lambda f: f.assign(more=1.0, most=2.0),
        "a.csv lacks the column 'more' and 1 more that b.csv has; give every site the same "
        "columns, or --drop it",
    ),
    (
        "mixed encodings",
        latin,
        "b.csv: column 'ward' is not UTF-8 text; save the file as CSV in UTF-8",
    ),
    (
        "another encoding",
        lambda f: f.to_csv("b.csv", index=False, encoding="utf-16"),
        "b.csv is not UTF-8 text; save it as CSV in UTF-8",
    ),
    (
        "infinite values",
        replaced("age", 2, np.inf),
        "site 'b': column 'age' has 1 infinite values; correct or remove them",
    ),
    (
        "one row",
        lambda f: f.head(1),
        "site 'b' has 1 row, which its sums would disclose; give it at least 2 rows, or leave the "
        "site out",
    ),
    (
        "missing values",
        replaced("age", 2, None),
        "missing values (site 'b': age 1); fill them, or use --missing mean",
    ),
    (
        "kinds differ",
        lambda f: f.assign(age="old"),
        "column 'age' holds numbers in a.csv but texts in b.csv; use one type",
    ),
    (
        "names of rows",
        names_of_rows,
        "text column 'ward': no level has 10 rows or more at any site; group the levels, lower "
        "--min-level, or --drop it if it identifies rows",
    ),
    (
        "a stray text",
        replaced("age", 2, "."),
        "b.csv: column 'age' holds '.' in row 3 among numbers; use --na . if it means a missing "
        "value, correct it, or rename the numbers if all values are levels",
    ),
    (
        "a stray text of two words",
        replaced("age", 9, "not known"),
        "b.csv: column 'age' holds 'not known' in row 10 among numbers; use --na 'not known' if it "
        "means a missing value, correct it, or rename the numbers if all values are levels",
    ),
    (
        "decimal commas between commas",
        lambda f: f.assign(age=[f"{v:.3f}".replace(".", ",") for v in f["age"]]),
        "b.csv: column 'age' holds '0,346' in row 1 among numbers; use a decimal "
        "point in all numbers, or a comma with semicolons between columns",
    ),
    (
        "a number beyond all sums",
        replaced("age", 2, -1e308),
        "site 'b': column 'age' has a value of size 1e+308, too large to be squared and summed; "
        "correct it, or write it in larger units",
    ),
    (
        "an open quotation mark",
        raw(b'age,y\n1,2\n2,3\n3,4\n"4,5\n5,6\n'),
        "b.csv is not a CSV table: row 4 has 1 cell, but the header has 2; correct that row, or "
        "close a quotation mark that is left open",
    ),
    (
        "an open quotation mark in the last column",
        raw(b'y,age\n1,2\n2,"3\n3,4\n4,5\n'),
        "b.csv: column 'age' holds whole rows in row 2; close the quotation mark that is left open "
        "there",
    ),
    (
        "rows of different lengths",
        raw(b"age,y\n1,2\n2,3,4\n3,4\n"),
        "b.csv is not a CSV table: row 2 has 3 cells, but the header has 2; correct that row, or "
        "close a quotation mark that is left open",
    ),
    (
        "dates",
        lambda f: f.assign(age=pd.date_range("2020-01-01", periods=len(f))),
        "b.csv: column 'age' holds dates; convert it to numbers or text, or --drop it",
    ),
]  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    draw_frame(30, 0).to_csv("a.csv", index=False)
    draw_frame(30, 1).to_csv("b.csv", index=False)
    return tmp_path


@pytest.mark.parametrize(("change", "message"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_a_bad_file_is_one_clear_line(
    here: Path, change: Change, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = change(draw_frame(30, 1))
    if frame is not None:
        frame.to_csv("b.csv", index=False)
    assert main(["fit", "a.csv", "b.csv", "--target", "y", "--out", "model"]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if ": read " not in line]
    assert lines == [f"fedlasso: {message}"]
    assert not Path("model").exists()


USAGE = [
    (["fit", "--target", "y", "--out", "m"], "name at least one file; see `fedlasso fit --help`"),
    (["fit", "a.csv", "--out", "m"], "name the column to predict: --target NAME"),
    (["fit", "a.csv", "--target", "y"], "name a folder for the model: --out MODEL"),
    (["fit", "a.csv", "--target", "y", "--out", "a.csv"],
     "a.csv is not an empty folder; choose another one"),
    (["fit", "a.txt", "--target", "y", "--out", "m"], "a.txt: no such file"),
    (["fit", "t.doc", "--target", "y", "--out", "m"],
     "t.doc: cannot read this format; use .csv, .tsv or .txt (also with .gz), .parquet or "
     ".xlsx"),
    (["fit", "folder.csv", "--target", "y", "--out", "m"],
     "folder.csv is a folder; give a file: .csv, .tsv or .txt (also with .gz), .parquet or .xlsx"),
    (["fit", "short.csv.gz", "--target", "y", "--out", "m"],
     "short.csv.gz is incomplete, or not compressed by gzip"),
    (["fit", "plain.csv.gz", "--target", "y", "--out", "m"],
     "plain.csv.gz is incomplete, or not compressed by gzip"),
    (["fit", "t.xlsx", "--target", "y", "--out", "m"], "t.xlsx is not an Excel workbook (.xlsx)"),
    (["fit", "a.csv", "./b.csv", "../{here}/a.csv", "--target", "y", "--out", "m"],
     "a.csv and ../{here}/a.csv are the same file; name each file once"),
    (["fit", "a.csv", "link.csv", "--target", "y", "--out", "m"],
     "a.csv and link.csv are the same file; name each file once"),
    (["fit", "a.csv", "hard.csv", "--target", "y", "--out", "m"],
     "a.csv and hard.csv are the same file; name each file once"),
    (["fit", "b.csv", "./a.csv", "elsewhere/copy.csv", "--target", "y", "--out", "m"],
     "./a.csv and elsewhere/copy.csv hold the same bytes; name each file once"),
    (["fit", "same.csv", "--target", "y", "--out", "m"],
     "the target 'y' is 3 in every row of every site, so there is nothing to fit; choose another "
     "target"),
    (["fit", "same.csv", "--target", "z", "--drop", "ward", "--out", "m"],
     "every predictor is constant over all rows of all sites, so there is nothing to fit; give "
     "columns that vary"),
    (["fit", "a.csv", "--target", "y", "--min-level", "0", "--out", "m"],
     "--min-level is 0; give a whole number, 1 or more"),
    (["fit", "a.csv", "--target", "y", "--seed", "-1", "--out", "m"],
     "--seed is -1; give a whole number, 0 or more"),
    (["fit", "a.csv", "--target", "y", "--cv", "5", "--penalty", "1", "--out", "m"],
     "folds choose a penalty, and one was given; omit --cv or --penalty"),
    (["fit", "a.csv", "--target", "y", "--validation", "0.2", "--penalty", "1", "--out", "m"],
     "held-out rows choose a penalty, and one was given; omit --validation or --penalty"),
    (["fit", "a.csv", "--target", "y", "--epochs", "5", "--out", "m"],
     "--epochs has no effect here: only a --procedure has local epochs; omit --epochs"),
    (["fit", "--resume", "m", "--goal", "selection", "--seed", "0"],
     "--resume uses the options of the interrupted fit; omit --goal, --seed, or start a new fit "
     "in another folder"),
    (["fit", "a.csv", "--resume", "m", "--out", "n", "--no-compare", "--min-level", "10"],
     "--resume uses the options of the interrupted fit; omit a.csv, --out, --no-compare, "
     "--min-level, or start a new fit in another folder"),
    (["predict", "m", "a.csv", "--out", "m.txt"], "m.txt: name a .csv or .parquet file"),
    (["fit", "t.parquet", "--target", "y", "--out", "m"], "t.parquet is not a Parquet file"),
    (["fit", "a.csv", "--site-column", "z", "--target", "y", "--out", "m"],
     "a.csv has no site column 'z'; its columns are 'age', 'dose', "
     "'rate', 'bmi', 'noise1', 'noise2' and 2 more"),
    (["fit", "a.csv", "b.csv", "--site-column", "ward", "--target", "y", "--out", "m"],
     "--site-column is for one table with several sites; give one file"),
    (["fit", "a.csv", "--target", "y", "--goal", "prediction", "--penalty", "1", "--out", "m"],
     "--goal prediction chooses its penalty; omit --penalty, or use --goal objective"),
    (["fit", "a.csv", "--target", "y", "--fdr", "0.1", "--out", "m"],
     "--fdr has no effect here: only --goal discoveries has a rate; omit --fdr"),
    (["fit", "a.csv", "--target", "y", "--level", "0.9", "--out", "m"],
     "--level has no effect here: only intervals and discoveries have a level; omit --level"),
    (["fit", "a.csv", "--target", "y", "--rule", "1se", "--penalty", "1", "--out", "m"],
     "--rule has no effect here: a rule chooses the penalty, and one was given; omit --rule"),
    (["fit", "a.csv", "b.csv", "--target", "y", "--cv", "500", "--out", "m"],
     "--cv is 500, but no site has more than 30 rows, so some folds would be empty; give at most "
     "30 folds"),
    (["fit", "a.csv", "--target", "y", "--l1-ratio", "2", "--out", "m"],
     "--l1-ratio is 2.0; give a fraction above 0, and 1 for the Lasso"),
    (["fit", "a.csv", "--target", "y", "--uploads", "3", "--out", "m"],
     "--uploads is 3, standardising takes 6, and the rest is too few to tune; give more"),
    (["fit", "a.csv", "--target", "y", "--drop", "weight", "--out", "m"],
     "no file has the column 'weight' of --drop"),
    (["fit", "--resume", "m"], "m contains no fit to resume"),
    (["inspect", "m"], "m contains no model"),
    (["predict", "m", "a.csv"], "m contains no model"),
    (["diagnose", "a.csv", "--target", "y"], "one site has nothing to average; give at least two"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), USAGE, ids=[u[1][:50] for u in USAGE])
def test_bad_usage_is_one_clear_line(
    here: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("t.doc").write_text("y,x\n1,2\n")
    Path("t.parquet").write_text("y,x\n1,2\n")
    Path("t.xlsx").write_text("y,x\n1,2\n")
    Path("plain.csv.gz").write_text("y,x\n1,2\n")
    packed = gzip.compress(Path("a.csv").read_bytes())
    Path("short.csv.gz").write_bytes(packed[: len(packed) // 2])
    Path("folder.csv").mkdir()
    Path("link.csv").symlink_to("a.csv")
    Path("hard.csv").hardlink_to("a.csv")
    Path("elsewhere").mkdir()
    Path("elsewhere/copy.csv").write_bytes(Path("a.csv").read_bytes())
    draw_frame(30).assign(z=range(30), y=3.0)[["y", "z", "ward"]].to_csv("same.csv", index=False)
    arguments = [argument.replace("{here}", here.name) for argument in arguments]
    message = message.replace("{here}", here.name)
    assert main(arguments) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if ": read " not in line]
    assert lines[-1:] == [f"fedlasso: {message}"]
    assert not Path("m").exists()


PREDICT: list[tuple[Change, str]] = [
    (
        replaced("ward", 4, "north"),
        "b.csv: column 'ward' holds 'north' in row 5, a level that the model does not know; "
        "it knows 'east', 'main', 'west'",
    ),
    (lambda f: f.drop(columns="age"), "b.csv lacks the column 'age' of the model"),
    (
        replaced("age", 4, None),
        "b.csv: column 'age' has 1 missing values; fill them, or fit with --missing mean",
    ),
    (
        replaced("age", 4, "old"),
        "b.csv: column 'age' is not numeric, but it was in the fit",
    ),
]


@pytest.mark.full
@pytest.mark.parametrize(("change", "message"), PREDICT, ids=[m[:50] for _, m in PREDICT])
def test_a_bad_file_to_predict_is_one_clear_line(
    here: Path, change: Change, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["fit", "a.csv", "--target", "y", "--no-compare", "--min-level", "1"]
    assert main([*command, "--out", "model"]) == 0
    frame = change(draw_frame(30, 1))
    assert frame is not None
    frame.to_csv("b.csv", index=False)
    capsys.readouterr()
    assert main(["predict", "model", "b.csv"]) == 2
    assert capsys.readouterr().err == f"fedlasso: {message}\n"
