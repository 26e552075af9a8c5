"""Calibration intercepts and slopes by Newton steps, against other optimisers."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from fedlasso.numerics import Array, Response, find_loss
from fedlasso.sites.recalibration import BOTH, EMPTY, LARGE, Recalibrated, derive, recalibrate


def fit(name: str, scores: Array, y: Array) -> Recalibrated:
    loss = find_loss(name)
    response = Response.of(y)
    return recalibrate(lambda at: derive(loss, scores, response, at), loss.quadratic)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 50.0, 1e7])
def test_one_step_of_least_squares_is_exact_in_any_units(scale: float) -> None:
    rng = np.random.default_rng(0)
    scores = scale * rng.standard_normal(40)
    y = 20 * scores + 33 * scale + scale * rng.standard_normal(40)
    found = fit("quadratic", scores, y)
    slope, intercept = np.polyfit(scores, y, 1)
    assert found.known.all()
    np.testing.assert_allclose(found.at[BOTH] / [scale, 1], [intercept / scale, slope], rtol=1e-8)
    assert found.at[LARGE, 0] == pytest.approx((y - scores).mean(), rel=1e-12)
    assert found.at[EMPTY, 0] == pytest.approx(y.mean(), rel=1e-12)


@pytest.mark.parametrize("name", ["binomial", "poisson"])
@pytest.mark.parametrize("off", [-6.0, -1.0, 3.0, 9.0])
def test_what_is_known_of_curved_losses_has_converged(name: str, off: float) -> None:
    rng = np.random.default_rng(1)
    true = rng.standard_normal(300)
    drawn = rng.poisson(np.exp(0.5 * true)) if name == "poisson" else rng.random(300) < expit(true)
    y = np.asarray(drawn, np.float64)
    scores = true - off
    found = fit(name, scores, y)

    def loss(at: Array) -> float:
        eta = at[0] + at[1] * scores
        value = np.exp(eta) if name == "poisson" else np.logaddexp(0, eta)
        return float((value - y * eta).sum())

    best = minimize(loss, [off, 0.8], tol=1e-12).x
    large = minimize(lambda at: loss(np.array([at[0], 1.0])), [off], tol=1e-12).x[0]
    assert found.known.all()
    se = np.sqrt(found.variances)
    assert (np.abs(found.at[BOTH] - best) < 0.01 * se[BOTH]).all()
    assert abs(found.at[LARGE, 0] - large) < 0.01 * se[LARGE, 0]


def test_what_has_not_converged_is_not_known() -> None:
    scores = np.linspace(-1, 1, 40)
    found = fit("binomial", scores, (scores > 0).astype(float))
    assert not found.known[BOTH]
    # No step reaches this rate in the steps that there are.
    found = fit("poisson", scores - 80, np.round(50 * np.exp(scores)))
    assert not found.known[LARGE]


def test_overdispersed_counts_converge_to_what_rounded_sums_allow() -> None:
    loss = find_loss("poisson")
    for seed in range(4):
        rng = np.random.default_rng(seed)
        scores = 1 + 0.3 * rng.standard_normal(900)
        y = rng.poisson(np.exp(scores) * rng.gamma(0.3, 1 / 0.3, 900)).astype(float)
        asked = 0

        def ask(at: Array, scores: Array = scores, y: Array = y) -> tuple[Array, Array]:
            nonlocal asked
            asked += 1
            parts = np.array_split(np.arange(900), 3)
            sums = [derive(loss, scores[own], Response.of(y[own]), at) for own in parts]
            return np.sum([a for a, _ in sums], axis=0), np.sum([b for _, b in sums], axis=0)

        found = recalibrate(ask, False)
        assert found.known.all()
        assert asked <= 12

        def total(at: Array, scores: Array = scores, y: Array = y) -> float:
            eta = at[0] + at[1] * scores
            return float((np.exp(eta) - y * eta).sum())

        best = minimize(total, [0.0, 1.0], tol=1e-12).x
        assert (np.abs(found.at[BOTH] - best) < 0.02 * np.sqrt(found.variances[BOTH])).all()
