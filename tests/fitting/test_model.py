"""Identities of a fit through the federation, on random federations."""

from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlasso import FedLassoError, InProcess, Ledger, Site, Status
from fedlasso.errors import RefusalCode, Refused
from fedlasso.federation import Around, Costs, Reply, Request
from fedlasso.fitting import GOALS, Model, Settings, fit_model
from fedlasso.fitting.fit_plan import FEW_ROWS
from fedlasso.fitting.inference.infer import count_vectors
from fedlasso.numerics import Array, LeastSquares, solve_reference
from fedlasso.sites import FoldMoments
from fedlasso.sites.rows import folds_in

R = TypeVar("R", bound=Reply)


def draw(sizes: list[int], p: int, seed: int) -> tuple[list[Site], Array, Array]:
    """Sites whose columns differ in mean and scale, in parts by site."""
    rng = np.random.default_rng(seed)
    m = sum(sizes)
    X = rng.standard_normal((m, p)) * rng.uniform(0.01, 100, p) + 10 * rng.standard_normal(p)
    y = X[:, 0] / X[:, 0].std() + 0.5 * rng.standard_normal(m) + 3
    ends = np.cumsum([0, *sizes])
    sites = [Site(f"{j}", X[a:b], y[a:b], raw=True) for j, (a, b) in enumerate(pairwise(ends))]
    return sites, X, y


def vectors_sent(costs: Costs, p: int) -> float:
    """Vectors of p numbers that the site that sent most has sent."""
    most = 0.0
    for site in costs.sites:
        numbers = sum(costs.total(k, site).upload for k in ("scaling", "moments", "training")) / 8
        # Three messages agree on a scaling, and 11 of their numbers are no part of a vector.
        scalars = 11 * costs.total("scaling", site).messages / 3
        most = max(most, (numbers - scalars) / p)
    return most


@settings(max_examples=25)
@given(
    sizes=st.lists(st.integers(1, 25), min_size=1, max_size=6).filter(lambda s: sum(s) >= 6),
    p=st.integers(1, 40),
    share=st.floats(0.05, 0.9),
    seed=st.integers(0, 10**6),
)
def test_any_split_of_the_rows_gives_the_pooled_lasso(
    sizes: list[int], p: int, share: float, seed: int
) -> None:
    sites, X, y = draw(sizes, p, seed)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    pooled = LeastSquares(Z, y - y.mean())
    lam = share * float(np.abs(pooled.score).max())
    model = fit_model(InProcess(sites), Settings(penalty=lam, uploads=200))
    reference = solve_reference(pooled, lam)
    assert reference.met
    np.testing.assert_allclose(model.fit.coefficients, reference.coefficients, atol=1e-7)
    np.testing.assert_allclose(model.predict(X), Z @ reference.coefficients + y.mean(), atol=1e-6)


def test_the_units_of_a_column_do_not_matter() -> None:
    sites, X, y = draw([30, 20], 6, 0)
    other = X * 10.0 ** np.arange(6) - 7
    again = [
        Site(f"{j}", other[r], y[r], raw=True) for j, r in enumerate([slice(30), slice(30, 50)])
    ]
    for how in (Settings(), Settings(cv=3), Settings(goal="selection")):
        one, two = fit_model(InProcess(sites), how), fit_model(InProcess(again), how)
        np.testing.assert_allclose(one.predict(X), two.predict(other), rtol=1e-6)


def test_a_search_spends_no_more_than_it_may() -> None:
    sites, X, _ = draw([60, 50], 30, 1)
    for uploads in (59, 60, 100):
        model = fit_model(InProcess(sites), Settings(cv=3, uploads=uploads))
        assert vectors_sent(model.costs, 30) <= uploads
        assert np.isfinite(model.predict(X)).all()
    with pytest.raises(FedLassoError, match="3 folds take 58 uploads or more with 30 columns"):
        fit_model(InProcess(sites), Settings(cv=3, uploads=55))


@pytest.mark.standard
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("p", [5, 40, 150])
@pytest.mark.parametrize("uploads", [5, 20, 50, 100, 1000])
def test_no_goal_spends_more_uploads_than_it_may(goal: str, p: int, uploads: int) -> None:
    sites, X, _ = draw([60, 50, 40], p, 2)
    ledger = Ledger(InProcess(sites))
    how = Settings(goal=goal, uploads=uploads)
    # Standardising twice and two gradients are the least; a whole path, or moments, need more.
    least = max(25 if goal == "objective" and p > 5 else 6, 2 * count_vectors(how, p) + 1)
    if uploads < least:
        # One sentence says what is too little, and no more was sent until then.
        with pytest.raises(FedLassoError, match=r"^`uploads` .*; give more"):
            fit_model(ledger, how)
    else:
        model = fit_model(ledger, how)
        assert ledger.costs.total() == model.costs.total()
        assert np.isfinite(model.predict(X)).all()
    assert vectors_sent(ledger.costs, p) <= uploads


@pytest.mark.standard
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("p", [3, 30])
def test_by_default_every_row_trains(goal: str, p: int) -> None:
    for seed in range(3):
        sites, X, y = draw([30, 25, 20], p, seed)
        model = fit_model(InProcess(sites), Settings(goal=goal, site_effects=False))
        assert model.scaling.rows == 75
        assert model.scaling.sizes == (30, 25, 20)
        assert model.scaling.held_out == (0, 0)
        assert model.fit.problem.m == 75
        assert model.status is Status.CHOSEN
        assert model.fit.plan.startswith("second moments of 20 folds")
        # The intercept is what all rows together want of it.
        assert model.predict(X).mean() == pytest.approx(y.mean(), rel=1e-9)
        assert model.fit.evidence is not None
        assert model.fit.evidence.whole.rows == 75
        assert_certified_by_records(model, X, y)


def assert_certified_by_records(model: Model, X: Array, y: Array) -> None:
    """Assert that what the server certified is the objective on all rows, and a good one."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    r = y - y.mean() - Z @ model.fit.coefficients
    value = float(r @ r) / (2 * len(y)) + model.fit.penalty.value(model.fit.coefficients)
    assert model.fit.certificate is not None
    assert model.fit.certificate.objective == pytest.approx(value, rel=1e-9)
    assert model.fit.certificate.gap <= 1e-8 * y.var()


@pytest.mark.parametrize("goal", ["prediction", "selection"])
def test_a_holdout_that_chose_is_trained_on_in_the_end(goal: str) -> None:
    sites, X, y = draw([80, 70], 40, 3)
    model = fit_model(InProcess(sites), Settings(goal=goal, validation=0.2, uploads=200))
    assert model.status is Status.CHOSEN
    assert (model.scaling.rows, model.scaling.held_out) == (150, (0, 0))
    assert model.fit.why.endswith(", fitted to all rows")
    assert model.fit.plan == "a holdout, as requested"
    assert model.predict(X).mean() == pytest.approx(y.mean(), rel=1e-9)


def test_uploads_that_end_early_are_told_first() -> None:
    cut = 0
    for seed in range(4):
        sites, _, _ = draw([60, 50], 150, seed)
        for uploads in (16, 18, 20):
            model = fit_model(InProcess(sites), Settings(uploads=uploads))
            assert model.fit.plan.startswith("gradients, and a holdout that chooses")
            assert "cross-validation would take" in model.fit.plan
            assert model.fit.curve is not None
            if model.fit.curve.cut or model.scaling.held_out != (0, 0):
                # The path was not followed to its end, or the choice not fitted to all rows.
                assert model.status is Status.CUT
                cut += 1
    # So few gradients never see the error of 150 columns rise.
    assert cut == 12


def test_a_curve_that_was_cut_is_told_before_how_the_fit_ended() -> None:
    sites, _, _ = draw([60, 50], 5, 0)
    model = fit_model(InProcess(sites), Settings())
    assert model.fit.curve is not None
    assert model.status is Status.CHOSEN
    cut = replace(model.fit, curve=replace(model.fit.curve, cut=True))
    assert replace(model, fit=cut).status is Status.CUT
    assert replace(model, fit=replace(model.fit, curve=None)).status is Status.CHOSEN


def test_what_is_too_little_for_anything_is_one_sentence() -> None:
    sites, _, _ = draw([60, 50], 150, 0)
    for uploads in (1, 2, 3, 4, 5):
        with pytest.raises(FedLassoError, match=rf"`uploads` is {uploads}, standardising takes \d"):
            fit_model(InProcess(sites), Settings(uploads=uploads))
    with pytest.raises(FedLassoError, match="10 folds take 74 uploads or more with 8 columns"):
        fit_model(InProcess(draw([60, 50], 8, 0)[0]), Settings(cv=10, uploads=20))


class Refusing(Around):
    """A federation whose sites tell moments of no more than so many folds."""

    def __init__(self, inner: InProcess, most: int) -> None:
        super().__init__(inner)
        self.most = most

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        if isinstance(request, FoldMoments) and folds_in(request.split) > self.most:
            text = f"site '0': at most {self.most}; ask for fewer folds"
            raise Refused(text, ("0",), RefusalCode.FEWER_FOLDS)
        return self.inner.replies(request)


@pytest.mark.standard
@pytest.mark.parametrize("sizes", [[4, 3], [12, 9], [150, 120]])
@pytest.mark.parametrize("most", [7, 5, 1])
def test_a_site_that_refuses_some_folds_gets_another_plan(sizes: list[int], most: int) -> None:
    said: list[str] = []
    sites, X, _ = draw(sizes, 3, 0)
    model = fit_model(Refusing(InProcess(sites), most), Settings(), said.append)
    # Every plan is told, and none is made twice.
    *_, plan = said
    assert len(set(said)) == len(said)
    assert plan == f"plan: {model.fit.plan}"
    if most == 1:
        few = sum(sizes) < FEW_ROWS
        how = f"on {min(sum(sizes), 10)} folds" if few else "and a holdout that chooses"
        assert plan.replace(",", "").startswith(f"plan: gradients {how}")
        assert "because site '0': at most 1; ask for fewer folds" in plan
    else:
        folds = min(most, sum(sizes)) if sum(sizes) == 7 else 5
        assert plan.startswith(f"plan: second moments of {folds} folds")
    assert np.isfinite(model.predict(X)).all()
