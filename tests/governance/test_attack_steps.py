"""A curved loss asked at very large models is a step: two gradients then differ by one record."""

from dataclasses import replace
from pathlib import Path

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


def guarded(folder: Path, loss: str = "binomial") -> tuple[GuardedSite, Array]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    y = (rng.random(N) < 0.5).astype(np.float64)
    site = Site("a", X, y, loss=loss, intercept=True)
    return GuardedSite(site, Policy(), Audit(folder / "audit.jsonl"), "ab" * 16), X


def steal(site: GuardedSite) -> list[Array]:
    """Move a step along one direction, and take the difference of neighbouring gradients."""
    found = []
    before: Array | None = None
    for at in np.linspace(-0.3, 0.3, 60):
        b = np.zeros(P + 1)
        b[0] = STEEP
        b[-1] = -STEEP * at
        reply = decode(site.answer_bytes(encode(GradientAt(b))))
        assert isinstance(reply, GradientSum)
        if before is not None:
            moved = reply.gradient - before
            # One row crossed the step: the intercept's slope changed by one.
            if abs(abs(moved[-1]) - 1) < 1e-9:
                found.append(moved[:-1] / moved[-1])
        before = reply.gradient
    return found


def test_steps_told_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_checks, "MAX_PREDICTOR_RANGE", np.inf)
    site, X = guarded(tmp_path)
    found = steal(site)
    assert len(found) >= 5
    for record in found:
        assert np.abs(X - record).max(axis=1).min() < 1e-9


def test_a_model_that_is_a_step_is_refused(tmp_path: Path) -> None:
    site, _ = guarded(tmp_path)
    with pytest.raises(FedLassoError, match="the site does not answer"):
        steal(site)
    # Ordinary models are answered.
    b = np.append(np.ones(P), 0.5)
    assert isinstance(decode(site.answer_bytes(encode(GradientAt(b)))), GradientSum)


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
        with pytest.raises(FedLassoError, match="the site does not answer"):
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
