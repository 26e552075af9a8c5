"""Second moments of folds: dealt at each site, added up, and the pooled records' own."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.loops import loop
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from fedlasso import FedLassoError, InProcess, Site
from fedlasso.numerics import Array
from fedlasso.numerics.triangles import unpack
from fedlasso.sites import FoldMoments, all_folds, count_numbers, standardise
from fedlasso.sites.rows import divide, fold_rows, folds, folds_in

P = 5


def draw(sizes: list[int], seed: int) -> tuple[list[Site], Array, Array]:
    rng = np.random.default_rng(seed)
    m = sum(sizes)
    X = rng.standard_normal((m, P)) * [1, 10, 0.1, 3, 1] + [0, 5, 0, -3, 1]
    y = X[:, 0] + rng.standard_normal(m)
    ends = pairwise(np.cumsum([0, *sizes]))
    sites = [Site(f"s{j}", X[a:b], y[a:b], raw=True) for j, (a, b) in enumerate(ends)]
    return sites, X, y


def products(X: Array, y: Array) -> Array:
    A = np.column_stack([np.ones(len(y)), X, y])
    return np.asarray(A.T @ A)


@settings(max_examples=30)
@given(
    sizes=st.lists(st.integers(2, 30), min_size=1, max_size=5),
    count=st.integers(2, 12),
    seed=st.integers(0, 10**6),
)
def test_folds_of_all_sites_add_up(sizes: list[int], count: int, seed: int) -> None:
    sites, X, y = draw(sizes, seed)
    split = all_folds(count, seed)
    total = InProcess(sites).total(FoldMoments(split))
    assert total.moments.shape == (count, count_numbers(P))
    starts = np.cumsum([0, *sizes])
    parts = [fold_rows(split, site.name, n) for site, n in zip(sites, sizes, strict=True)]
    for k in range(count):
        rows = np.concatenate([start + part[k] for start, part in zip(starts, parts, strict=False)])
        found = unpack(total.moments[k], P + 2)
        assert_allclose(found, products(X[rows], y[rows]), rtol=0, atol=1e-9)
    whole = unpack(total.moments.sum(axis=0), P + 2)
    assert_allclose(whole, products(X, y), rtol=0, atol=1e-8)


def test_without_a_deal_all_rows_are_one_fold() -> None:
    sites, X, y = draw([9, 4], 0)
    total = InProcess(sites).total(FoldMoments())
    assert total.moments.shape == (1, count_numbers(P))
    assert_allclose(unpack(total.moments[0], P + 2), products(X, y), atol=1e-9)


@loop("seed", range(5))
def test_a_view_tells_moments_of_standardised_rows(seed: int) -> None:
    sites, X, y = draw([20, 11, 7], seed)
    view, _ = standardise(InProcess(sites), "")
    total = view.total(FoldMoments(all_folds(4, 1)))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    whole = unpack(total.moments.sum(axis=0), P + 2)
    assert_allclose(whole, products(Z, y - y.mean()), rtol=0, atol=1e-9)


@settings(max_examples=50)
@given(n=st.integers(1, 60), count=st.integers(2, 25), seed=st.integers(0, 10**6))
def test_a_deal_gives_every_row_to_one_fold(n: int, count: int, seed: int) -> None:
    parts = fold_rows(all_folds(count, seed), "north", n)
    assert len(parts) == count == folds_in(all_folds(count, seed))
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(n))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    # The folds are those of a cross-validation, and a deal leaves all rows to train.
    for part, fold in zip(parts, folds(count, seed), strict=True):
        assert np.array_equal(part, divide(fold, "north", n)["penalty"])
    assert np.array_equal(divide(all_folds(count, seed), "north", n)["training"], np.arange(n))


def test_a_deal_depends_on_seed_and_site_only() -> None:
    def order(seed: int, site: str) -> list[list[int]]:
        return [part.tolist() for part in fold_rows(all_folds(4, seed), site, 40)]

    assert order(3, "a") == order(3, "a")
    assert order(3, "a") != order(4, "a")
    assert order(3, "a") != order(3, "b")


def test_moments_of_one_site_are_not_told_on_their_own() -> None:
    sites, _, _ = draw([20, 11, 7], 0)
    question = FoldMoments(all_folds(5, 2))
    with pytest.raises(TypeError, match="FoldMoments is answered by a total"):
        InProcess(sites).ask(question)
    alone = [site.answer(question).moments for site in sites]
    together = InProcess(sites).total(question).moments
    assert_allclose(together, np.sum(alone, axis=0), rtol=1e-12, atol=1e-12)


def test_small_sites_do_not_all_fill_the_first_folds() -> None:
    """With two rows each, a hundred sites leave no fold of ten without its share."""
    counts = np.zeros(10)
    for j in range(100):
        counts += [len(part) for part in fold_rows(all_folds(10, 0), f"site {j}", 2)]
    assert counts.sum() == 200
    assert counts.min() >= 10


@pytest.mark.parametrize(
    "split", ["holdout 0.2 0", "fold 1 of 3 0", "folds x 0", "folds 3", "folds"]
)
def test_what_deals_no_folds_is_one_clear_error(split: str) -> None:
    with pytest.raises(FedLassoError, match="has no folds; request 'folds COUNT SEED'"):
        fold_rows(split, "a", 9)
    assert folds_in(split) == 1


def test_a_deal_into_one_fold_is_refused() -> None:
    with pytest.raises(FedLassoError, match="`cv` is 1; give a whole number of folds, 2 or more"):
        fold_rows(all_folds(1, 0), "a", 9)


@pytest.mark.parametrize("p", [1, 2, 13, 600])
def test_numbers_are_counted_as_they_are_sent(p: int) -> None:
    assert count_numbers(p) == len(np.triu_indices(p + 2)[0])
