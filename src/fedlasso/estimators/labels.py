"""The two labels of a classifier: which one is modelled, and their texts in a model's document."""

from numbers import Real
from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.estimators.table_rows import in_python
from fedlasso.families.binomial import Binomial
from fedlasso.tables import Outcome
from fedlasso.tables.targets import order_classes
from fedlasso.tables.values import to_float

_BOOLEANS = {"false": False, "true": True}


def choose_positive(classes: Any, positive: Any) -> Any:
    """Return which of two labels is modelled, by the rule of the command line."""
    labels = {_text(label): label for label in classes}
    given = None if positive is None else _text(positive)
    try:
        return labels[order_classes(Outcome("y", family=Binomial.name), labels, given)[1]]
    except FedLassoError as error:
        raise FedLassoError(in_python(str(error))) from None


def name_classes(coded: Any) -> tuple[str, ...]:
    """Return the texts of the labels that are 0 and 1; none if the labels are these numbers."""
    if coded.dtype.kind in "biuf" and coded.tolist() == [0, 1]:
        return ()
    return tuple(map(_text, coded))


def read_labels(texts: tuple[str, ...]) -> Any:
    """Return labels from their texts, those of numbers and booleans as such."""
    if set(texts) == set(_BOOLEANS):
        return np.array([_BOOLEANS[text] for text in texts])
    numbers = [to_float(text) for text in texts or ("0", "1")]
    if None in numbers:
        return np.array(texts)
    values = np.array(numbers)
    whole = values.astype(int)
    return whole if (whole == values).all() else values


def _text(label: Any) -> str:
    """Return a label as tables write it."""
    if isinstance(label, bool | np.bool_):
        return str(label).lower()
    return f"{label:.15g}" if isinstance(label, Real) else str(label)
