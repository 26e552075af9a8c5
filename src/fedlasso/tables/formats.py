"""Formats of tables: text with any separator and decimal mark, and Excel."""

import contextlib
import csv
import gzip
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedlasso.errors import FedLassoError
from fedlasso.tables.csv_table import NOT_UTF8, CsvTable, Dialect, null_texts
from fedlasso.tables.values import Values, from_cells

# Extensions of text files, which may also be compressed as .gz.
TEXT = (".csv", ".tsv", ".txt")
BINARY = (".parquet", ".xlsx")
KINDS = ".csv, .tsv or .txt (also with .gz), .parquet or .xlsx"
_SEPARATORS = ",;\t"
# Bytes from which the separator and the decimal mark are inferred.
_START = 1 << 18
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
EMPTY = "is empty; give a table with a header and rows"


class Stored:
    """A table in memory."""

    def __init__(self, names: Sequence[str], values: Sequence[Values]) -> None:
        self.names = tuple(names)
        self.kinds = tuple(own.kind for own in values)
        self._values = dict(zip(names, values, strict=True))

    def columns(self, names: Sequence[str]) -> Iterator[tuple[str, Values]]:
        for name in names:
            yield name, self._values[name]


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


def read_text(path: Path, na: Sequence[str] = ()) -> Stored:
    """Return the table in a text file."""
    packed = ending_of(path).endswith(".gz")
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            start = file.read(_START)
        if not start.strip():
            raise FedLassoError(f"{path} {EMPTY}")
        if b"\0" in start[:4096]:
            raise FedLassoError(f"{path} {NOT_UTF8}")
        dialect = find_dialect(start.decode("utf-8-sig", errors="replace"))
        table = CsvTable(path, packed, dialect, na)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FedLassoError(f"{path} is incomplete, or not compressed by gzip") from error
    except OSError as error:
        reason = error.strerror or "it may be incomplete"
        raise FedLassoError(f"cannot read {path}: {reason}") from error
    return Stored(table.names, table.values)


def read_excel(path: Path, na: Sequence[str] = ()) -> Stored:
    """Return the first sheet of a workbook; its first row is the header."""
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
    nulls = null_texts(na)
    columns = [
        [None if str(row[k]).strip() in nulls else row[k] for row in body]
        for k in range(len(names))
    ]
    return Stored(names, [from_cells(column) for column in columns])
