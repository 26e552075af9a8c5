"""The secant model and its solver against the curvature itself and an independent solver."""

import numpy as np
import pytest
from helpers.swept import swept_lasso

from fedlasso.numerics import L1, Array, LeastSquares, Secants, duality_gap, solve_reference
from fedlasso.numerics.quadratic_lasso import CurvatureModel


def problem(m: int = 50, p: int = 30, seed: int = 0) -> LeastSquares:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, p)) @ np.diag(rng.uniform(0.5, 2.0, p))
    return LeastSquares(X, X[:, :3].sum(axis=1) + rng.standard_normal(m))


def explored(f: LeastSquares, count: int, seed: int = 1) -> Secants:
    """Secants that learned random directions."""
    known = Secants.first(f.score, f.y_ss / f.m)
    for b in np.random.default_rng(seed).standard_normal((count, f.p)):
        q = known.direction(b)
        assert q is not None
        known = known.learn(q, f.gram @ q)
    return known


def dense(model: CurvatureModel) -> Array:
    B: Array = model.A @ np.diag(model.d) @ model.A.T + model.mu * np.eye(len(model.A))
    return B


@pytest.mark.parametrize("count", [1, 5, 20])
def test_the_model_agrees_with_the_curvature_wherever_it_was_asked(count: int) -> None:
    f = problem()
    known = explored(f, count)
    V = known.Q @ np.random.default_rng(2).standard_normal((count, 4))
    for v in V.T:
        np.testing.assert_allclose(dense(known.model) @ v, f.gram @ v, atol=1e-11)
        np.testing.assert_allclose(known.times(v), f.gram @ v, atol=1e-11)


def test_the_model_is_symmetric_positive_and_written_as_in_the_paper() -> None:
    f = problem()
    known = explored(f, 6)
    Q, Y, mu = known.Q, known.Y, known.mu
    B = Y @ np.linalg.pinv(Q.T @ Y) @ Y.T + mu * (np.eye(f.p) - Q @ Q.T)
    np.testing.assert_allclose(dense(known.model), B, atol=1e-11)
    np.testing.assert_allclose(known.model.diagonal, np.diag(B), atol=1e-11)
    assert np.linalg.eigvalsh(B).min() > 0
    assert known.positive


def test_every_direction_learned_is_the_curvature() -> None:
    f = problem()
    known = explored(f, f.p)
    np.testing.assert_allclose(dense(known.model), f.gram, atol=1e-10)
    assert known.direction(np.ones(f.p)) is None


def test_mu_is_never_more_than_halved() -> None:
    f = problem(m=4)  # of rank 4: later directions have nothing left over
    known = explored(f, 4)
    later = explored(f, 5)
    assert later.mu == known.mu / 2


@pytest.mark.parametrize("lam", [0.02, 0.2, 0.6])
def test_the_solver_against_scikit_learn(lam: float) -> None:
    f = problem()
    known = explored(f, 7)
    R: Array = np.linalg.cholesky(dense(known.model)).T.astype(np.float64)
    b = known.propose(L1(lam), np.zeros(f.p))
    other = swept_lasso(R, np.linalg.solve(R.T, f.score), lam / f.p)
    np.testing.assert_allclose(b, other.coef_, atol=1e-8)


def test_the_solver_takes_a_penalty_per_coefficient() -> None:
    f = problem()
    known = explored(f, 7)
    w = np.random.default_rng(3).uniform(0.5, 2.0, f.p)
    w[4] = np.inf
    w[0] = 0.0
    b = known.propose(L1(0.2, w), np.ones(f.p))
    slope = f.score - dense(known.model) @ b
    assert b[4] == 0.0
    assert abs(slope[0]) <= 1e-12
    on = (b != 0) & (w > 0)
    np.testing.assert_allclose(slope[on], 0.2 * w[on] * np.sign(b[on]), atol=1e-12)
    off = (b == 0) & np.isfinite(w)
    assert (np.abs(slope[off]) <= 0.2 * w[off] + 1e-12).all()


@pytest.mark.parametrize("lam", [0.05, 0.3])
def test_the_gap_known_to_the_server_is_the_gap_from_the_records(lam: float) -> None:
    f = problem()
    known = explored(f, 5)
    b = 0.1 * known.Q @ np.arange(1.0, 6.0)
    r = f.residual(b)
    gap = duality_gap(float(r @ r), float(r @ f.y), f.y_ss, f.gradient(b), b, L1(lam), f.m)
    assert known.gap(b, L1(lam)) == pytest.approx(gap, rel=1e-10)
    value = f.value(b) + lam * np.abs(b).sum()
    assert known.objective(b, L1(lam)) == pytest.approx(value, rel=1e-12)


def test_a_weighted_gap_bounds_the_weighted_problem() -> None:
    f = problem()
    known = explored(f, f.p)
    w = np.random.default_rng(3).uniform(0.5, 2.0, f.p)
    scaled = LeastSquares(f.X / w, f.y)
    best = solve_reference(scaled, 0.2)
    b = best.coefficients / w
    assert abs(known.gap(b, L1(0.2, w))) <= 1e-9 * best.objective
    moved = b + 0.01
    true = known.objective(moved, L1(0.2, w)) - best.objective
    assert known.gap(moved, L1(0.2, w)) >= true


def test_a_model_that_curves_downwards_is_seen_and_forgotten() -> None:
    f = problem()
    known = explored(f, 3)
    q = known.direction(np.ones(f.p))
    assert q is not None
    wrong = known.learn(q, -10 * (f.gram @ q))
    assert known.positive
    assert not wrong.positive
    b = wrong.Q[:, 0]
    again = wrong.restart(b)
    assert again.positive
    np.testing.assert_allclose(again.times(b), f.gram @ b, atol=1e-12)
    assert wrong.restart(np.zeros(f.p)).Q.shape == (f.p, 0)


def test_many_predictors_take_no_square_matrix() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 20_000))
    f = LeastSquares(X, X[:, 0] + rng.standard_normal(30))
    known = Secants.first(f.score, f.y_ss / f.m)
    for _ in range(3):
        b = known.propose(L1(0.5), np.zeros(f.p))
        q = known.direction(b)
        assert q is not None
        known = known.learn(q, f.gradient(q) + f.score)
    assert known.model.A.shape == (20_000, 6)
