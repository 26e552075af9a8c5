"""Formats of files: separators, decimal marks, compression and Excel give the same table."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.models.files import draw_frame

from fedlasso import FedLassoError
from fedlasso.cli import main
from fedlasso.fitting import Settings
from fedlasso.models import FileSource, open_sites
from fedlasso.tables import File, stem_of, to_numbers
from fedlasso.tables.csv_table import Dialect
from fedlasso.tables.formats import find_dialect

pytestmark = pytest.mark.usefixtures("no_charts")

WRITERS: dict[str, Callable[[pd.DataFrame, Path], None]] = {
    "north.csv": lambda f, path: f.to_csv(path, index=False),
    "north.tsv": lambda f, path: f.to_csv(path, index=False, sep="\t"),
    "north.txt": lambda f, path: f.to_csv(path, index=False, sep="\t", decimal=","),
    "semicolon.csv": lambda f, path: f.to_csv(path, index=False, sep=";"),
    "european.csv": lambda f, path: f.to_csv(path, index=False, sep=";", decimal=","),
    "marked.csv": lambda f, path: f.to_csv(path, index=False, sep=";", encoding="utf-8-sig"),
    "north.csv.gz": lambda f, path: f.to_csv(path, index=False),
    "NORTH.CSV.GZ": lambda f, path: f.to_csv(path, index=False, compression="gzip"),
    "north.tsv.gz": lambda f, path: f.to_csv(path, index=False, sep="\t"),
    "north.parquet": lambda f, path: f.to_parquet(path, index=False),
    "north.xlsx": lambda f, path: f.to_excel(path, index=False),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_is_the_same_table(tmp_path: Path, name: str) -> None:
    frame = draw_frame(40).assign(count=range(5, 45), gap=[None, *range(39)])
    frame.loc[4, "ward"] = 'said "no", twice; or so'
    WRITERS[name](frame, tmp_path / name)
    file = File(tmp_path / name)
    assert file.names == tuple(frame.columns)
    assert list(file.groups) == [name.partition(".")[0]]
    for column, values in file.columns(file.names):
        if column == "ward":
            assert values.to_list() == frame["ward"].tolist()
        else:
            # Workbooks keep fifteen digits or so.
            np.testing.assert_allclose(to_numbers(values), frame[column], rtol=1e-14)


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("", Dialect()),
        ("y\n1\n2\n", Dialect()),
        ("y,x\n1,2\n", Dialect()),
        ("y;x\n1,5;2\n", Dialect(";", ",")),
        ("y;x\n1.5;2\n", Dialect(";")),
        ("y;x\n1;2\n", Dialect(";")),
        ('y;"a, b, c, d"\n1;2\n', Dialect(";")),
        ("y\tx\n1,5\t,25\n", Dialect("\t", ",")),
        ('y,x\n"1,5",2\n', Dialect()),
        ("y;x\n1,5;2.5\n", Dialect(";")),
        ("y;x\n1,5;2\n3", Dialect(";", ",")),
    ],
)
def test_separator_and_decimal_mark_are_told_by_the_first_rows(text: str, dialect: Dialect) -> None:
    assert find_dialect(text) == dialect


@pytest.mark.standard
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_header_longer_than_what_is_looked_at_is_read(tmp_path: Path, separator: str) -> None:
    names = [f"a column with a long name, the {k}th" for k in range(10_000)]
    header = separator.join(f'"{name}"' for name in names)
    rows = [separator.join(["1.5"] * len(names))] * 3
    (tmp_path / "wide.csv").write_text("\n".join([header, *rows, ""]))
    assert File(tmp_path / "wide.csv").names == tuple(names)


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("north.csv", "north"),
        ("north.csv.gz", "north"),
        ("st.mary.parquet", "st.mary"),
        ("St. Mary.csv", "St. Mary"),
        (".csv", ".csv"),
    ],
)
def test_a_site_is_called_as_its_file_without_the_ending(name: str, stem: str) -> None:
    assert stem_of(Path("some.folder", name)) == stem


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_codes_mean_missing_values_in_every_format(tmp_path: Path, ending: str) -> None:
    frame = pd.DataFrame({
        "whole": [1, -999, 3], "parts": [0.5, 1.5, -999.0], "word": ["a", "unknown", "b"],
        "spoilt": ["1.5", ".", "2.5"],
    })  # fmt: skip
    path = tmp_path / f"a.{ending}"
    WRITERS[f"north.{ending}"](frame, path)
    file = File(path, na=("-999", "unknown", "."))
    found = {name: values.to_list() for name, values in file.columns(file.names)}
    assert found["whole"] == [1, None, 3]
    assert found["parts"] == [0.5, 1.5, None]
    assert found["word"] == ["a", None, "b"]
    assert [v and float(v) for v in found["spoilt"]] == [1.5, None, 2.5]


def test_excel_without_its_package_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw_frame(10).to_excel(tmp_path / "a.xlsx", index=False)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(FedLassoError, match=r"requires openpyxl: pip install 'fedlasso\[excel\]'"):
        File(tmp_path / "a.xlsx")


def test_excel_dates_are_refused_as_dates(tmp_path: Path) -> None:
    frame = draw_frame(12).assign(day=pd.date_range("2020-01-01", periods=12))
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    arguments = ["fit", str(tmp_path / "a.xlsx"), "--target", "y", "--out", str(tmp_path / "m")]
    assert main(arguments) == 2


ROW_NUMBERS: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], str]] = {
    "pandas index": (lambda f: f.rename_axis(""), "left out a column without a name"),
    "index from 0": (lambda f: f.rename_axis("index"), "column 'index' identifies the rows"),
    "saved again": (lambda f: f.rename_axis("Unnamed: 0"), "column 'Unnamed: 0' identifies"),
    "row from 1": (
        lambda f: f.set_axis(range(1, 31)).rename_axis("Row"),
        "column 'Row' identifies",
    ),
}


@pytest.mark.parametrize(("number", "notice"), ROW_NUMBERS.values(), ids=ROW_NUMBERS)
def test_row_numbers_are_left_out_with_a_notice(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    number: Callable[[pd.DataFrame], pd.DataFrame],
    notice: str,
) -> None:
    number(draw_frame(30)).to_csv(tmp_path / "a.csv")
    draw_frame(30, 1).to_csv(tmp_path / "b.csv", index=False)
    files = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    options = ["--target", "y", "--penalty", "0.1", "--no-compare", "--out", str(tmp_path / "m")]
    assert main(["fit", *files, *options]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "notice" in line]
    assert notice in line
    names = pd.read_csv(tmp_path / "m" / "coefficients.csv")["name"].tolist()
    assert names[1:7] == ["age", "dose", "rate", "bmi", "noise1", "noise2"]


IDENTIFIERS: dict[str, tuple[str, list[object], bool]] = {
    "consecutive, by any name": ("x", list(range(500, 530)), True),
    "consecutive, in any order": ("x", [500 + (7 * k) % 30 for k in range(30)], True),
    "with gaps": ("ref", [k for k in range(80) if k % 3], True),
    "scattered, by its name": ("patient_id", [k * k * 1013 for k in range(30)], True),
    "scattered, by another name": ("income", [k * k * 1013 for k in range(30)], False),
    "texts": ("who", [f"P{k:03d}" for k in range(30)], True),
    "a repeated value": ("x", [*range(29), 0], False),
    "too few rows": ("x", list(range(9)), False),
    "a missing value": ("x", [*range(29), None], False),
}


@pytest.mark.parametrize(("name", "values", "identifies"), IDENTIFIERS.values(), ids=IDENTIFIERS)
def test_identifiers_are_found_by_their_values(
    tmp_path: Path, name: str, values: list[object], identifies: bool
) -> None:
    frame = draw_frame(len(values)).assign(**{name: pd.array(values)})
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert File(tmp_path / "a.csv").identifiers == ((name,) if identifies else ())


def test_patients_are_no_predictors_unless_they_are_named(tmp_path: Path) -> None:
    for k, name in enumerate("ab"):
        frame = draw_frame(30, k).assign(nr=range(100 * k, 100 * k + 30))
        frame["who"] = [f"P{row}" for row in range(30)]
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    source = FileSource(files=(str(tmp_path / "a.csv"), str(tmp_path / "b.csv")), target="y")
    said: list[str] = []
    _, schema = open_sites(source, notify=said.append)
    assert not {"nr", "who"} & {column.name for column in schema.columns}
    assert [line for line in said if "identifies" in line] == [
        f"notice: column {name!r} identifies the rows, so it is left out; if it is a measurement, "
        "name it in --keep"
        for name in ("nr", "who")
    ]
    _, schema = open_sites(source, Settings(keep=("nr",)))
    assert "nr" in {column.name for column in schema.columns}


def test_some_numbers_among_texts_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = draw_frame(60)
    frame.loc[::5, "ward"] = "9"
    frame.to_csv(tmp_path / "a.csv", index=False)
    options = ["--target", "y", "--penalty", "0.1", "--no-compare", "--out", str(tmp_path / "m")]
    assert main(["fit", str(tmp_path / "a.csv"), *options]) == 0
    errors = capsys.readouterr().err
    assert "warning: " in errors
    assert "text column 'ward' holds numbers (12 of 60 rows, '9' in row 1), which become" in errors


def test_a_target_of_zeros_and_ones_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for k in range(2):
        frame = draw_frame(40, k)
        frame.assign(y=(frame["y"] > 5).astype(int)).to_csv(tmp_path / f"{k}.csv", index=False)
    files = [str(tmp_path / "0.csv"), str(tmp_path / "1.csv")]
    options = ["--target", "y", "--penalty", "0.1", "--no-compare", "--out", str(tmp_path / "m")]
    assert main(["fit", *files, *options]) == 0
    warning = "warning: the target 'y' is 0 or 1: this is a linear model of those numbers"
    assert warning in capsys.readouterr().err


def test_lines_within_quotation_marks_are_one_cell(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('ward,y\n"east\nwing",1\n"west, old",2\n"east\n wing",3\n')
    found = {name: values.to_list() for name, values in File(path).columns(["ward", "y"])}
    assert found == {"ward": ["east wing", "west, old", "east wing"], "y": [1, 2, 3]}


def test_blanks_are_missing_values(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("age,y\n1,1\n  ,2\n3,3\n")
    ((_, values),) = File(path).columns(["age"])
    assert values.to_list() == [1, None, 3]


def test_codes_are_levels_if_they_are_categorical(tmp_path: Path) -> None:
    frame = draw_frame(60)
    frame["stage"] = np.resize([1.0, 2.0, 3.0], 60)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.astype({"stage": int}).assign(age=0.0).to_csv(tmp_path / "b.csv", index=False)
    files = (str(tmp_path / "a.csv"), str(tmp_path / "b.csv"))
    _, schema = open_sites(FileSource(files=files, target="y", categorical=("stage",)))
    assert [c.levels for c in schema.columns if c.name == "stage"] == [("1", "2", "3")]


def test_a_text_column_of_one_level_is_left_out_with_a_notice(tmp_path: Path) -> None:
    for k, name in enumerate("ab"):
        draw_frame(30, k).assign(ward="east").to_csv(tmp_path / f"{name}.csv", index=False)
    files = (str(tmp_path / "a.csv"), str(tmp_path / "b.csv"))
    said: list[str] = []
    _, schema = open_sites(FileSource(files=files, target="y"), notify=said.append)
    assert said[0] == (
        "notice: text column 'ward' holds 'east' in every row of all sites; it is left out"
    )
    assert not any(name.startswith("ward") for name in schema.encoded)
