"""A curved loss asked at very large models is a step: two gradients then differ by one record."""

from pathlib import Path

import numpy as np
import pytest

from fedlasso import FedLassoError, Site
from fedlasso.federation import decode, encode
from fedlasso.governance import Audit, Policy, sizes
from fedlasso.governance.guard import GuardedSite
from fedlasso.numerics import Array
from fedlasso.sites import GradientAt
from fedlasso.sites.questions import GradientSum

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
    monkeypatch.setattr(sizes, "STEEPEST", np.inf)
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
