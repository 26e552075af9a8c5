"""CSV text that spreadsheets show and do not execute: names in it may come from others."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# A text that begins with one of these is a formula to spreadsheets.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def plain_cell(cell: Any) -> Any:
    """Return a cell with numbers in full, and a quote before what would be a formula."""
    return repr(float(cell)) if isinstance(cell, float) else _plain_text(cell)


def _plain_text(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    # A lone return begins a new row for some readers.
    text = cell.replace("\r", " ")
    return f"'{text}" if cell.startswith(_FORMULA) and not _is_number(cell) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.strip() == text


def write_csv(rows: Iterable[Sequence[Any]]) -> str:
    """Return a table as CSV; None is empty."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([*map(plain_cell, row)] for row in rows)
    return out.getvalue()


def plain_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose names and texts are no formulas."""
    plain = frame.copy()
    for name in frame.select_dtypes(exclude=["number", "bool"]).columns:
        plain[name] = frame[name].map(_plain_text)
    return plain.rename(columns=_plain_text)
