"""Whether the fields of a question fit a site: each is judged by its role and its type alone."""

from __future__ import annotations

from typing import Any

from fedlasso.errors import FedLassoError
from fedlasso.federation import Request, Role
from fedlasso.federation.messages import Kind, layout, roles
from fedlasso.numerics import Array

# Vectors side by side, characters of a text, and the largest whole number.
WIDEST = 256
LONGEST = 1 << 16
LARGEST = 1 << 40


def values_of(request: Request[Any], kind: Kind) -> list[Any]:
    """Return the values of all fields that have one role."""
    declared = roles(type(request))
    return [getattr(request, field) for field, role in declared.items() if role.kind == kind]


def check_fields(request: Request[Any], p: int, max_steps: int) -> None:
    """Refuse a question whose fields do not fit p columns, or that asks for too many steps.

    Kernels trust the shapes they are given, so a question that does not fit never reaches them.
    """
    name = type(request).__name__
    widths: set[int] = set()
    for field, kind in layout(type(request)):
        value = getattr(request, field)
        role = roles(type(request)).get(field)
        fits = True
        if kind == "int":
            fits = 0 <= value <= LARGEST
        elif kind == "float":
            fits = value >= 0 or role == Role("signed")
        elif kind == "text":
            fits = len(value) <= LONGEST and value.isprintable()
        elif "array" in kind and value is not None:
            # An array without a role fits nowhere: no rule can judge it.
            fits = role is not None and value.ndim in role.dims
            if fits and role:
                rows = getattr(request, role.within).size if role.within else p
                fits = _array_fits(value, role, rows, p)
                widths.update(_width(value, role))
        if not (fits and len(widths) <= 1 and 1 <= max(widths, default=1) <= WIDEST):
            raise FedLassoError(f"{name}: {field} does not fit the {p} columns and rules here")
    steps = sum(values_of(request, "steps")) * max(widths, default=1)
    if steps > max_steps:
        raise FedLassoError(f"{name}: {steps} steps, and the policy here takes {max_steps} at once")


def _array_fits(value: Array, role: Role, rows: int, p: int) -> bool:
    """Return whether an array holds what its role says, at a site with p columns."""
    if role.kind == "columns":
        listed = value.tolist()
        return len(set(listed)) == len(listed) and set(listed) <= set(range(p))
    if role.kind in ("weights", "per candidate") and not (value >= 0).all():
        return False
    return role.kind == "per candidate" or len(value) == rows


def _width(value: Array, role: Role) -> tuple[int, ...]:
    """Return how many vectors an array holds side by side, or speaks of; some say nothing of it."""
    if role.kind == "per candidate":
        return value.shape
    return (value.shape[1:] or (1,)) if role.kind in ("points", "model") else ()
