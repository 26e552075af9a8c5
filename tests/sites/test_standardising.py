"""Means and scales of many splits in the same round trips, as exact as those of each alone."""

from typing import Any

import numpy as np
import pytest
from helpers.draws import draw_federation

from fedlasso import InProcess, Site
from fedlasso.errors import SameResponse
from fedlasso.federation import Exchange, Ledger, encode
from fedlasso.fitting import Settings, fit_model
from fedlasso.numerics import Array
from fedlasso.sites import GradientAt, Standardiser, Viewed, folds, holdout, standardise
from fedlasso.sites.views import ResponseSums

P = 6


class Heard:
    """A ledger and the names of the questions of every round trip."""

    def __init__(self, federation: InProcess) -> None:
        self.trips: list[list[str]] = []
        self.ledger = Ledger(federation, self._hear)

    def _hear(self, exchange: Exchange) -> None:
        self.trips.append([type(request).__name__ for request in exchange.requests])


def draw(
    shift: float = 0.0, loss: str = "quadratic", weights: Array | None = None
) -> tuple[InProcess, Array]:
    """Two sites whose last column but one is shifted, and their records."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, P)) * [1, 2, 5, 0.1, 1, 1] + 3
    X[:, -2] += shift
    y = X[:, 0] + rng.standard_normal(80)
    if loss == "binomial":
        y = (y > 3).astype(float)
    given = np.ones(80) if weights is None else weights
    options: dict[str, Any] = {"loss": loss, "raw": True, "intercept": True}
    sites = [
        Site(name, X[rows], y[rows], weights=given[rows], **options)
        for name, rows in {"a": slice(0, 50), "b": slice(50, 80)}.items()
    ]
    return InProcess(sites), X


def test_a_default_linear_fit_takes_three_round_trips() -> None:
    heard = Heard(draw()[0])
    fit_model(heard.ledger, Settings())
    assert heard.trips == [
        ["ColumnSizes"],
        ["ColumnSums", "CentredSquares"],
        ["Standardise", "FoldMoments"],
    ]


@pytest.mark.parametrize("shift", [0.0, 60.0, 1e3, 1e7])
def test_scales_are_exact_however_far_the_means_are_from_zero(shift: float) -> None:
    federation, X = draw(shift)
    heard = Heard(federation)
    _, scaling = standardise(heard.ledger)
    # Squares about the mean are asked where those about zero have lost their digits.
    assert len(heard.trips) == 3 + (shift > 100)
    assert scaling.vectors == 4 + 2 * (shift > 100)
    np.testing.assert_allclose(scaling.means, X.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(
        scaling.factors, 1 / X.std(axis=0), rtol=1e-11 if shift < 100 else 1e-8
    )


def test_a_constant_column_and_one_of_zeros_have_factor_zero() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(40), np.full(40, 0.1), np.zeros(40)])
    site = Site("a", X, rng.standard_normal(40), raw=True)
    _, scaling = standardise(InProcess([site]))
    assert (scaling.factors == 0).tolist() == [False, True, True]


def test_splits_share_round_trips_and_have_the_views_of_each_alone() -> None:
    splits = (*folds(3, 0), holdout(0.3, 1), "")
    heard = Heard(draw(1e3)[0])
    together = Standardiser(heard.ledger).standardise_splits(splits)
    assert list(map(len, heard.trips)) == [1, 2 * len(splits), len(splits), len(splits)]
    for split in splits:
        found = together[split]
        assert not isinstance(found, SameResponse)
        view, scaling = standardise(draw(1e3)[0], split)
        assert found[0].name == view.name
        assert (found[1].sizes, found[1].held_out) == (scaling.sizes, scaling.held_out)


def test_what_was_sent_once_is_not_asked_again() -> None:
    heard = Heard(draw()[0])
    standardiser = Standardiser(heard.ledger)
    first = standardiser.standardise()
    spent = standardiser.vectors
    asked = len(heard.trips)
    assert standardiser.rows == 80
    assert standardiser.standardise()[0].name == first[0].name
    assert (standardiser.vectors, len(heard.trips)) == (spent, asked)
    standardiser.standardise(holdout(0.3, 1))
    assert ["ColumnSizes"] not in heard.trips[asked:]


@pytest.mark.parametrize("weighted", [False, True])
def test_splits_may_have_the_scales_of_all_rows(weighted: bool) -> None:
    weights = np.random.default_rng(3).uniform(0.1, 4, 80) if weighted else np.ones(80)
    heard = Heard(draw(0.0, "binomial", weights=weights)[0])
    splits = folds(4, 0)
    standardiser = Standardiser(heard.ledger)
    found = standardiser.measure(splits, shared=True)
    assert heard.trips[1] == ["ColumnSums", "CentredSquares", *["ResponseSums"] * 4]
    whole, _ = standardiser.standardise()
    assert standardiser.vectors == 4
    alone = Standardiser(heard.ledger).measure(splits)
    views = [view for view in found.values() if isinstance(view, Viewed)]
    standardiser.define(views)
    for view in views:
        assert view.view.means.tobytes() == whole.view.means.tobytes()
        assert view.view.factors.tobytes() == whole.view.factors.tobytes()
        own = alone[view.view.split]
        assert isinstance(own, Viewed)
        assert view.view.weight_scale == own.view.weight_scale
        # No sum over the rows of a split is beyond the bounds of the view.
        view.total(GradientAt(np.ones(P + 1)))


def test_a_split_with_one_kind_of_response_is_reported() -> None:
    X = np.random.default_rng(0).standard_normal((30, 2))
    y = np.zeros(30)
    y[4] = 1.0
    federation = InProcess([Site("a", X, y, loss="binomial", raw=True)])
    for shared in (False, True):
        found = Standardiser(federation).standardise_splits(folds(5, 0), shared)
        kinds = [isinstance(each, SameResponse) for each in found.values()]
        assert sum(kinds) == 1


def test_a_sum_of_responses_is_that_of_all_columns() -> None:
    federation = draw_federation()
    standardiser = Standardiser(federation)
    letters = standardiser._orders.letters
    (total,) = standardiser._ask([ResponseSums("", letters)])
    y = np.concatenate([site.response.y for site in federation.members])  # type: ignore[attr-defined]
    assert total.y_sum == pytest.approx(y.sum(), rel=1e-12)
    assert (total.rows, total.weight) == (len(y), len(y))
    assert encode(total)
