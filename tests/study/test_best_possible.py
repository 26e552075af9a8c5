"""The oracle, which knows how the data were drawn."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm, truncnorm

from fedlasso.numerics import Array
from fedlasso.study import Scenario
from fedlasso.study.best_possible import (
    normal_probability,
    oracle_probabilities,
    truncated_normal,
)
from fedlasso.study.replicate_data import noise_of
from fedlasso.study.trust import TrustTrial

PAIR = Scenario(
    "pair", sizes=(12, 9), p=2, nonzeros=1, correlations=(0.7,), noise=(1.0, 2.0), validation=6
)


def integrate_by_hand(truth: Array, samples: list[tuple[Array, Array]]) -> Array:
    """The probabilities of two columns, by integrals over their effects."""
    noise = [noise_of(PAIR, j, truth) for j in range(2)]
    X = np.vstack([X / sd for (X, _), sd in zip(samples, noise, strict=True)])
    y = np.concatenate([y / sd for (_, y), sd in zip(samples, noise, strict=True)])
    least, most = PAIR.magnitudes
    slab = 0.5 / (most - least)

    def likelihood(b: Array) -> float:
        return float(np.exp(-((y - X @ b) ** 2).sum() / 2 + (y**2).sum() / 2))

    def along(start: Array, k: int) -> float:
        """The integral of the likelihood over the effect of one column."""
        unit = np.eye(2)[k]
        ends = ((-most, -least), (least, most))
        return float(sum(slab * quad(lambda t: likelihood(start + t * unit), *e)[0] for e in ends))

    ends = ((-most, -least), (least, most))
    both = sum(slab * quad(lambda t: along(np.array([t, 0.0]), 1), *e)[0] for e in ends)
    # Of two columns one has an effect, so all four cases are equally likely before.
    cases = {"first": along(np.zeros(2), 0), "second": along(np.zeros(2), 1), "both": both}
    whole = 1.0 + sum(cases.values())
    return np.array([(cases["first"] + both) / whole, (cases["second"] + both) / whole])


def test_probabilities_are_those_of_integrals_over_both_effects() -> None:
    for number in range(3):
        draw = PAIR.draw(PAIR.generator(8, number))
        samples = draw.joined()
        expected = integrate_by_hand(draw.truth, samples)
        # 3,600 draws, each with a probability of its own, are exact to about a hundredth.
        found = oracle_probabilities(PAIR, draw.truth, samples, 0)
        np.testing.assert_allclose(found, expected, atol=0.05)
        assert expected.max() > 0.02


@pytest.mark.parametrize(
    ("low", "high"), [(-1.0, 2.0), (0.5, 0.75), (6.0, 7.0), (-9.0, -8.0), (-3.0, -0.1)]
)
def test_ranges_of_normal_numbers_have_their_probabilities(low: float, high: float) -> None:
    within = truncnorm(low, high)
    measured = normal_probability(low, high)
    assert measured == pytest.approx(norm.sf(low) - norm.sf(high), rel=1e-9, abs=1e-300) or (
        measured == pytest.approx(norm.cdf(high) - norm.cdf(low), rel=1e-9)
    )
    for fraction in (0.01, 0.3, 0.9):
        # Counted from the end that is nearer to zero.
        nearer = fraction if low + high >= 0 else 1 - fraction
        assert truncated_normal(low, high, fraction) == pytest.approx(within.ppf(nearer), abs=1e-6)


def test_strong_effects_are_found_and_others_are_not() -> None:
    strong = Scenario("strong", sizes=(100, 100), p=20, nonzeros=3, snr=50.0, validation=20)
    trial = TrustTrial.draw(strong, "linear", 1, 0)
    for record in trial.find_best((0.1, 0.2)):
        assert (record["fdp"], record["recall"]) == (0.0, 1.0)
