"""Designs: real and unusual columns, sites that differ, and broken assumptions."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedlasso import FedLassoError
from fedlasso.numerics import Array
from fedlasso.study import SCENARIOS, Scenario, read_scenarios
from fedlasso.study.replicate_data import draw_family
from fedlasso.study.study_designs import (
    BAD,
    CORRUPT,
    DESIGNS,
    ICC,
    LEVELS,
    RARE,
    SHIFTS,
    VISITS,
    draw_corrupted,
    draw_dummies,
    draw_leverage,
    draw_noisy_column,
    draw_rare,
    draw_shifted_columns,
    draw_spectra,
    draw_visits,
)
from fedlasso.study.trust import CELLS, TrustStudy, TrustTrial

SMALL = Scenario("small", sizes=(60, 50, 40), p=24, nonzeros=4, validation=0, test=0)


# Sums of the effects and of the responses of every site.
EXPECTED = [-8.52280649504925, -129.8145113293734, 159.21999361333823, 7.577719029224426]


def generator() -> np.random.Generator:
    return np.random.default_rng(1)


def truth_of(p: int) -> Array:
    return np.where(np.arange(p) % 7 == 3, 1.0, 0.0)


@pytest.mark.parametrize("name", DESIGNS)
def test_every_design_draws_what_the_scenario_says(name: str) -> None:
    scenario = replace(SMALL, design=name, validation=30, test=15)
    draw, again = (scenario.draw(scenario.generator(1, 0)) for _ in range(2))
    assert [len(y) for _, y in draw.training] == [60, 50, 40]
    assert sum(len(y) for _, y in draw.penalty_validation) == 30
    assert sum(len(y) for _, y in draw.test) == 15
    for (X, y), (_, same) in zip(draw.training, again.training, strict=True):
        assert X.shape == (len(y), 24)
        assert np.isfinite(X).all()
        np.testing.assert_array_equal(y, same)
    assert np.count_nonzero(draw.truth) == 4


@pytest.mark.parametrize("family", ["binomial", "poisson", "cox"])
def test_designs_have_responses_of_every_family(family: str) -> None:
    scenario = replace(SMALL, sizes=(400, 400, 400), design="shifted-sites")
    draw = draw_family(scenario, family, 1, 0)
    means = [float(np.mean(np.abs(y))) for _, y in draw.training]
    assert max(means) > 1.2 * min(means)


def test_without_validation_all_rows_are_those_of_the_sites() -> None:
    trial = TrustTrial.draw(replace(SMALL, design="visits"), "linear", 1, 0)
    assert [site.rows for site in trial.sites] == [60, 50, 40]


def test_the_noise_has_the_stated_ratio() -> None:
    scenario = replace(SMALL, sizes=(4000, 4000), design="rare", snr=2.0)
    draw = scenario.draw(scenario.generator(1, 0))
    X = np.vstack([X for X, _ in draw.training])
    y = np.concatenate([y for _, y in draw.training])
    signal = X @ draw.truth
    assert signal.var() / (y - signal).var() == pytest.approx(2.0, rel=0.1)


def test_shifted_sites_have_these_means() -> None:
    scenario = replace(SMALL, sizes=(2000, 2000, 2000), design="shifted-sites", nonzeros=0)
    draw = scenario.draw(scenario.generator(1, 0))
    assert sorted(y.mean() for _, y in draw.training) == pytest.approx(sorted(SHIFTS), abs=0.1)


def test_columns_shift_with_their_site() -> None:
    rows = (3000, 3000)
    drawn = draw_shifted_columns(rows, truth_of(40), generator())
    means = np.array([part.mean(axis=0) for part in np.split(drawn.X, 2)])
    assert np.std(means[0] - means[1]) > 0.4


def test_every_factor_has_a_dummy_for_each_level() -> None:
    X = draw_dummies((400,), truth_of(40), generator()).X
    start = 0
    for levels in LEVELS:
        own = X[:, start : start + levels]
        assert ((own > 0).sum(axis=1) == 1).all()
        start += levels
    assert np.linalg.matrix_rank(np.column_stack([np.ones(400), X])) == 41 - len(LEVELS)


def test_rare_columns_are_rare() -> None:
    X = draw_rare((1000,), truth_of(50), generator()).X
    frequency = (X > 0).mean(axis=0)
    assert frequency.min() >= RARE[0]
    assert frequency.max() <= RARE[1] + 0.001


def test_spectra_are_smooth() -> None:
    X = draw_spectra((300,), truth_of(100), generator()).X
    correlations = np.corrcoef(X.T)
    assert np.diagonal(correlations, 1).min() > 0.99


def test_visits_of_a_patient_share_columns_and_noise() -> None:
    drawn = draw_visits((2000, 1003), truth_of(10), generator())
    first = drawn.X[:2000].reshape(-1, VISITS, 10)
    assert (first[:, :, ::2] == first[:, :1, ::2]).all()
    assert (first[:, 0, 1::2] != first[:, 1, 1::2]).all()
    # A site's first patient is not another site's last.
    assert drawn.offset[1999] != drawn.offset[2000]
    assert drawn.offset.var() == pytest.approx(ICC, rel=0.15)
    np.testing.assert_allclose(drawn.spread**2, 1 - ICC)


def test_noise_grows_with_a_column_that_has_no_effect() -> None:
    truth = np.array([1.0, 0.0, 0.0, 1.0])
    drawn = draw_noisy_column((50_000,), truth, generator())
    assert np.corrcoef(np.log(drawn.spread), drawn.X[:, 1])[0, 1] == pytest.approx(1.0)
    assert np.median(drawn.spread) < 0.5


def test_bad_rows_are_far_away_and_err_together() -> None:
    drawn = draw_leverage((2000,), truth_of(30), generator())
    bad = drawn.offset > 0
    assert bad.mean() == pytest.approx(BAD)
    assert drawn.X[bad].std() > 2 * drawn.X[~bad].std()


def test_responses_of_corrupted_rows_belong_to_other_values() -> None:
    truth = truth_of(30)
    drawn = draw_corrupted((2000,), truth, generator())
    bad = drawn.offset != 0
    assert bad.mean() == pytest.approx(BAD)
    assert drawn.X[bad].std() == pytest.approx(CORRUPT, rel=0.1)
    signal = drawn.X @ truth
    without = signal + signal.std() * drawn.offset
    assert signal[bad].std() > 2 * signal[~bad].std()
    assert without[bad].std() == pytest.approx(signal[~bad].std(), rel=0.5)


def test_designs_without_enough_rows_or_of_another_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FedLassoError, match="'digits' has 1797 rows"):
        replace(SMALL, sizes=(2000,), design="digits").draw(generator())
    file = tmp_path / "mine.toml"
    file.write_text("[mine]\nsizes = [30, 30]\ndesign = 'waves'\n")
    with pytest.raises(FedLassoError, match="no design is called 'waves'; known: digits"):
        read_scenarios(file)
    file.write_text("[mine]\nsizes = [30, 30]\ndesign = 'spectra'\n")
    assert read_scenarios(file)[0].design == "spectra"


def test_cells_are_scenarios_of_the_study_and_no_oracle_judges_designs() -> None:
    scenarios = TrustStudy().scenarios
    assert all(scenarios[cell.name] is cell for cell in CELLS)
    assert all(50 <= cell.p <= 200 and 600 <= sum(cell.sizes) <= 1200 for cell in CELLS)
    assert {cell.design for cell in CELLS} - {""} == set(DESIGNS)
    study = TrustStudy(methods=("best possible",))
    assert not study.replicate(replace(SMALL, design="rare"), 0)
    assert not study.replicate(replace(SMALL, correlations=(0.98,)), 0)


def test_the_paper_draws_have_not_changed() -> None:
    scenario = SCENARIOS["different-distributions"]
    draw = scenario.draw(scenario.generator(1, 0))
    sums = [float(draw.truth.sum()), *(float(y.sum()) for _, y in draw.training)]
    np.testing.assert_allclose(sums, EXPECTED, rtol=1e-9)
