"""Texts that stand among numbers by mistake: a column is refused before it becomes dummies."""

import shlex
from typing import Any, Literal

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.tables.files import File

Verdict = Literal["text", "mixed", "numbers"]
# A number with either decimal mark: the wrong one makes text of a column.
_LIKE = r"^\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*$"
# The share of numbers, among values or different values, from which others are mistakes.
_SHARE = 0.5


def judge_texts(file: File, name: str, values: Any) -> tuple[Verdict, str]:
    """Say whether a text column is text, text with some numbers, or numbers; and of what it is.

    A column of numbers with a few texts is refused: the texts are missing values or mistakes.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = values.cast(pa.string())
    broken = pc.match_substring(texts, "\n")
    if file.by_text and pc.any(broken).as_py():
        row = _first(broken)
        raise FedLassoError(
            f"{file.path}: column {name!r} holds several lines in row {row + 1}; close the "
            "quotation mark that is left open there"
        )
    like = pc.match_substring_regex(texts, _LIKE)
    numbers = int(pc.sum(like).as_py() or 0)
    filled = len(texts) - texts.null_count
    if numbers == 0:
        return "text", ""
    if numbers == filled:
        comma = pc.match_substring(texts, ",")
        stray = comma if pc.any(comma).as_py() else pc.match_substring(texts, ".")
        # Parquet and Excel may hold numbers as text, on purpose.
        if not file.by_text and not pc.any(comma).as_py():
            return "numbers", ""
    else:
        stray = pc.invert(like)
    different = texts.filter(like).unique()
    share = max(numbers / filled, len(different) / len(texts.drop_null().unique()))
    row = _first(stray)
    found = texts[row].as_py()
    if share < _SHARE:
        row = _first(like)
        return "mixed", f"{numbers} of {filled} rows, {texts[row].as_py()!r} in row {row + 1}"
    if numbers == filled:
        what = "write all numbers with a decimal point, or all with a comma and semicolons between"
    else:
        what = "correct it, or give the numbers names too if all are levels"
        if "," not in found:
            what = f"say --na {shlex.quote(found)} if it means a missing value, {what}"
    raise FedLassoError(
        f"{file.path}: column {name!r} holds {found!r} in row {row + 1} among numbers; {what}"
    )


def _first(true: Any) -> int:
    import pyarrow.compute as pc

    return int(np.argmax(pc.fill_null(true, False).to_numpy()))
