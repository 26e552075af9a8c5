"""A data frame as a formula names its parts: columns, response and sites."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.tables import is_frame, parse_formula
from fedlasso.tables.formula import expand_dot


def names_of(frame: Any) -> list[str]:
    """Return the columns of a data frame."""
    if not is_frame(frame):
        raise FedLassoError("a formula is about columns by name; give a data frame")
    return list(getattr(frame, "column_names", None) or frame.columns)


def take_column(frame: Any, name: str) -> Any:
    """Return the values of one column."""
    return np.asarray(take_columns(frame, [name])[name])


def take_columns(frame: Any, names: Sequence[str]) -> Any:
    """Return some columns of a pandas, Polars or Arrow table."""
    known = names_of(frame)
    for name in names:
        if name not in known:
            raise FedLassoError(f"the data frame has no column {name!r} of the formula")
    return frame.select(list(names)) if hasattr(frame, "select") else frame[list(names)]


def read_frame(
    frame: Any, by_row: Sequence[Any], formula: str, knots: Any, categorical: Sequence[str]
) -> tuple[Any, Any, tuple[Any, ...], dict[str, Any]]:
    """Return columns, response and values `by_row`, and how the columns are read as in files.

    Values by row may be given as the name of a column, such as the one of sites.
    """
    taken = [own for own in by_row if isinstance(own, str)]
    rows = tuple(take_column(frame, own) if isinstance(own, str) else own for own in by_row)
    formula = expand_dot(formula, [name for name in names_of(frame) if name not in taken])
    parsed = parse_formula(formula)
    parts = {name: take_column(frame, name) for name in parsed.roles.values()}
    if "time" in parsed.roles:
        y: Any = np.column_stack([parts[parsed.roles["event"]], parts[parsed.roles["time"]]])
    else:
        y = parts[parsed.roles["target"]]
    codes = tuple(dict.fromkeys((*categorical, *parsed.codes)))
    how = {"formula": formula, "knots": dict(knots), "categorical": codes}
    return take_columns(frame, parsed.columns), y, rows, how
