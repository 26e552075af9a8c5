"""Fed-FDR: what sites select and send, and how pairs of them are combined."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from fedlasso.numerics import Array
from fedlasso.study.fed_fdr import combine_sites, score_columns, select_columns, site_scores


def draw_sites(
    seed: int, sites: int = 3, rows: int = 120, p: int = 20, effect: float = 0.6
) -> list[tuple[Array, Array]]:
    rng = np.random.default_rng(seed)
    truth = np.zeros(p)
    truth[:4] = effect
    designs = [rng.standard_normal((rows, p)) * 2 + 1 for _ in range(sites)]
    return [(X, X @ truth + rng.standard_normal(rows)) for X in designs]


def test_scores_are_those_of_least_squares() -> None:
    ((X, y),) = draw_sites(1, sites=1)
    scores = score_columns(X, y)
    fit = LinearRegression().fit(X, y)
    left = y - fit.predict(X)
    A = np.column_stack([np.ones(len(y)), X])
    variance = left @ left / (len(y) - A.shape[1]) * np.diagonal(np.linalg.inv(A.T @ A))[1:]
    np.testing.assert_allclose(scores, fit.coef_ / np.sqrt(variance), rtol=1e-8)


def test_a_column_that_repeats_another_or_does_not_vary_has_a_score() -> None:
    ((X, y),) = draw_sites(2, sites=1, p=6)
    doubled = np.column_stack([X, X[:, 0], np.ones(len(y))])
    assert np.isfinite(score_columns(doubled, y)).all()


def test_a_site_selects_the_columns_that_matter() -> None:
    ((X, y),) = draw_sites(3, sites=1)
    chosen = select_columns(X, y)
    assert chosen[:4].all()
    assert chosen.sum() <= 12


def test_a_site_tests_only_what_the_others_selected() -> None:
    samples = draw_sites(4, sites=2, effect=0.4)
    scores, sent = site_scores(samples)
    chosen = [select_columns(X, y) for X, y in samples]
    np.testing.assert_array_equal(scores[0] != 0, chosen[1])
    np.testing.assert_array_equal(scores[1] != 0, chosen[0])
    assert sent == 2 * (chosen[0].sum() + chosen[1].sum())
    # Its own responses have no part in which columns it tests.
    (X, y), other = samples
    again, _ = site_scores([(X, y[::-1]), other])
    np.testing.assert_array_equal(again[0] != 0, chosen[1])


def test_pairs_of_sites_are_combined_by_inclusion_rates() -> None:
    scores = np.array([[9.0, 8.0, 0.0, 7.0], [9.0, 8.0, 7.0, -7.0], [9.0, -8.0, 0.0, 0.0]])
    # Columns 0 and 1 at the first pair; at the others column 0 alone, so that its rate is 5/6.
    assert combine_sites(scores, 0.1).tolist() == [True, True, False, False]
    assert combine_sites(scores, 0.2).tolist() == [True, False, False, False]
    # All pairs agree on ten columns: a rate of 0.2 leaves out two of them.
    assert combine_sites(np.full((3, 10), 5.0), 0.2).sum() == 8
    assert not combine_sites(np.array([[3.0, 2.0], [-3.0, -2.0]]), 0.2).any()


@pytest.mark.standard
def test_it_discovers_what_has_an_effect_and_little_else() -> None:
    false = hits = 0
    for seed in range(10):
        scores, _ = site_scores(draw_sites(seed, rows=150))
        found = np.flatnonzero(combine_sites(scores, 0.1))
        hits += int((found < 4).sum())
        false += int((found >= 4).sum())
    assert hits >= 30
    assert false <= 10
