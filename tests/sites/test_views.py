"""Views: split and standardised records, named, remembered, and never copied."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from fedlasso import FedLassoError, InProcess, Site
from fedlasso.federation import Ledger
from fedlasso.numerics import Array, LeastSquares, Standardised, Table
from fedlasso.sites import FitAt, GradientAt, Memory, Rows, halves, holdout, standardise


def draw(rows: int = 50, columns: int = 8, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns)) * rng.uniform(0.1, 9, columns) + 5
    return X, X[:, 0] + rng.standard_normal(rows)


def explicit(X: Array, y: Array) -> LeastSquares:
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    return LeastSquares(Z, y - y.mean())


@pytest.mark.parametrize("kind", ["dense", "sparse", "holes"])
@pytest.mark.parametrize("far", [0.0, 1e4])
def test_a_view_equals_standardised_records(kind: str, far: float) -> None:
    X, y = draw()
    X[:, :2] += far
    if kind == "sparse":
        X[:, 2:][np.random.default_rng(1).random((50, 6)) < 0.7] = 0.0
        table, full = Table(sp.csr_array(X)), X
    elif kind == "holes":
        holes = np.random.default_rng(1).random(X.shape) < 0.1
        full = np.where(holes, np.nanmean(np.where(holes, np.nan, X), axis=0), X)
        table = Table(np.where(holes, 0.0, X), sp.csc_array(holes, dtype=float))
    else:
        table, full = Table(X), X
    reference = explicit(full, y)
    mean, factor = full.mean(axis=0), 1 / full.std(axis=0)
    view = LeastSquares(Standardised(table, None, mean, factor), y - y.mean())
    b = np.arange(8.0) - 3
    for name in ("score", "gram", "columns", "largest_curvature", "y_ss"):
        np.testing.assert_allclose(getattr(view, name), getattr(reference, name), atol=1e-10)
    np.testing.assert_allclose(view.design.norms, reference.design.norms, atol=1e-10)
    np.testing.assert_allclose(view.residual(b), reference.residual(b), atol=1e-10)
    np.testing.assert_allclose(view.gradient(b), reference.gradient(b), atol=1e-10)
    rows = np.array([3, 7, 20, 41])
    part = LeastSquares(Standardised(table, rows, mean, factor), y[rows] - y.mean())
    np.testing.assert_allclose(part.residual(b), reference.residual(b)[rows], atol=1e-10)
    direct = LeastSquares(reference.X[rows], reference.y[rows])
    np.testing.assert_allclose(part.gradient(b), direct.gradient(b), atol=1e-10)
    np.testing.assert_allclose(part.gram, direct.gram, atol=1e-10)


def test_sites_agree_on_means_and_scales_by_sums() -> None:
    X, y = draw()
    sites = InProcess([Site("a", X[:30], y[:30]), Site("b", X[30:], y[30:])])
    ledger = Ledger(sites)
    view, scaling = standardise(ledger)
    np.testing.assert_allclose(scaling.means, X.mean(axis=0))
    np.testing.assert_allclose(1 / scaling.factors, X.std(axis=0))
    # Two scalars; sums and squares, and four scalars, in two words; three scalars.
    assert ledger.costs.total("scaling", "a").upload == 8 * (2 + 16 + 6 + 16 + 2 + 3)
    gradient = view.total(GradientAt(np.ones(8))).gradient
    np.testing.assert_allclose(gradient / 50, explicit(X, y).gradient(np.ones(8)), atol=1e-12)
    b, intercept = scaling.original(np.ones(8))
    Z = explicit(X, y).X
    np.testing.assert_allclose(X @ b + intercept, Z @ np.ones(8) + y.mean())


def test_far_means_do_not_spoil_the_scales() -> None:
    X, y = draw()
    _, near = standardise(InProcess([Site("a", X, y)]))
    _, far = standardise(InProcess([Site("a", X + 1e7, y)]))
    np.testing.assert_allclose(near.factors, far.factors, rtol=1e-7)


def test_a_view_outlives_the_process_where_memory_has_a_folder(tmp_path: Path) -> None:
    X, y = draw()
    view, _ = standardise(InProcess([Site("a", X, y, memory=Memory(tmp_path))]), holdout(0.2, 0))
    before = view.total(FitAt(np.ones(8)))
    again = Site("a", X, y, memory=Memory(tmp_path))
    after = again.answer(FitAt(np.ones(8), on=view.name))
    np.testing.assert_allclose(before.gradient, after.gradient, rtol=1e-11)
    with pytest.raises(FedLassoError, match="of this fit is not stored"):
        Site("a", X, y).answer(Rows(on=view.name))


def test_views_that_are_recalled_make_room_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedlasso.sites.site._VIEWS", 2)
    X, y = draw()
    names = [
        standardise(InProcess([Site("a", X, y, memory=Memory(tmp_path))]), split)[0].name
        for split in halves(4, 0)
    ]
    again = Site("a", X, y, memory=Memory(tmp_path))
    assert [again.view(name).rows for name in names] == [25] * 4
    assert len(again._views) == 2


def test_large_views_refuse_to_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = draw()
    view = Standardised(Table(X), None, np.zeros(8), np.ones(8))
    monkeypatch.setattr("fedlasso.numerics.table.LARGEST_COPY", 10)
    with pytest.raises(FedLassoError, match="fit by goal or by Secant or FISTA"):
        _ = view.columns
