"""A curved loss asked at large models is a step: two gradients then differ by one record.

Where a model is not as large, its slopes still change at a few rows alone: those beyond all others.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedlasso import FedLassoError, Site
from fedlasso.federation import Reply, decode, encode
from fedlasso.governance import Audit, Policy, record_checks
from fedlasso.governance.guard import GuardedSite
from fedlasso.numerics import Array
from fedlasso.numerics.losses.cox import CoxLoss
from fedlasso.procedures.csl import SurrogateFit
from fedlasso.procedures.dual_averaging import CompositeSteps, DualSteps
from fedlasso.sites import GradientAt
from fedlasso.sites.questions import GradientSum
from fedlasso.sites.views import CentredSquares, Standardise

N, P = 80, 4
STEEP = 1e7


def guarded(
    folder: Path, loss: str = "binomial", largest: float = 1.0, **rules: Any
) -> tuple[GuardedSite, Array]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    X[np.abs(X[:, 0]).argmax(), 0] *= largest
    y = (rng.random(N) < 0.5).astype(np.float64)
    site = Site("a", X, y, loss=loss, intercept=True)
    return GuardedSite(site, Policy(**rules), Audit(folder / "audit.jsonl"), "ab" * 16), X


def gradient_at(site: GuardedSite, slope: float, at: float) -> Array:
    """The gradient of a model of the first column that is one half where the column is `at`."""
    b = np.zeros(P + 1)
    b[0] = slope
    b[-1] = -slope * at
    reply = decode(site.answer_bytes(encode(GradientAt(b))))
    assert isinstance(reply, GradientSum)
    return reply.gradient


def steal(site: GuardedSite) -> list[Array]:
    """Move a step along one direction, and take the difference of neighbouring gradients."""
    found = []
    before: Array | None = None
    for at in np.linspace(-0.3, 0.3, 60):
        gradient = gradient_at(site, STEEP, at)
        if before is not None:
            moved = gradient - before
            # One row crossed the step: the intercept's slope changed by one.
            if abs(abs(moved[-1]) - 1) < 1e-9:
                found.append(moved[:-1] / moved[-1])
        before = gradient
    return found


def test_steps_told_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_checks, "MAX_STEEPNESS", np.inf)
    site, X = guarded(tmp_path, min_effective_rows=0)
    found = steal(site)
    assert len(found) >= 5
    for record in found:
        assert np.abs(X - record).max(axis=1).min() < 1e-9


def test_a_model_that_is_a_step_is_refused(tmp_path: Path) -> None:
    site, _ = guarded(tmp_path, min_effective_rows=0)
    with pytest.raises(FedLassoError, match="too steep a model"):
        steal(site)
    # Ordinary models are answered.
    b = np.append(np.ones(P), 0.5)
    assert isinstance(decode(site.answer_bytes(encode(GradientAt(b)))), GradientSum)


def steepest(site: GuardedSite) -> float:
    """Bisect the largest coefficient of the first column that is answered."""
    low, high = 1.0, 1e6
    for _ in range(60):
        middle = (low + high) / 2
        try:
            gradient_at(site, middle, 0.0)
            low = middle
        except FedLassoError:
            high = middle
    return low


def test_where_steepness_is_refused_tells_no_value(tmp_path: Path) -> None:
    """It was refused where linear predictors were 60 apart: the range of a column, exactly."""
    rules = {"min_effective_rows": 0, "max_numbers": 1e6}
    found = [steepest(guarded(tmp_path / str(k), "binomial", k, **rules)[0]) for k in (1.0, 1.7)]
    assert found[0] == found[1] == pytest.approx(record_checks.MAX_STEEPNESS)


def outermost(site: GuardedSite) -> list[Array]:
    """Move a model from beyond all rows inwards until its slopes tell the first row."""
    found = []
    for side in (-1.0, 1.0):
        far = gradient_at(site, 200.0, side * 10.0)
        for at in np.linspace(4.0, 0.0, 200):
            moved = gradient_at(site, 200.0, side * at) - far
            if np.abs(moved[-1]) > 1e-9:
                found.append(moved[:-1] / moved[-1])
                break
    return found


def test_rows_beyond_all_others_were_told(tmp_path: Path) -> None:
    site, X = guarded(tmp_path, min_effective_rows=0, max_numbers=1e6)
    found = outermost(site)
    for record, row in zip(found, (X[:, 0].argmin(), X[:, 0].argmax()), strict=True):
        assert np.abs(record - X[row]).max() < 0.1


def test_a_model_whose_curvature_rests_on_a_few_rows_is_refused(tmp_path: Path) -> None:
    site, X = guarded(tmp_path, max_numbers=1e6)
    with pytest.raises(FedLassoError, match="the site does not answer"):
        outermost(site)
    (entry,) = [entry for entry in site.audit.entries() if entry.verdict == "refused"]
    assert entry.why == "a model whose curvature rests on a few rows here"
    # What the refusal reveals is counted.
    assert entry.spent == {"refusals": 1, "fit_refusals": 1}
    # Models of ordinary fits rest on most rows, and are answered.
    gradient_at(site, 2.0, 0.0)
    # So are steep ones, if as many rows lie where they change.
    for slope in (6.0, 12.0, 24.0):
        w = 1 / np.cosh(slope * X[:, 0] / 2) ** 2
        many = w.sum() ** 2 >= 10 * (w @ w)
        if many:
            gradient_at(site, slope, 0.0)
        else:
            with pytest.raises(FedLassoError, match="the site does not answer"):
                gradient_at(site, slope, 0.0)


def test_least_squares_has_no_steps(tmp_path: Path) -> None:
    site, _ = guarded(tmp_path, "quadratic")
    b = np.zeros(P)
    b[0] = STEEP
    assert isinstance(decode(site.answer_bytes(encode(GradientAt(b)))), GradientSum)


def test_sums_of_gradients_are_judged_by_the_model_they_lead_to(tmp_path: Path) -> None:
    """Dual averaging sends sums over all rounds: they are large, and the model in them is not."""
    site, _ = guarded(tmp_path)
    one = np.ones(1)
    sums = np.full((P + 1, 1), 100.0)
    large = 200.0 * one
    for request in (
        DualSteps(1.0, sums, one, 100, 1),
        CompositeSteps(1.0, sums, 10 * sums, large, 1.0, 1000, 1, True),
        SurrogateFit(0 * sums, sums, 1.0, large),
    ):
        assert isinstance(decode(site.answer_bytes(encode(request))), Reply)
    steep = 1e-6 * one
    for hidden in (
        DualSteps(0.0, sums, one, 100, 1),
        CompositeSteps(0.0, sums / 1000, 0 * sums, steep, 0.0, 0, 1, True),
        CompositeSteps(0.0, 0 * sums, 0 * sums, 0 * one, 0.0, 0, 1, True),
    ):
        with pytest.raises(FedLassoError, match=r"too steep a model|the site does not answer"):
            site.answer_bytes(encode(hidden))


def test_means_and_factors_are_no_models(tmp_path: Path) -> None:
    """Columns as people write them: sums of means or factors times records are far apart."""
    rng = np.random.default_rng(0)
    days = rng.integers(1, 4001, (N, 1)) + rng.integers(0, 9, (N, 60))
    X = np.column_stack([rng.integers(20, 91, N), rng.integers(0, 2, N), days])
    y = (rng.random(N) < 0.5).astype(np.float64)
    site = Site("a", X, y, loss="binomial")
    door = GuardedSite(site, Policy(), Audit(tmp_path / "audit.jsonl"), "ab" * 16)
    means = X.mean(axis=0)
    view = Standardise(means, 1 / X.std(axis=0), 0.0)
    for request in (CentredSquares(means), view):
        assert isinstance(decode(door.answer_bytes(encode(request))), Reply)
    # They are held to the records by a rule of their own.
    for far in (CentredSquares(1e6 * means), replace(view, means=1e6 * means)):
        with pytest.raises(FedLassoError, match="the site does not answer"):
            door.answer_bytes(encode(far))
    # A model on that view is judged as it was.
    b = np.ones(X.shape[1])
    with pytest.raises(FedLassoError, match="the site does not answer"):
        door.answer_bytes(encode(GradientAt(b, on=view.name)))


def take_last_event(folder: Path) -> tuple[Array, Array]:
    """Move survival times until only the last one ends in an event: its slope is that record."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    times = rng.permutation(np.linspace(1.0, 50.0, N))
    times[rng.random(N) < 0.3] *= -1
    site = Site("a", X, times, loss="cox")
    door = GuardedSite(site, Policy(), Audit(folder / "audit.jsonl"), "ab" * 16)
    second, last = np.argsort(times)[-2:]
    view = Standardise(np.zeros(P), np.ones(P), (0.1 * times[second] + 0.9 * times[last]))
    door.answer_bytes(encode(view))
    reply = decode(door.answer_bytes(encode(GradientAt(np.zeros(P), on=view.name))))
    assert isinstance(reply, GradientSum)
    return X.mean(axis=0) - reply.gradient, X[last]


def test_survival_times_are_not_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FedLassoError, match="Standardise: y_mean must be 0 for this loss"):
        take_last_event(tmp_path)
    monkeypatch.setattr(CoxLoss, "centres", True)
    found, record = take_last_event(tmp_path / "before")
    np.testing.assert_allclose(found, record, rtol=1e-9)
