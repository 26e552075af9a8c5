"""A data frame as a formula names its parts: columns, response and sites."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.tables import is_frame, parse_formula


def take_columns(frame: Any, names: Sequence[str]) -> Any:
    """Return some columns of a pandas, Polars or Arrow table."""
    if not is_frame(frame):
        raise FedLassoError("a formula is about columns by name; give a data frame")
    known = list(getattr(frame, "column_names", None) or frame.columns)
    for name in names:
        if name not in known:
            raise FedLassoError(f"the data frame has no column {name!r} of the formula")
    return frame.select(list(names)) if hasattr(frame, "select") else frame[list(names)]


def name_response(formula: str) -> dict[str, str]:
    """Return the names of a formula's response as those of a schema."""
    roles = parse_formula(formula).roles
    return {"target" if role == "time" else role: name for role, name in roles.items()}


def read_frame(
    frame: Any, sites: Any, formula: str, knots: Any, categorical: Sequence[str]
) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Return columns, response and sites, and how the columns are read as those of files."""
    parsed = parse_formula(formula)
    names = list(parsed.roles.values())
    response = take_columns(frame, names)
    parts = {name: np.asarray(response[name]) for name in names}
    if "time" in parsed.roles:
        y: Any = np.column_stack([parts[parsed.roles["event"]], parts[parsed.roles["time"]]])
    else:
        y = parts[parsed.roles["target"]]
    if isinstance(sites, str):
        sites = np.asarray(take_columns(frame, [sites])[sites])
    codes = tuple(dict.fromkeys((*categorical, *parsed.codes)))
    how = {"formula": formula, "knots": dict(knots), "categorical": codes}
    return take_columns(frame, parsed.columns), y, sites, how
