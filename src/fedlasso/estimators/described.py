"""The schema of an estimator's table: its columns, and the response by its names and classes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fedlasso.tables import Schema, parse_formula
from fedlasso.tables.columns import Column

if TYPE_CHECKING:
    from fedlasso.estimators.shared import FederatedEstimator


def name_of_series(y: Any) -> dict[str, str]:
    """Return the name of a response that has one, as that of a schema."""
    name = getattr(y, "name", None)
    return {"target": name} if isinstance(name, str) and name else {}


def name_response(formula: str, offset: Any) -> dict[str, str]:
    """Return the names of a formula's response, and of the column of offsets, if it has one."""
    roles = parse_formula(formula).roles
    named = {"target" if role == "time" else role: name for role, name in roles.items()}
    return named | ({"offset": offset} if isinstance(offset, str) else {})


def describe(model: FederatedEstimator, target: str | None) -> Schema:
    """Return the schema of a fitted estimator, with the response under its names."""
    schema = model.schema_ or _describe_numbers(model)
    columns = {column.name for column in schema.columns}
    named: dict[str, Any] = {
        role: name for role, name in model._response.items() if name not in columns
    }
    if target is not None:
        named["target"] = target
    return replace(schema, classes=model._name_classes(), **named)


def _describe_numbers(model: FederatedEstimator) -> Schema:
    """Return the schema of a table of numbers."""
    event = "event" if "event" in model.family.roles else None
    return Schema(
        "time" if event else "y",
        tuple(Column(str(name), "number") for name in model.model_.columns),
        family=model.family.name,
        event=event,
        offset="offset" if model._has_offset else None,
    )
