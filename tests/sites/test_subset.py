"""Second moments of some columns: over training and held-out rows, alike or weighed by site."""

import numpy as np
import pytest
from helpers.draws import draw_sites
from numpy.testing import assert_allclose

from fedlasso import FedLassoError, InProcess, Site
from fedlasso.numerics import Array, Sample
from fedlasso.numerics.triangles import unpack
from fedlasso.sites import SubsetMoments, WeightedMoments, standardise
from fedlasso.sites.rows import PURPOSES
from fedlasso.sites.second_moments import HEAVIEST, PRIOR_ROWS

COLUMNS = np.array([1, 4, 30])


def products(sample: Sample) -> Array:
    V = np.column_stack([sample.X[:, COLUMNS], sample.y])
    return np.asarray(V.T @ V)


def held_out(site: Site) -> list[Sample]:
    return [site.validation(purpose) for purpose in PURPOSES]


def test_moments_are_those_of_training_and_held_out_rows() -> None:
    sites = draw_sites()
    total = InProcess(sites).total(SubsetMoments(COLUMNS))
    training, held = (unpack(part, 4) for part in total.moments)
    assert_allclose(training, sum(products(site.training) for site in sites), atol=1e-9)
    assert_allclose(held, sum(products(s) for site in sites for s in held_out(site)), atol=1e-9)
    assert (total.rows, total.held_out, total.weight) == (75, 72, 147.0)


def test_a_view_tells_the_same_of_its_own_rows() -> None:
    sites = draw_sites()
    view, scaling = standardise(InProcess(sites), "", centre=False)
    training, held = (unpack(part, 4) for part in view.total(SubsetMoments(COLUMNS)).moments)
    factors = np.append(scaling.factors[COLUMNS], 1.0)
    scale = np.outer(factors, factors)
    assert_allclose(training, scale * sum(products(site.training) for site in sites), atol=1e-7)
    samples = [s for site in sites for s in held_out(site)]
    assert_allclose(held, scale * sum(map(products, samples)), atol=1e-7)


@pytest.mark.parametrize("training_only", [False, True])
def test_sites_where_a_model_fits_well_count_for_more(training_only: bool) -> None:
    sites = draw_sites()
    b = np.zeros(40)
    b[:5] = np.linspace(0.2, 1.0, 5)
    question = WeightedMoments(COLUMNS, b, 2.0, training_only)
    moments = np.zeros((4, 4))
    weights = 0.0
    for site in sites:
        samples = [site.training, *held_out(site)]
        rows = sum(s.m for s in samples)
        judged = samples[:1] if training_only else samples
        squares = sum(float(((s.y - s.X @ b) ** 2).sum()) for s in judged)
        known = sum(s.m for s in judged) + PRIOR_ROWS
        weight = 2.0 / ((squares + PRIOR_ROWS * 2.0) / known)
        moments += weight * sum(map(products, samples))
        weights += weight * rows
    total = InProcess(sites).total(question)
    assert_allclose(unpack(total.moments.sum(axis=0), 4), moments, rtol=1e-12)
    assert total.weight == pytest.approx(weights, rel=1e-12)


def test_no_site_counts_for_nearly_all() -> None:
    """A model without any error at a site does not make the other sites vanish."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 3))
    exact = Site("a", X, X[:, 0], validation=dict.fromkeys(PURPOSES, (X, X[:, 0])))
    reply = exact.answer(WeightedMoments(np.array([0]), np.eye(3)[0], 1.0))
    assert reply.weight == 2.0**HEAVIEST * 15000
    # Where nothing is left to explain at any site, all count alike.
    reply = exact.answer(WeightedMoments(np.array([0]), np.eye(3)[0], 0.0))
    assert reply.weight == 15000


def test_rows_about_their_own_mean_are_not_mixed_with_others() -> None:
    X = np.random.default_rng(0).standard_normal((20, 3))
    held = dict.fromkeys(PURPOSES, (X, X[:, 1]))
    site = Site("a", X, X[:, 0], validation=held, effects=True)
    with pytest.raises(FedLassoError, match="held-out rows cannot be added to rows with"):
        site.answer(SubsetMoments(np.array([0])))
