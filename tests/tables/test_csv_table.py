"""CSV files, however messy: cells become what they mean, alike for every reader."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow
import pytest

from fedlasso import FedLassoError
from fedlasso.tables import File
from fedlasso.tables.arrow import from_arrow
from fedlasso.tables.csv_table import _BATCH_CELLS, NULLS
from fedlasso.tables.values import Values

Cells = Callable[[np.random.Generator], str]
NUMBERS: tuple[Cells, ...] = (
    lambda rng: str(rng.integers(-(10**6), 10**6)),
    lambda rng: repr(rng.standard_normal()),
    lambda rng: f"{rng.standard_normal() * 10.0 ** rng.integers(-300, 300):.17e}",
    lambda rng: f" {rng.integers(100)}.{rng.integers(100)}  ",
    lambda rng: str(rng.integers(1 << 53, 1 << 62)),
    lambda rng: f".{rng.integers(100)}",
)
TEXTS: tuple[Cells, ...] = (
    lambda rng: str(rng.choice(["east", "Zürich", "west wing", "a;b", "a,b", 'he said "no"'])),
    lambda rng: f"row {rng.integers(50)}",
    lambda rng: "1_000",
    lambda rng: "٣",
    lambda rng: str(rng.choice(["yes", "no", "12 kg", "-"])),
)
KINDS: dict[str, tuple[Cells, ...]] = {
    "whole": (NUMBERS[0],),
    "large": (NUMBERS[0], NUMBERS[4]),
    "numbers": NUMBERS,
    "texts": TEXTS,
    "mixed": (*NUMBERS, *TEXTS),
    "boolean": (lambda rng: str(rng.choice(["true", "False", "TRUE"])),),
    "missing": (lambda rng: "",),
    "dates": (lambda rng: f"20{rng.integers(10, 30)}-0{rng.integers(1, 9)}-1{rng.integers(9)}",),
}


def draw_cells(rng: np.random.Generator, kind: str, rows: int) -> list[str]:
    """Draw the cells of a column, some of them missing; large tables have late surprises."""
    makers = KINDS[kind]
    missing = rng.choice([0.0, 0.1, 0.9])
    late = rng.integers(rows) if len(makers) > 1 and rng.random() < 0.5 else 0
    cells = []
    for k in range(rows):
        make = makers[0] if k < late else makers[rng.integers(len(makers))]
        cells.append(str(rng.choice(NULLS)) if rng.random() < missing else make(rng))
    return cells


def draw_table(rng: np.random.Generator) -> tuple[list[str], list[list[str]]]:
    rows = int(rng.choice([1, 2, 30, 400]))
    kinds = rng.choice(list(KINDS), rng.integers(2, 7))
    names = [f"{kind} {k}" for k, kind in enumerate(kinds)]
    return names, [draw_cells(rng, kind, rows) for kind in kinds]


def write(path: Path, rng: np.random.Generator, names: list[str], columns: list[list[str]]) -> str:
    """Write a table with some separator, quotation and ends of lines; return the separator."""
    text = io.StringIO()
    separator = str(rng.choice([",", ";", "\t"]))
    how: dict[str, Any] = {
        "delimiter": separator,
        "lineterminator": str(rng.choice(["\n", "\r\n"])),
        "quoting": int(rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
    }
    csv.writer(text, **how).writerows([names, *zip(*columns, strict=True)])
    path.write_bytes(text.getvalue().encode(str(rng.choice(["utf-8", "utf-8-sig"]))))
    return separator


def by_arrow(path: Path, separator: str) -> dict[str, Values]:
    table = arrow.read_csv(
        path,
        parse_options=arrow.ParseOptions(delimiter=separator),
        convert_options=arrow.ConvertOptions(
            null_values=[*NULLS, *(" " * count for count in range(1, 9))], strings_can_be_null=True
        ),
    )
    return {name: from_arrow(table.column(name)) for name in table.schema.names}


def test_messy_files_are_read_as_arrow_reads_them(tmp_path: Path) -> None:
    """Arrow is an independent reader of the same rules."""
    path = tmp_path / "a.csv"
    compared = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        names, columns = draw_table(rng)
        separator = write(path, rng, names, columns)
        for name, other in by_arrow(path, separator).items():
            ((_, values),) = File(path).columns([name])
            assert len(values) == len(columns[0])
            if other.kind == "empty" or other.kind.startswith("date"):
                assert values.kind in (other.kind, "dates"), (seed, name)
                continue
            assert values.kind == other.kind, (seed, name)
            assert values.to_list() == other.to_list(), (seed, name)
            compared += 1
    assert compared > 300


@pytest.mark.parametrize("late", ["text", "", "1.5", "9" * 30])
def test_a_surprise_after_many_rows_counts_as_one_at_once(tmp_path: Path, late: str) -> None:
    rows = _BATCH_CELLS
    cells = ["007", *["1"] * rows, late]
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{cell},2\n" for cell in cells))
    ((_, values),) = File(tmp_path / "a.csv").columns(["x"])
    found = values.to_list()
    if late == "text":
        assert found == cells
    elif not late:
        assert found == [7, *[1] * rows, None]
    else:
        assert found == [7, *[1] * rows, float(late)]


def test_whole_numbers_keep_all_their_digits(tmp_path: Path) -> None:
    numbers = [(1 << 62) + k for k in range(20)]
    (tmp_path / "a.csv").write_text("id,y\n" + "".join(f"{n},1\n" for n in numbers))
    file = File(tmp_path / "a.csv")
    ((_, values),) = file.columns(["id"])
    assert values.to_list() == numbers
    assert file.identifiers == ("id",)


def test_decimal_commas_are_numbers_between_semicolons(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x;w\n1,5;a,b\n2,25;c\n-3e-2;d\n")
    found = {name: values.to_list() for name, values in File(tmp_path / "a.csv").columns("xw")}
    assert found["x"] == [1.5, 2.25, -0.03]
    assert found["w"] == ["a,b", "c", "d"]


@pytest.mark.parametrize("text", ["x,y\n\n1,2\n\n3,4\n\n", "x,y\r\n1,2\r\n3,4", "x,y\r1,2\r3,4\r"])
def test_empty_lines_and_ends_of_lines_are_no_rows(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(text, newline="")
    found = {name: values.to_list() for name, values in File(tmp_path / "a.csv").columns("xy")}
    assert found == {"x": [1, 3], "y": [2, 4]}


def test_a_cell_without_an_end_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('x,y\n"1,2\n' + "3,4\n" * 100_000)
    with pytest.raises(FedLassoError, match="close a quotation mark that is left open"):
        File(tmp_path / "a.csv")


def test_values_of_arrow_columns_survive(tmp_path: Path) -> None:
    columns = {
        "integer": pa.array([1, None, 3], pa.int32()),
        "number": pa.array([1.5, None, float("nan")]),
        "boolean": pa.array([True, None, False]),
        "text": pa.array(["a", None, "b"]).dictionary_encode(),
        "empty": pa.nulls(3),
    }
    for kind, column in columns.items():
        values = from_arrow(pa.chunked_array([column[:1], column[1:]]))
        assert values.kind == kind
        own = [None if value != value else value for value in column.to_pylist()]
        assert values.to_list() == own
