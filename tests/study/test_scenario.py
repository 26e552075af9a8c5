"""Scenarios draw what the paper's table says."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import lfilter

from fedlasso import FedLassoError
from fedlasso.study import SCENARIOS, Scenario, read_scenarios
from fedlasso.study.replicate_data import pool, signal_variance
from fedlasso.study.scenario import split
from fedlasso.study.study_designs import autoregress

NAMES = [
    "baseline",
    "independent",
    "strong-correlation",
    "two-sites",
    "five-sites",
    "ten-sites",
    "weak-signal",
    "strong-signal",
    "fewer-predictors",
    "more-predictors",
    "unequal-sizes",
    "different-distributions",
]


def test_the_twelve_scenarios() -> None:
    assert list(SCENARIOS) == NAMES
    assert all(sum(s.sizes) == 800 and s.nonzeros == 30 for s in SCENARIOS.values())
    assert len({SCENARIOS[n].p for n in NAMES if "predictors" not in n}) == 1


@pytest.mark.parametrize("name", NAMES)
def test_splits_are_whole_and_in_proportion(name: str) -> None:
    sizes = SCENARIOS[name].sizes
    for n in (200, 2000):
        assert [share * 800 for share in split(n, sizes)] == [n * m for m in sizes]
    assert split(200, (268, 268, 264)) == (67, 67, 66)
    assert split(2000, (268, 268, 264)) == (670, 670, 660)


def test_splits_that_do_not_come_out_even_still_add_up() -> None:
    assert split(10, (1, 1, 1)) == (4, 3, 3)
    assert sum(split(101, (7, 11, 13))) == 101


def test_signal_variance_is_that_of_the_population() -> None:
    b = np.random.default_rng(0).standard_normal(30)
    k = np.arange(30)
    for rho in (0.0, 0.5, -0.3, 0.8):
        sigma = rho ** np.abs(k[:, None] - k[None, :])
        assert signal_variance(b, rho) == pytest.approx(b @ sigma @ b, rel=1e-12)


def test_draws_have_the_stated_moments() -> None:
    scenario = Scenario(
        "moments", sizes=(20_000, 20_000), p=12, nonzeros=4, correlations=(0.0, 0.7),
        scales=(1.0, 2.0), noise=(1.0, 0.5), snr=4.0, validation=2, test=2,
    )  # fmt: skip
    draw = scenario.draw(np.random.default_rng(1))
    k = np.arange(12)
    for (X, y), rho, scale, noise in zip(
        draw.training, (0.0, 0.7), (1.0, 2.0), (1.0, 0.5), strict=True
    ):
        sigma = scale**2 * rho ** np.abs(k[:, None] - k[None, :])
        np.testing.assert_allclose(X.T @ X / len(y), sigma, atol=0.06 * scale**2)
        sd = np.sqrt(draw.truth @ sigma @ draw.truth / 4) * noise
        assert np.std(y - X @ draw.truth) == pytest.approx(sd, rel=0.03)


def test_truth_is_sparse_with_magnitudes_in_range() -> None:
    draw = SCENARIOS["baseline"].draw(np.random.default_rng(2))
    values = np.abs(draw.truth[draw.truth != 0])
    assert len(values) == 30
    assert values.min() >= 0.4
    assert values.max() <= 1.2
    assert [len(y) for _, y in draw.training] == [268, 268, 264]
    assert [len(y) for _, y in draw.test] == [670, 670, 660]
    assert pool(draw.training).X.shape == (800, 600)


def test_a_seed_depends_on_study_scenario_and_number_only() -> None:
    def first(name: str, seed: int, number: int) -> float:
        return float(Scenario(name).generator(seed, number).standard_normal())

    values = [first("a", 1, 0), first("b", 1, 0), first("a", 2, 0), first("a", 1, 1)]
    assert len(set(values)) == 4
    assert first("a", 1, 0) == values[0]


def test_own_scenarios_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text("[small]\nsizes = [50, 40]\np = 100\ncorrelations = [0.2, 0.6]\n")
    (small,) = read_scenarios(file)
    assert small == Scenario("small", sizes=(50, 40), p=100, correlations=(0.2, 0.6))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a]\nsize = [3]", "scenario 'a' has no setting 'size'"),
        ("[a]\nsizes = []", "scenario 'a': every site needs at least one row"),
        ("[a]\ncorrelations = [0.1, 0.2]", "correlations has 2 values"),
        ("[a]\nsnr = 0", "snr > 0"),
        ("[a]\ntails = 2", "more than 2 degrees of freedom"),
        ("[a]\nnonzeros = 700", "nonzeros must be between 0 and p"),
        ("a = 3", "'a' is outside a"),
        ("][", "is not a TOML file"),
        ("[a]\np = 'x'", "own.toml: scenario 'a': p: expected `int`, got `str`"),
        ("[a]\nsizes = [10, 'x']", r"scenario 'a': sizes\[1\]: expected `int`, got `str`"),
        ("[a]\nmagnitudes = [1.0]", "scenario 'a': magnitudes: expected `array` of length 2"),
    ],
)
def test_bad_scenario_files_are_one_clear_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "own.toml"
    file.write_text(text)
    with pytest.raises(FedLassoError, match=message) as caught:
        read_scenarios(file)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("rho", [0.0, 0.5, -0.9])
def test_columns_are_an_autoregression_of_order_one(rho: float) -> None:
    shocks = np.random.default_rng(0).standard_normal((7, 5))
    filtered = lfilter([1.0], [1.0, -rho], shocks, axis=0)
    np.testing.assert_allclose(autoregress(shocks, rho), filtered, rtol=1e-12, atol=1e-14)


def test_heavy_tailed_predictors_have_the_same_covariance_and_far_values() -> None:
    light = Scenario("tails", sizes=(40_000,), p=3, nonzeros=1, validation=1, test=1)
    heavy = replace(light, tails=5.0)
    (X, _), (Z, _) = (each.draw(each.generator(1, 0)).training[0] for each in (light, heavy))
    lags = np.abs(np.subtract.outer(range(3), range(3)))
    np.testing.assert_allclose(np.cov(Z.T), 0.5**lags, atol=0.05)
    assert np.abs(X).max() < 6 < 8 < np.abs(Z).max()
