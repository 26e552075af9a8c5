"""Identities of a fit through the federation, on random federations."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlasso import FedLassoError, InProcess, Site
from fedlasso.models import Settings, fit_model
from fedlasso.models.fitted import Model
from fedlasso.numerics import Array, LeastSquares, solve_reference


def draw(sizes: list[int], p: int, seed: int) -> tuple[list[Site], Array, Array]:
    """Sites whose columns differ in mean and scale, in parts by site."""
    rng = np.random.default_rng(seed)
    m = sum(sizes)
    X = rng.standard_normal((m, p)) * rng.uniform(0.01, 100, p) + 10 * rng.standard_normal(p)
    y = X[:, 0] / X[:, 0].std() + 0.5 * rng.standard_normal(m) + 3
    ends = np.cumsum([0, *sizes])
    sites = [Site(f"{j}", X[a:b], y[a:b], raw=True) for j, (a, b) in enumerate(pairwise(ends))]
    return sites, X, y


def most_vectors(model: Model) -> float:
    """Vectors of p numbers that the site that sent most has sent, scalars counted too."""
    kinds = ("scaling", "moments", "training")
    sent = {
        site: sum(model.costs.total(kind, site).upload for kind in kinds)
        for site in model.costs.sites
    }
    return max(sent.values()) / (8 * len(model.columns))


@settings(max_examples=25)
@given(
    sizes=st.lists(st.integers(1, 25), min_size=1, max_size=6).filter(lambda s: sum(s) >= 6),
    p=st.integers(1, 40),
    share=st.floats(0.05, 0.9),
    seed=st.integers(0, 10**6),
)
def test_any_split_of_the_rows_gives_the_pooled_lasso(
    sizes: list[int], p: int, share: float, seed: int
) -> None:
    sites, X, y = draw(sizes, p, seed)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    pooled = LeastSquares(Z, y - y.mean())
    lam = share * float(np.abs(pooled.score).max())
    model = fit_model(InProcess(sites), Settings(penalty=lam, uploads=200))
    reference = solve_reference(pooled, lam)
    assert reference.met
    np.testing.assert_allclose(model.fit.coefficients, reference.coefficients, atol=1e-7)
    np.testing.assert_allclose(model.predict(X), Z @ reference.coefficients + y.mean(), atol=1e-6)


def test_the_units_of_a_column_do_not_matter() -> None:
    sites, X, y = draw([30, 20], 6, 0)
    other = X * 10.0 ** np.arange(6) - 7
    again = [
        Site(f"{j}", other[r], y[r], raw=True) for j, r in enumerate([slice(30), slice(30, 50)])
    ]
    for how in (Settings(), Settings(cv=3), Settings(goal="selection")):
        one, two = fit_model(InProcess(sites), how), fit_model(InProcess(again), how)
        np.testing.assert_allclose(one.predict(X), two.predict(other), rtol=1e-6)


def test_a_search_spends_no_more_than_it_may() -> None:
    sites, X, _ = draw([60, 50], 30, 1)
    for uploads in (56, 60, 100):
        model = fit_model(InProcess(sites), Settings(cv=3, uploads=uploads))
        assert most_vectors(model) <= uploads
        assert np.isfinite(model.predict(X)).all()
    with pytest.raises(FedLassoError, match="3 folds take 56 uploads or more with 30 columns"):
        fit_model(InProcess(sites), Settings(cv=3, uploads=55))
