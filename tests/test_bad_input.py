"""A table of bad inputs, each with the one line a user reads."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers.draws import draw_federation, draw_sites

from fedlasso import FedLassoError, InProcess, Site, fit
from fedlasso.procedures import Averaging

X = np.arange(1.0, 13.0).reshape(4, 3)
Y = np.arange(4.0)


def changed(value: Any, dtype: Any = float) -> Any:
    table = X.astype(dtype)
    table[2, 1] = value
    return table


def zero_column() -> Any:
    table = X.copy()
    table[:, 1] = 0
    return table


BAD: list[tuple[Callable[[], object], str]] = [
    (
        lambda: Site("north", changed(np.nan), Y),
        "site 'north': column 'x1' has 1 missing or infinite values in the training data; "
        "remove or fill them",
    ),
    (
        lambda: Site("north", changed(np.inf), Y, columns=["age", "dose", "sex"]),
        "site 'north': column 'dose' has 1 missing or infinite values in the training data; "
        "remove or fill them",
    ),
    (
        lambda: Site("north", X, [1, 2, np.nan, 4]),
        "site 'north': column 'response y' has 1 missing or infinite values in the training data; "
        "remove or fill them",
    ),
    (
        lambda: Site("north", changed(1e308), Y),
        "site 'north': column 'x1' has a value of size 1e+308, too large to be squared and summed; "
        "correct it, or write it in larger units",
    ),
    (
        lambda: Site("north", X, [1, 2, -1e200, 4]),
        "site 'north': column 'response y' has a value of size 1e+200, too large to be squared and "
        "summed; correct it, or write it in larger units",
    ),
    (
        lambda: Site("north", X, Y, validation={"penalty": (changed(np.nan), Y)}),
        "site 'north': column 'x1' has 1 missing or infinite values in the penalty validation "
        "data; remove or fill them",
    ),
    (
        lambda: Site("north", zero_column(), Y),
        "site 'north': column 'x1' is zero in every training row; drop the column at every site",
    ),
    (
        lambda: Site("north", X[:0], Y[:0]),
        "site 'north': no training rows; give it rows or leave the site out",
    ),
    (
        lambda: Site("north", X[:, :0], Y),
        "site 'north': no training columns; give at least one predictor",
    ),
    (
        lambda: Site("north", X, Y, validation={"candidate": (X[:0], Y[:0])}),
        "site 'north': no candidate validation rows; give it rows or leave the site out",
    ),
    (
        lambda: Site("north", X, Y[:3]),
        "site 'north': 4 training rows in X but y has shape (3,); give one response per row",
    ),
    (
        lambda: Site("north", X[0], Y),
        "site 'north': the training records have 1 dimensions; give a table of rows by columns",
    ),
    (
        lambda: Site("north", changed("high", object), Y),
        "site 'north': column 'x1' is not numeric in the training data; encode it as numbers first",
    ),
    (
        lambda: Site("north", X, ["a", "b", "c", "d"]),
        "site 'north': column 'response y' is not numeric in the training data; "
        "encode it as numbers first",
    ),
    (
        lambda: Site("north", X, Y, columns=["a", "b"]),
        "site 'north': 3 training columns but 2 names; every column needs one name",
    ),
    (
        lambda: Site("north", X, Y, columns=["a", "b", "a"]),
        "site 'north': two columns are called 'a'; rename one",
    ),
    (
        lambda: InProcess([Site("north", X, Y), Site("south", X[:, :2], Y)]),
        "site 'south' has 2 columns but site 'north' has 3; give every site the same columns",
    ),
    (
        lambda: InProcess([Site("north", X, Y), Site("south", X, Y, columns=["x0", "age", "x2"])]),
        "site 'south': column 2 is 'age' but site 'north' has 'x1'; "
        "give every site the same columns in the same order",
    ),
    (
        lambda: InProcess([Site("north", X, Y), Site("north", X, Y)]),
        "two sites are called 'north'; give each its own name",
    ),
    (lambda: InProcess([]), "a federation needs at least one site"),
    (
        lambda: fit(InProcess([Site("north", X, Y)])),
        "site 'north': no rows to validate the penalty; "
        "give the site validation={'penalty': (X, y)}",
    ),
    (
        lambda: fit(InProcess([Site("north", X, Y)]), "ST", penalty=0.1),
        "site 'north': no rows to validate the candidate; "
        "give the site validation={'candidate': (X, y)}",
    ),
    (
        lambda: fit(draw_federation(), penalty=-1.0),
        "the penalty is -1.0; give a finite number, zero or more",
    ),
    (
        lambda: fit(draw_federation(), penalty=np.nan),
        "the penalty is nan; give a finite number, zero or more",
    ),
    (lambda: fit(draw_federation(), epochs=0), "epochs is 0; give a whole number, 1 or more"),
    (lambda: Averaging(epochs=1.5), "epochs is 1.5; give a whole number, 1 or more"),  # type: ignore[arg-type]
    (lambda: fit(draw_federation(), rounds=0), "rounds is 0; give a whole number, 1 or more"),
    (lambda: fit(draw_federation(), "CDD"), "no procedure is called 'CDD'; did you mean 'CD'?"),
    (
        lambda: fit(draw_federation(), "ST", rule="best"),  # type: ignore[arg-type]
        "no selection rule is called 'best'; use 'min' or '1se'",
    ),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[m[:60] for _, m in BAD])
def test_bad_input_is_one_clear_line(call: Callable[[], object], message: str) -> None:
    with pytest.raises(FedLassoError) as caught:
        call()
    assert str(caught.value) == message


def test_the_inputs_stay_as_they_were() -> None:
    table, response = np.asfortranarray(X), Y.copy()
    site = Site("north", table, response, validation={"penalty": (X, Y), "candidate": (X, Y)})
    fit(InProcess([site]), "P", rounds=2)
    assert np.array_equal(table, X)
    assert np.array_equal(response, Y)
    assert table.flags.writeable


def test_writing_to_the_inputs_later_changes_nothing() -> None:
    table, response = np.asfortranarray(X), Y.copy()
    site = Site("north", table, response)
    table[:], response[:] = 0.0, 0.0
    assert np.array_equal(site.training.X, X)
    assert np.array_equal(site.training.y, Y)


def test_text_that_holds_numbers_is_read_as_numbers() -> None:
    assert np.array_equal(Site("north", X.astype(str), Y).training.X, X)


def test_sites_of_one_row_work() -> None:
    result = fit(InProcess([*draw_sites((20, 1))]), "CD", penalty=0.3, rounds=3)
    assert np.isfinite(result.coefficients).all()
