"""Formats of tables: text with any separator and decimal mark, and Excel."""

import codecs
import contextlib
import csv
import gzip
import re
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedlasso.errors import FedLassoError, QuotesRecords

# Extensions of text files, which may also be compressed as .gz.
TEXT = (".csv", ".tsv", ".txt")
BINARY = (".parquet", ".xlsx")
KINDS = ".csv, .tsv or .txt (also with .gz), .parquet or .xlsx"
_SEPARATORS = ",;\t"
# Bytes from which the separator and the decimal mark are inferred.
_START = 1 << 18
# One row of a text file must fit a block: 50,000 columns take about a megabyte.
_BLOCK_BYTES = 64 << 20
# A cell of at most so many blanks is empty.
_BLANKS = 8
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
EMPTY = "is empty; give a table with a header and rows"
NOT_UTF8 = "is not UTF-8 text; save it as CSV in UTF-8"


@dataclass(frozen=True)
class Dialect:
    """Separator and decimal mark of a text file."""

    separator: str = ","
    decimal: str = "."


def ending_of(path: Path) -> str:
    """Return the extension of a file, with what precedes `.gz`."""
    ends = [end.lower() for end in path.suffixes[-2:]]
    if ends[-1:] == [".gz"]:
        return "".join(ends)
    return path.suffix.lower()


def stem_of(path: Path) -> str:
    """Return a file's name without its extension: ``north`` of ``north.csv.gz``."""
    return path.name[: len(path.name) - len(ending_of(path))] or path.name


def is_text(path: Path) -> bool:
    return ending_of(path).removesuffix(".gz") in TEXT


def check_file(path: Path) -> None:
    """Refuse a file that does not exist, is empty, or has another format."""
    try:
        if not path.exists():
            raise FedLassoError(f"{path}: no such file")
        if path.is_dir():
            raise FedLassoError(f"{path} is a folder; give a file: {KINDS}")
        if ending_of(path) not in (*TEXT, *(f"{end}.gz" for end in TEXT), *BINARY):
            raise FedLassoError(f"{path}: cannot read this format; use {KINDS}")
        with path.open("rb") as file:
            if not file.read(1):
                raise FedLassoError(f"{path} {EMPTY}")
    except OSError as error:
        raise FedLassoError(f"cannot read {path}: {error.strerror}") from None


def null_texts(na: Sequence[str]) -> list[str]:
    """Return texts that mean a missing value: the usual ones, blanks, and `na`."""
    import pyarrow.csv

    blanks = [" " * count for count in range(1, _BLANKS + 1)]
    return [*pyarrow.csv.ConvertOptions().null_values, *blanks, *na]


def find_dialect(start: str) -> Dialect:
    """Return the separator that gives most rows as many cells as the header, and the decimal."""
    lines = start.splitlines()
    # The last line may be cut.
    lines = lines[:-1] if len(lines) > 1 and not start.endswith(("\n", "\r")) else lines
    lines = [line for line in lines if line.strip()][:200]
    best = (0.0, 1)
    found = ","
    rows: list[list[str]] = []
    for separator in _SEPARATORS:
        # A long line without the separator may be a cell too large for the reader.
        with contextlib.suppress(csv.Error):
            header, *body = list(csv.reader(lines, delimiter=separator)) or [[""]]
            alike = sum(len(row) == len(header) for row in body)
            score = (alike / max(len(body), 1), len(header))
            if len(header) > 1 and score > best:
                best = score
                found = separator
                rows = body
    cells = [cell.strip() for row in rows for cell in row] if found != "," else []
    comma = any(map(_DECIMAL_COMMA.fullmatch, cells))
    point = any(map(_DECIMAL_POINT.fullmatch, cells))
    return Dialect(found, "," if comma and not point else ".")


def _is_utf8(path: Path, packed: bool) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            while chunk := file.read(_START):
                decoder.decode(chunk)
    except UnicodeError:
        return False
    return True


def read_text(path: Path, na: Sequence[str] = ()) -> Any:
    import pyarrow as pa
    import pyarrow.csv as arrow

    try:
        packed = ending_of(path).endswith(".gz")
        with gzip.open(path) if packed else path.open("rb") as file:
            start = file.read(_START)
        if not start.strip():
            raise FedLassoError(f"{path} {EMPTY}")
        if b"\0" in start[:4096]:
            raise FedLassoError(f"{path} {NOT_UTF8}")
        dialect = find_dialect(start.decode("utf-8-sig", errors="replace"))
        # A block is allocated whole, however small the file.
        block = _BLOCK_BYTES if packed else min(_BLOCK_BYTES, max(path.stat().st_size + 1, _START))
        table = arrow.read_csv(
            pa.input_stream(str(path), compression="gzip" if packed else None),
            read_options=arrow.ReadOptions(block_size=block),
            parse_options=arrow.ParseOptions(
                delimiter=dialect.separator, newlines_in_values=b'"' in start
            ),
            convert_options=arrow.ConvertOptions(
                null_values=null_texts(na), strings_can_be_null=True, decimal_point=dialect.decimal
            ),
        )
        for name in table.schema.names:
            name.encode()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FedLassoError(f"{path} is incomplete, or not compressed by gzip") from error
    except (pa.ArrowInvalid, UnicodeError) as error:
        if isinstance(error, UnicodeError) or not _is_utf8(path, packed):
            raise FedLassoError(f"{path} {NOT_UTF8}") from error
        quoted = str(error).splitlines()[0][:200]
        raise QuotesRecords(
            f"{path} is not a CSV table: {quoted}", f"{path} is not a readable table"
        ) from error
    except OSError as error:
        reason = error.strerror or "it may be incomplete"
        raise FedLassoError(f"cannot read {path}: {reason}") from error
    for field in table.schema:
        # Arrow reads a column of another encoding as bytes.
        if pa.types.is_binary(field.type):
            raise FedLassoError(
                f"{path}: column {field.name!r} is not UTF-8 text; save the file as CSV in UTF-8"
            )
    return _join_lines(table, path, dialect.separator)


def _join_lines(table: Any, path: Path, separator: str) -> Any:
    """Return a table with the lines within a quoted cell joined by blanks.

    A line that is a whole row is not part of a cell: a quotation mark before it was left open.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    apart = table.num_columns - 1
    row = rf"\n([^{separator}\n]*{separator}){{{max(apart, 1)}}}[^\n]*(\n|$)"
    for k, field in enumerate(table.schema):
        if not pa.types.is_string(field.type):
            continue
        texts = table.column(k)
        if not pc.any(pc.match_substring(texts, "\n")).as_py():
            continue
        swallowed = pc.fill_null(pc.match_substring_regex(texts, row), False)
        if pc.any(swallowed).as_py():
            raise FedLassoError(
                f"{path}: column {field.name!r} holds whole rows in row "
                f"{pc.index(swallowed, True).as_py() + 1}; close the quotation mark that is left "
                "open there"
            )
        joined = pc.replace_substring_regex(texts, r"\s*\n\s*", " ")
        table = table.set_column(k, field, joined)
    return table


def read_excel(path: Path, na: Sequence[str] = ()) -> Any:
    """Return the first sheet of a workbook as an Arrow table; its first row is the header."""
    import pyarrow as pa

    try:
        import openpyxl
    except ModuleNotFoundError:
        need = "reading Excel requires openpyxl: pip install 'fedlasso[excel]'"
        raise FedLassoError(f"{path}: {need}") from None
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        rows = list(book.worksheets[0].iter_rows(values_only=True))
        book.close()
    except (OSError, ValueError, KeyError, IndexError, zipfile.BadZipFile) as error:
        raise FedLassoError(f"{path} is not an Excel workbook (.xlsx)") from error
    while rows and all(cell is None for cell in rows[-1]):
        rows.pop()
    if not rows:
        raise FedLassoError(f"{path} {EMPTY}")
    header, *body = rows
    names = ["" if name is None else str(name) for name in header]
    nulls = set(null_texts(na))
    columns = [
        [None if str(row[k]).strip() in nulls else row[k] for row in body]
        for k in range(len(names))
    ]
    return pa.Table.from_arrays([_to_arrow(column) for column in columns], names)


def _to_arrow(cells: list[Any]) -> Any:
    """Return numbers, also those stored as text; or dates; or text if any cell is no number."""
    import pyarrow as pa

    filled = [cell for cell in cells if cell is not None]
    if not filled:
        return pa.nulls(len(cells))
    with contextlib.suppress(TypeError, ValueError):
        if any(isinstance(cell, str) for cell in filled):
            return pa.array([None if cell is None else float(cell) for cell in cells])
        return pa.array(cells)
    return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())
