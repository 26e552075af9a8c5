"""Second moments: sums over records, whatever holds them, and what is computed from the sums."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.draws import objective
from helpers.loops import loop
from helpers.swept import swept_elastic_net, swept_lasso
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import fedlasso.numerics.designs as designs_module
from fedlasso.numerics import (
    L1,
    Array,
    Dense,
    Design,
    ElasticNet,
    LeastSquares,
    Standardised,
    Table,
    duality_gap,
)
from fedlasso.numerics.moments import Moments, Normal, residuals

M, P = 40, 7
KINDS = ("dense", "table", "sparse", "holes", "sparse holes", "some rows", "sparse, some rows")
both_ways = pytest.mark.parametrize(("centre", "scale"), [(a, b) for a in (0, 1) for b in (0, 1)])


def draw(seed: int, m: int = M, p: int = P) -> tuple[Array, Array]:
    """Columns on different scales, with means, half of them zero somewhere."""
    rng = np.random.default_rng([seed, m, p])
    X = rng.standard_normal((m, p)) * rng.uniform(0.1, 10, p) + rng.standard_normal(p)
    X[rng.random((m, p)) < 0.4] = 0.0
    y = X[:, 0] - 2 * X[:, -1] + rng.standard_normal(m) + 3
    return X, y


def hold(kind: str, seed: int) -> tuple[Design, Array, Array]:
    """A design of one kind, the same records as plain numbers, and responses."""
    X, y = draw(seed)
    if kind == "dense":
        return Dense(X), X, y
    rng = np.random.default_rng(seed)
    means = rng.standard_normal(P)
    factors = rng.uniform(0.2, 2, P)
    factors[2] = 0.0
    rows = np.sort(rng.permutation(M)[:25]) if "some rows" in kind else None
    holes = rng.random((M, P)) < 0.2 if "holes" in kind else np.zeros((M, P), bool)
    kept = np.where(holes, 0.0, X)
    filled = np.where(holes, means, X)
    table = Table(
        sp.csc_array(kept) if "sparse" in kind else kept,
        sp.csc_array(holes, dtype=float) if "holes" in kind else None,
    )
    Z = (filled - means) * factors
    chosen = np.arange(M) if rows is None else rows
    return Standardised(table, rows, means, factors), Z[chosen], y[chosen]


def of_records(X: Array, y: Array) -> Moments:
    """The moments as they are defined."""
    A = np.column_stack([np.ones(len(y)), X, y])
    return Moments(A.T @ A)


def standardised(
    X: Array, y: Array, centre: bool = True, scale: bool = True
) -> tuple[Array, Array]:
    """Records as the normal equations see them."""
    Z = X - X.mean(axis=0) if centre else X
    spread = np.sqrt((Z**2).mean(axis=0)) if scale else np.ones(X.shape[1])
    return Z / spread, y - y.mean() if centre else y


@pytest.mark.parametrize("block", [7, 4096])
@pytest.mark.parametrize("kind", KINDS)
def test_moments_are_sums_of_products(
    kind: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(designs_module, "BLOCK", block)
    for seed in range(5):
        design, X, y = hold(kind, seed)
        sample = LeastSquares(design, y)
        rng = np.random.default_rng(seed)
        for rows in (
            np.arange(sample.m),
            np.sort(rng.permutation(sample.m)[:11]),
            rng.permutation(sample.m)[:3],
            np.arange(0),
        ):
            found = Moments.of(sample, rows)
            assert found.rows == len(rows)
            expected = of_records(X[rows], y[rows]).products
            # Rounding of sums of at most 40 products below about 2000.
            assert_allclose(found.products, expected, rtol=0, atol=1e-10)
            assert_allclose(design.take(rows), X[rows].T, rtol=1e-13, atol=1e-13)


@both_ways
@loop("seed", range(10))
def test_the_normal_equations_are_those_of_standardised_records(
    centre: bool, scale: bool, seed: int
) -> None:
    X, y = draw(seed)
    Z, r = standardised(X, y, centre, scale)
    normal = of_records(X, y).normal(centre=centre, scale=scale)
    largest = np.abs(X).max() ** 2
    assert_allclose(normal.gram, Z.T @ Z / M, atol=1e-13 * largest)
    assert_allclose(normal.score, Z.T @ r / M, atol=1e-13 * largest)
    assert normal.variance == pytest.approx(r @ r / M, rel=1e-12)
    assert (normal.rows, normal.p, normal.rank) == (M, P, P)
    assert normal.largest_penalty == np.abs(normal.score).max()
    # Models come back to the columns as they were, with predictions unchanged.
    B = np.random.default_rng(seed).standard_normal((P, 3))
    coefficients, intercepts = normal.original(B)
    reported = Z @ B + (y.mean() if centre else 0.0)
    assert_allclose(X @ coefficients + intercepts, reported, atol=1e-10)


def test_no_more_columns_are_independent_than_rows_allow() -> None:
    X, y = draw(0, m=5, p=9)
    assert of_records(X, y).normal(centre=False).rank == 5
    assert of_records(X, y).normal().rank == 4


@loop("seed", range(10))
def test_the_rows_that_are_left_are_a_difference(seed: int) -> None:
    X, y = draw(seed)
    part = np.random.default_rng(seed).random(M) < 0.3
    left = of_records(X, y).without(of_records(X[part], y[part]))
    assert left.rows == (~part).sum()
    assert_allclose(left.products, of_records(X[~part], y[~part]).products, atol=1e-10)


@loop("seed", range(10))
def test_errors_on_any_rows_are_sums_of_residuals(seed: int) -> None:
    X, y = draw(seed)
    rng = np.random.default_rng(seed)
    B, C = rng.standard_normal((2, P, 4))
    a, c = rng.standard_normal((2, 4))
    r = y[:, None] - X @ B - a
    s = y[:, None] - X @ C - c
    moments = of_records(X, y)
    found = moments.between(residuals(B, a), residuals(C, c))
    assert_allclose(found, (r * s).sum(axis=0), rtol=0, atol=1e-12 * np.abs(r * s).sum() * M)
    assert_allclose(
        moments.between(residuals(B, a), residuals(B, a)), (r**2).sum(axis=0), rtol=1e-10
    )


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -1e6])
def test_a_constant_column_is_left_out(value: float) -> None:
    X, y = draw(1)
    X[:, 3] = value
    normal = of_records(X, y).normal()
    assert normal.factors[3] == 0.0
    assert not normal.gram[3].any()
    assert not normal.gram[:, 3].any()
    assert normal.score[3] == 0.0
    assert normal.rank == P - 1
    # It gets no ridge either, so that it stays out of an elastic net.
    assert normal.steadied(0.5).gram[3, 3] == 0.0
    assert normal.steadied(0.5).rank == P - 1


def test_a_column_that_hardly_varies_about_a_large_mean_is_a_column() -> None:
    X, y = draw(1)
    X[:, 3] = 1000 + X[:, 3] / np.abs(X[:, 3]).max()
    Z, _ = standardised(X, y)
    normal = of_records(X, y).normal()
    assert normal.factors[3] > 0
    # A mean of 1000 spreads takes six of sixteen digits.
    assert_allclose(normal.gram, Z.T @ Z / M, atol=1e-8)


def test_a_response_that_does_not_vary_has_nothing_to_explain() -> None:
    X, _ = draw(2)
    normal = of_records(X, np.zeros(M)).normal()
    assert normal.variance == 0.0
    assert normal.largest_penalty == 0.0
    # About a mean, only rounding is left, and it is never negative.
    assert 0.0 <= of_records(X, np.full(M, 0.1)).normal().variance <= 1e-16


@loop("seed", range(10))
def test_weights_divide_columns(seed: int) -> None:
    X, y = draw(seed)
    weights = np.random.default_rng(seed).uniform(0.2, 5, P)
    weights[[1, 4]] = np.inf
    Z, r = standardised(X, y)
    W = Z / weights
    own = of_records(X, y).normal().weighted(weights)
    assert_allclose(own.gram, W.T @ W / M, atol=1e-12)
    assert_allclose(own.score, W.T @ r / M, atol=1e-10)
    assert own.rank == P - 2
    b = np.random.default_rng(seed).standard_normal((P, 1))
    coefficients, intercepts = own.original(b)
    assert_allclose(X @ coefficients + intercepts, W @ b + y.mean(), atol=1e-10)


def test_a_ridge_is_added_once_and_makes_every_column_differ() -> None:
    X, y = draw(3, m=5, p=9)
    normal = of_records(X, y).normal()
    steady = normal.steadied(0.3)
    assert np.array_equal(steady.gram, normal.gram + 0.3 * np.eye(9))
    assert (normal.rank, steady.rank) == (4, 9)
    assert steady.score is normal.score


def penalties_of(normal: Normal, rng: np.random.Generator) -> list[L1]:
    """A Lasso, weighted, and an elastic net, at random strengths."""
    weights = rng.uniform(0.3, 3, normal.p)
    weights[rng.integers(normal.p)] = np.inf
    lam = normal.largest_penalty * 10 ** rng.uniform(-3, 0.2)
    ridge = 10 ** rng.uniform(-3, 1)
    return [L1(lam), L1(lam, weights), ElasticNet.with_ridge(lam, ridge), ElasticNet(lam)]


def best_objective(Z: Array, r: Array, penalty: L1) -> float:
    """The smallest objective that coordinate descent elsewhere finds."""
    weights = np.ones(Z.shape[1]) if penalty.weights is None else penalty.weights
    ridge = penalty.ridge if isinstance(penalty, ElasticNet) else 0.0
    if ridge:
        b = swept_elastic_net(Z, r, penalty.lam, ridge).coef_
        return objective(Z, r, b, penalty.lam) + ridge / 2 * float(b @ b)
    own = Z / weights
    return objective(own, r, swept_lasso(own, r, penalty.lam).coef_, penalty.lam)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), m=st.integers(3, 40), p=st.integers(1, 12))
def test_certificates_are_those_of_the_records(seed: int, m: int, p: int) -> None:
    X, y = draw(seed, m, p)
    Z, r = X, y
    normal = of_records(X, y).normal(centre=False, scale=False)
    rng = np.random.default_rng(seed)
    penalties = penalties_of(normal, rng)
    size = rng.choice([0.0, 0.1, 1.0])
    B = size * rng.standard_normal((p, len(penalties)))
    for j, penalty in enumerate(penalties):
        B[~np.isfinite(penalty.thresholds(p)), j] = 0.0
    scale = normal.variance + float((Z**2).sum() / m * (B**2).sum())
    for b, penalty, found in zip(B.T, penalties, normal.certificates(B, penalties), strict=True):
        e = r - Z @ b
        gap = duality_gap(float(e @ e), float(e @ r), float(r @ r), -Z.T @ e / m, b, penalty, m)
        value = float(e @ e) / (2 * m) + penalty.value(b)
        assert found.objective == pytest.approx(value, abs=1e-12 * scale, rel=1e-12)
        # The dual limit is as exact as the gradient.
        assert found.gap == pytest.approx(gap, abs=1e-9 * scale)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), m=st.integers(3, 40), p=st.integers(1, 12))
def test_no_certificate_is_ever_violated(seed: int, m: int, p: int) -> None:
    X, y = draw(seed, m, p)
    Z, r = X / 5, y
    normal = of_records(Z, r).normal(centre=False, scale=False)
    assume(normal.largest_penalty > 0)
    rng = np.random.default_rng(seed)
    for penalty in penalties_of(normal, rng):
        best = best_objective(Z, r, penalty)
        for size in (0.0, 1e-6, 1e-3, 1.0):
            b = size * rng.standard_normal(p)
            b[~np.isfinite(penalty.thresholds(p))] = 0.0
            (certificate,) = normal.certificates(b[:, None], [penalty])
            e = r - Z @ b
            true = float(e @ e) / (2 * m) + penalty.value(b)
            # What is above the best found is above the best there is, but for rounding.
            assert true - best <= certificate.gap + 1e-12 * (normal.variance + true)


@loop("seed", range(20))
def test_certificates_are_tight_at_the_minimiser(seed: int) -> None:
    """At the optimum that another solver finds nothing but its own inexactness is left."""
    X, y = draw(seed)
    Z, r = standardised(X, y)
    normal = of_records(X, y).normal()
    rng = np.random.default_rng(seed)
    lam = normal.largest_penalty * 10 ** rng.uniform(-2, 0)
    ridge = 10 ** rng.uniform(-2, 1)
    for b, penalty in (
        (swept_lasso(Z, r, lam).coef_, L1(lam)),
        (swept_elastic_net(Z, r, lam, ridge).coef_, ElasticNet.with_ridge(lam, ridge)),
    ):
        (certificate,) = normal.certificates(b[:, None], [penalty])
        assert certificate.gap <= 1e-10 * normal.variance
