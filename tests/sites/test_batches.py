"""Batches of rows: whole clusters, drawn once, and variances of slopes from their sums."""

import numpy as np
import pytest

from fedlasso import FedLassoError, InProcess, Site
from fedlasso.fitting import fit_model
from fedlasso.fitting.inference.infer import FEW_CLUSTERS
from fedlasso.fitting.settings import Settings
from fedlasso.sites import BatchSlopes, folds, standardise
from fedlasso.sites.fold_assignment import BATCH_ROWS, MOST_BATCHES


def draw(clusters: bool = False, secret: bytes = b"", rows: int = 123) -> Site:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((rows, 3))
    patients = np.arange(rows) // 4 if clusters else None
    y = X[:, 0] + rng.standard_normal(rows)
    return Site("north", X, y, raw=True, clusters=patients, secret=secret)


@pytest.mark.parametrize("clusters", [False, True])
@pytest.mark.parametrize("rows", [45, 123, 2000])
def test_batches_are_many_hold_enough_rows_and_whole_clusters(clusters: bool, rows: int) -> None:
    site = draw(clusters, rows=rows)
    sizes = np.bincount(site.batches)
    assert sizes.min() >= BATCH_ROWS
    assert 2 <= len(sizes) <= min(MOST_BATCHES, rows // BATCH_ROWS)
    if clusters:
        for patient in range(0, rows, 4):
            assert len(set(site.batches[patient : patient + 4])) == 1
        for fold in folds(3, 0):
            held_out = site.draw.divide(fold, rows)["penalty"]
            training = site.draw.divide(fold, rows)["training"]
            assert not set(held_out // 4) & set(training // 4)
            assert sorted([*held_out, *training]) == list(range(rows))


def test_batches_are_the_same_for_ever_and_another_secret_draws_others() -> None:
    first = draw(secret=b"one")
    np.testing.assert_array_equal(first.batches, draw(secret=b"one").batches)
    assert (first.batches != draw(secret=b"other").batches).any()
    labels = np.array(["x", None, float("nan"), "x"], dtype=object)
    with pytest.raises(FedLassoError, match="clusters are missing in 2 rows"):
        Site("a", np.eye(4), np.ones(4), raw=True, clusters=labels)


def test_squares_of_batch_sums_about_their_mean_are_what_a_site_sends() -> None:
    site = draw(clusters=True)
    b = np.array([0.5, 0.0, 0.1])
    along = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 1.0]])
    view, scaling = standardise(InProcess([site]))
    sums = view.total(BatchSlopes(b, along))
    X = (site.table.columns.T - scaling.means) * scaling.factors
    residuals = site.response.y - scaling.y_mean - X @ b
    terms = -residuals[:, None] * (X @ along)
    of_batches = np.array(
        [terms[site.batches == k].sum(axis=0) for k in range(site.batches.max() + 1)]
    )
    shares = np.bincount(site.batches) / site.rows
    about = of_batches - np.outer(shares, terms.sum(axis=0))
    np.testing.assert_allclose(sums.variances, (about**2).sum(axis=0) / (1 - shares @ shares), 1e-5)
    np.testing.assert_allclose(sums.degrees, 1 / (shares @ shares) - 1)
    assert sums.clusters == 31
    # Two batches cannot be made of fifteen rows: there is nothing to send.
    few, _ = standardise(InProcess([draw(rows=15)]))
    assert few.total(BatchSlopes(b, along)).degrees == 0


def test_variances_along_directions_that_cancel_are_precise() -> None:
    """Such directions belong to nearly collinear columns; too coarse a grid made variances zero."""
    rng = np.random.default_rng(3)
    curves = np.cumsum(rng.standard_normal((600, 5)) @ rng.standard_normal((5, 60)), axis=1)
    X = curves / curves.std(axis=0) + 0.01 * rng.standard_normal((600, 60))
    site = Site("a", X, rng.standard_normal(600), raw=True)
    view, scaling = standardise(InProcess([site]))
    X = (X - scaling.means) * scaling.factors
    along = np.linalg.inv(X.T @ X / 600)[:, :3]
    terms = -(site.response.y - scaling.y_mean)[:, None] * (X @ along)
    shares = np.bincount(site.batches) / 600
    sums = np.zeros((len(shares), 3))
    np.add.at(sums, site.batches, terms)
    about = sums - np.outer(shares, terms.sum(axis=0))
    found = view.total(BatchSlopes(np.zeros(60), along)).variances
    np.testing.assert_allclose(found, (about**2).sum(axis=0) / (1 - shares @ shares), rtol=1e-4)


@pytest.mark.parametrize("clusters", [False, True])
def test_errors_are_those_of_the_noise_at_hand(clusters: bool) -> None:
    """Noise that grows with a column, or patients with several rows, widen intervals."""
    rng = np.random.default_rng(0)
    sites = []
    for name in "abc":
        patients = np.repeat(np.arange(80), 5)
        X = rng.standard_normal((400, 4))
        noise = rng.standard_normal(400)
        if clusters:
            X[:, 0] = rng.standard_normal(80)[patients]
            noise = (noise + rng.standard_normal(80)[patients]) / np.sqrt(2)
        else:
            noise *= X[:, 0] ** 2 / np.sqrt(3)
        labels = patients if clusters else None
        sites.append(Site(name, X, X[:, 1] + noise, raw=True, clusters=labels))
    model = fit_model(InProcess(sites), Settings(penalty=0.05, intervals=("x0", "x2")))
    assert model.trust is not None
    assert model.trust.named is not None
    # In units of equal, independent noise; the true ones are about 2 and 1.
    wide, plain = model.trust.named.errors * np.sqrt(1200)
    assert wide > 1.4
    assert 0.75 < plain < 1.25


@pytest.mark.parametrize(("patients", "few"), [(3, True), (4, False)])
def test_too_few_clusters_for_standard_errors_are_noted(patients: int, few: bool) -> None:
    """Three patients at each of two sites are four degrees of freedom; errors need five."""
    rng = np.random.default_rng(4)
    sites = []
    for name in "ab":
        X = rng.standard_normal((40 * patients, 3))
        labels = np.repeat(np.arange(patients), 40)
        y = X[:, 0] + rng.standard_normal(len(X))
        sites.append(Site(name, X, y, raw=True, clusters=labels))
    trust = fit_model(InProcess(sites), Settings(penalty=0.05, intervals=("x0",))).trust
    assert trust is not None
    assert (FEW_CLUSTERS in trust.notes) == few
    assert trust.marked == few
