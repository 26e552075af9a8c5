"""Models of a curved loss that a site computes itself, from what the coordinator chose.

Local steps start at an ordinary model and reach a step function: sums of slopes there differ by
one record. Dual values beyond a scale of one are infinite as soon as a single row's is.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logit

from fedlasso import FedLassoError, Site
from fedlasso.federation import Reply, decode, encode
from fedlasso.federation.fixed_point import OFFSET, from_words, grid_of
from fedlasso.governance import Audit, Policy, guard
from fedlasso.governance.guard import GuardedSite
from fedlasso.numerics import Array
from fedlasso.procedures.averaging import LocalSweeps
from fedlasso.procedures.csl import SurrogateFit
from fedlasso.procedures.dual_averaging import CompositeSteps, DualSteps
from fedlasso.procedures.local_gradient import CorrectedSteps, ProximalSteps
from fedlasso.procedures.voting import LocalVotes
from fedlasso.sites import GradientAt
from fedlasso.sites.questions import DualAt

N, P = 80, 4
ONE = np.ones(1)
STEEP = 1e7
Ask = Callable[[GuardedSite, float], Array]


def guarded(folder: Path, **rules: Any) -> tuple[GuardedSite, Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    y = (rng.random(N) < 0.5).astype(np.float64)
    site = Site("a", X, y, loss="binomial", intercept=True)
    policy = Policy(max_numbers=1e6, **rules)
    return GuardedSite(site, policy, Audit(folder / "audit.jsonl"), "ab" * 16), X, y


@contextmanager
def undefended(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    @contextmanager
    def judge_nothing(*_: Any) -> Iterator[None]:
        yield

    with monkeypatch.context() as patch:
        patch.setattr(guard, "judge_own_models", judge_nothing)
        patch.setattr(guard, "check_steepness", lambda *_: None)
        yield


def answer(site: GuardedSite, request: Any) -> Any:
    return decode(site.answer_bytes(encode(request)))


def pull_to_step(site: GuardedSite, at: float) -> Array:
    """The sum of slopes at a step, whereto a strong ridge pulls the local fit."""
    tau = 1e3
    goal = np.zeros((P + 1, 1))
    goal[[0, -1], 0] = STEEP, -STEEP * at
    found = answer(site, SurrogateFit(0 * goal, -tau * goal, 0.0, tau * ONE))
    return np.asarray(tau * (N * goal - found.values)[:, 0])


def step_far(site: GuardedSite, at: float) -> Array:
    """The sum of slopes at a step, which is the first of two dual steps of a high rate."""
    start = np.zeros((P + 1, 1))
    start[-1] = at
    weights = np.ones(P + 1)
    weights[[0, -1]] = 0.0
    request = DualSteps(1e6, start, STEEP * ONE, 1, 2, weights=weights)
    # The slopes at the start can be asked about.
    first = answer(site, GradientAt(start[:, 0])).gradient
    return np.asarray(-answer(site, request).values[:, 0] / STEEP - first)


ATTACKS = [(pull_to_step, 0.3), (step_far, 0.8)]


def steal(site: GuardedSite, ask: Ask, furthest: float) -> list[Array]:
    """Move a step along one direction, and take the difference of neighbouring sums."""
    found = []
    before: Array | None = None
    for at in np.linspace(-furthest, furthest, 60):
        sums = ask(site, at)
        if before is not None:
            moved = sums - before
            if abs(abs(moved[-1]) - 1) < 1e-3:
                found.append(moved[:-1] / moved[-1])
        before = sums
    return found


@pytest.mark.parametrize(("ask", "furthest"), ATTACKS)
def test_own_models_told_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask, furthest: float
) -> None:
    site, X, _ = guarded(tmp_path)
    with undefended(monkeypatch):
        found = steal(site, ask, furthest)
    near = [record for record in found if np.abs(X - record).max(axis=1).min() < 0.001]
    assert len(near) >= 5


@pytest.mark.parametrize(("ask", "furthest"), ATTACKS)
def test_own_models_rest_on_many_rows(tmp_path: Path, ask: Ask, furthest: float) -> None:
    site, _, _ = guarded(tmp_path)
    with pytest.raises(FedLassoError, match="the site does not answer"):
        steal(site, ask, furthest)
    (entry,) = [entry for entry in site.audit.entries() if entry.verdict == "refused"]
    assert entry.why == "a model after local steps whose curvature rests on a few rows here"
    assert entry.spent == {"refusals": 1, "fit_refusals": 1}


def test_ordinary_local_steps_are_answered(tmp_path: Path) -> None:
    site, _, _ = guarded(tmp_path)
    zero = np.zeros((P + 1, 1))
    for request in (
        LocalSweeps(zero, 0.01, 5),
        LocalVotes(0.01),
        ProximalSteps(0.01, zero, ONE, 5),
        CorrectedSteps(zero, ONE, 5, "fit", 0),
        DualSteps(0.01, zero, ONE, 0, 5),
        CompositeSteps(0.01, zero, zero, ONE, 0.1, 0, 5, True),
        SurrogateFit(zero, zero, 0.01, 0.1 * ONE),
    ):
        assert isinstance(answer(site, request), Reply), type(request).__name__


def find_extreme(site: GuardedSite, b: Array) -> float:
    """The largest |linear predictor| on the wrong side, from the scale where dual values end."""
    low, high = 1.0, 1e3
    for _ in range(60):
        middle = (low + high) / 2
        request = DualAt(b, middle, reach=OFFSET + 10)
        words = answer(site, request)
        grid = grid_of(request, None, P + 1)
        assert grid is not None
        # What is infinite leaves as the largest number of the grid.
        ends = from_words(words, request, grid).value <= -(2.0**20)
        low, high = (low, middle) if ends else (middle, high)
    return float(logit(1 / low))


def test_dual_values_told_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, X, y = guarded(tmp_path)
    b = np.array([0.5, 0.3, 0.2, 0.1, 0.0])
    with undefended(monkeypatch):
        first = find_extreme(site, b)
        moved = [find_extreme(site, b + 1e-4 * unit) - first for unit in np.eye(P + 1)[:P]]
    record = np.array(moved) / 1e-4
    sides = np.where(y > 0, -1.0, 1.0)[:, None] * X
    assert np.abs(sides - record).max(axis=1).min() < 1e-6


def test_dual_values_end_at_a_scale_of_one(tmp_path: Path) -> None:
    site, _, _ = guarded(tmp_path)
    b = np.array([0.5, 0.3, 0.2, 0.1, 0.0])
    for scale in (0.0, 0.5, 1.0):
        assert np.isfinite(answer(site, DualAt(b, scale)).value)
    for scale in (1 + 1e-12, 2.0):
        with pytest.raises(FedLassoError, match="DualAt: the scale must be at most 1"):
            answer(site, DualAt(b, scale))
    # The refusal follows from the question, so it is not counted.
    assert not any(e.spent.get("refusals") for e in site.audit.entries())
