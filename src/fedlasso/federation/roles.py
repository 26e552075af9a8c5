"""Roles: what each field of a question is, so that rules about it need no names.

A question annotates its fields with these. They say what shape a value must have at a site with p
columns, whether it counts as a model (guarded against memorising few rows), and whether it asks for
work. A number without a role must not be negative; an array without one is refused at a site,
because no rule can judge it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from fedlasso.numerics import Array

ArrayKind = Literal["points", "model", "weights", "per candidate", "columns"]
Kind = Literal[ArrayKind, "steps", "signed", "split", "purpose"]


@dataclass(frozen=True)
class Role:
    """What a field is.

    Attributes
    ----------
    kind : points are vectors over the columns; a model is points that a site judges as a model;
        weights are what each coefficient pays; the others are one number per candidate, a list of
        columns, how many steps, a number of either sign, the name of a split of the rows, and what
        held-out rows are for
    dims : one vector, or several side by side
    within : the field that lists the columns which the vectors are over; all columns by default
    """

    kind: Kind
    dims: tuple[int, ...] = ()
    within: str = ""


Point = Annotated[Array, Role("points", (1,))]
Points = Annotated[Array, Role("points", (2,))]
AnyPoints = Annotated[Array, Role("points", (1, 2))]
Model = Annotated[Array, Role("model", (1,))]
Models = Annotated[Array, Role("model", (2,))]
Weights = Annotated[Array | None, Role("weights", (1,))]
PerCandidate = Annotated[Array, Role("per candidate", (1,))]
Columns = Annotated[Array, Role("columns", (1,))]
Steps = Annotated[int, Role("steps")]
Signed = Annotated[float, Role("signed")]
Split = Annotated[str, Role("split")]
Purpose = Annotated[str, Role("purpose")]
