"""The common penalty and the two selection rules."""

import numpy as np
import pytest
from helpers.draws import draw_federation, draw_sites
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlasso import InProcess, Ledger, Site
from fedlasso.fitting import choose_penalty, local_search, search_penalty, validate
from fedlasso.fitting.validation import Validation
from fedlasso.numerics import Array, LeastSquares
from fedlasso.sites import HeldOutErrors


def test_common_penalty_is_the_weighted_mean_of_local_choices() -> None:
    sites = draw_sites()
    problem = choose_penalty(InProcess(sites))
    local = [search_penalty(s.least_squares, s.validation("penalty")) for s in sites]
    assert problem.penalty.lam == pytest.approx(
        sum(s.rows * c.lam for s, c in zip(sites, local, strict=True)) / 75, rel=1e-12
    )
    assert problem.sizes == (30, 25, 20)


def test_each_site_keeps_its_search_to_itself() -> None:
    sites = draw_sites()
    ledger = Ledger(InProcess(sites))
    choose_penalty(ledger)
    search = local_search(sites[0])
    assert search is local_search(sites[0])
    assert search.path.gaps.max() <= 1e-10
    assert len(search.path.penalties) == 30
    assert ledger.costs.total().upload == 3 * 16


def test_local_choice_has_the_smallest_error_and_ties_go_to_the_larger_penalty() -> None:
    site = draw_sites()[0]
    search = search_penalty(site.least_squares, site.validation("penalty"))
    held_out = site.validation("penalty")
    errors = [((held_out.y - held_out.X @ b) ** 2).mean() for b in search.path.coefficients.T]
    np.testing.assert_allclose(search.errors, errors, rtol=1e-10)
    assert search.lam == search.path.penalties[int(np.argmin(errors))]
    assert (np.diff(search.path.penalties) < 0).all()
    flat = search_penalty(site.least_squares, LeastSquares(np.zeros((3, 40)), np.ones(3)))
    assert flat.chosen == 0


def test_pooled_sums_equal_pooled_rows() -> None:
    sites = draw_sites()
    candidates = np.random.default_rng(2).standard_normal((40, 3)) * 0.3
    candidates[5:, 1] = 0
    validation = validate(InProcess(sites), candidates, exact=True)
    X = np.vstack([s.validation("candidate").X for s in sites])
    y = np.concatenate([s.validation("candidate").y for s in sites])
    squares = (y[:, None] - X @ candidates) ** 2
    np.testing.assert_allclose(validation.error, squares.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(
        validation.se, squares.std(axis=0, ddof=1) / np.sqrt(len(y)), rtol=1e-9
    )
    assert validation.active.tolist() == [40, 5, 40]


def test_a_rough_standard_error_is_near_the_exact_one() -> None:
    sites = draw_sites((30, 25, 20), seed=5)
    candidates = np.random.default_rng(2).standard_normal((40, 3)) * 0.3
    exact = validate(InProcess(sites), candidates, exact=True)
    rough = validate(InProcess(sites), candidates)
    assert rough.error.tobytes() == exact.error.tobytes()
    best = int(exact.error.argmin())
    # Kurtoses are told to a quarter power of two, and of the best candidate at each site only.
    assert 0.5 < rough.se[best] / exact.se[best] < 2.0
    held_out = sites[0].validation("candidate")
    squares = [held_out.errors(b) for b in candidates.T]
    own = min(squares, key=lambda each: each.sum())
    reported = sites[0].answer(HeldOutErrors(candidates)).tail / held_out.m
    kurtosis = (own**2).mean() / own.mean() ** 2
    assert abs(np.log2(reported / kurtosis)) <= 1 / 8
    assert 4 * np.log2(reported) == pytest.approx(round(4 * np.log2(reported)), abs=1e-9)


def test_residuals_of_zero_and_of_any_size_have_a_spread() -> None:
    site = Site(
        "a", np.eye(3), np.ones(3), validation={"candidate": (1e100 * np.eye(3), [0, 0, 0])}
    )
    zero = site.answer(HeldOutErrors(np.zeros((3, 1))))
    assert (zero.errors[0], zero.tail) == (0.0, 3.0)
    large = site.answer(HeldOutErrors(np.eye(3)[:, :1] * 1e30))
    assert large.tail == pytest.approx(9.0, rel=0.1)


def pick(mse: list[float], se: list[float], active: list[float]) -> tuple[int, int]:
    validation = Validation(*(np.array(v, dtype=float) for v in (mse, se, active)))
    return validation.select("min"), validation.select("1se")


def test_the_two_rules() -> None:
    assert pick([3, 1, 1], [9, 0.1, 0.1], [1, 5, 5]) == (1, 1)  # ties go to candidate order
    assert pick([1.4, 1, 1.2], [0, 0.5, 0], [3, 9, 3]) == (1, 2)  # fewest, then smaller error
    assert pick([1.6, 1, 1.2], [0, 0.5, 0], [1, 9, 3]) == (1, 2)  # beyond one standard error
    assert pick([1.5, 1, 1.2], [0, 0.5, 0], [1, 9, 3]) == (1, 0)  # exactly one standard error


@settings(max_examples=50)
@given(st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=1, max_size=6))
def test_one_standard_error_is_never_denser_than_the_minimum(
    rows: list[tuple[int, int, int]],
) -> None:
    mse, se, active = np.array(rows, dtype=float).T
    validation = Validation(mse, se, active)
    least, near = validation.select("min"), validation.select("1se")
    assert active[near] <= active[least]
    assert mse[near] <= mse[least] + se[least]
    assert mse[least] == mse.min()


def test_candidates_travel_together_without_changing_a_bit() -> None:
    candidates: Array = np.random.default_rng(3).standard_normal((40, 5))
    together = validate(draw_federation(), candidates, exact=True)
    alone = [validate(draw_federation(), candidates[:, [j]], exact=True) for j in range(5)]
    assert together.error.tobytes() == np.concatenate([v.error for v in alone]).tobytes()
    assert together.se.tobytes() == np.concatenate([v.se for v in alone]).tobytes()
