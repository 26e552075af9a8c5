"""Penalties from outside, at server and sites: MCP (Zhang 2010) and the group Lasso.

MCP has a proximal step and no duality gap, so a fit is certified as a stationary point only. The
group Lasso is convex and not separable; its groups travel as a vector.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest
from helpers.draws import draw_federation, draw_sites
from helpers.mcp_outside import MCP
from helpers.pools import LOSSES, draw

from fedlasso import (
    REGISTRY,
    Certificate,
    FedLassoError,
    InProcess,
    Penalty,
    Site,
    Status,
    certify,
    fit,
)
from fedlasso.federation import decode, encode
from fedlasso.fitting import fix_penalty
from fedlasso.numerics import PENALTIES, Array, penalty_fields
from fedlasso.procedures.local_gradient import ProximalSteps

TAKING = {"FISTA", "FedMid"}


@dataclass(frozen=True, eq=False, repr=False)
class GroupLasso(Penalty):
    """The sum of the lengths of groups of coefficients."""

    name: ClassVar[str] = "group lasso for tests"
    separable: ClassVar[bool] = False
    vector: ClassVar[str] = "groups"
    groups: Array = field(default_factory=lambda: np.zeros(0))

    def lengths(self, v: Array) -> Array:
        """The length of each coefficient's group, for every column of v."""
        member = self.groups[:, None] == self.groups
        return np.asarray(np.sqrt(member.astype(np.float64) @ (v * v)))

    def value(self, b: Array) -> float:
        first = np.unique(self.groups, return_index=True)[1]
        return self.lam * float(self.lengths(b)[first].sum())

    def prox(self, v: Array, step: float | Array) -> Array:
        lengths = np.maximum(self.lengths(v), np.finfo(float).tiny)
        return v * np.maximum(1 - step * self.lam / lengths, 0.0)

    def dual_limit(self, gradient: Array) -> float:
        steepest = float(self.lengths(gradient).max())
        return self.lam / steepest if steepest > 0 else np.inf


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for penalty in (MCP, GroupLasso):
        monkeypatch.setitem(PENALTIES, penalty.name, penalty)


@pytest.mark.parametrize("step", [0.2, 1.0])
def test_its_proximal_step_solves_its_problem(step: float) -> None:
    penalty = MCP(0.5)
    grid = np.linspace(-4, 4, 10_001)
    paid = np.array([penalty.value(x) for x in grid[:, None]])
    for v in np.linspace(-3, 3, 25):
        cost = (grid - v) ** 2 / 2 + step * paid
        b = penalty.prox(np.array([v]), step)
        assert (b[0] - v) ** 2 / 2 + step * penalty.value(b) <= cost.min() + 1e-9


@pytest.mark.full
@pytest.mark.parametrize("loss", LOSSES)
def test_a_fit_is_a_stationary_point_and_says_that_it_is_no_more(loss: str) -> None:
    pool = draw(loss, (80, 60, 50))
    result = fit(InProcess(pool.sites()), "FISTA", penalty=MCP(0.1, gamma=8.0), rounds=3000)
    assert result.status is Status.STATIONARY
    assert result.certificate is not None
    assert result.certificate.gap == np.inf
    assert result.certificate.stationary is not None
    assert result.certificate.stationary <= 1e-8
    words = str(result.certificate)
    assert words.startswith("less than 0.000001% of the penalty's strength away from a stationary")
    assert "no bound on the distance to the global optimum" in words
    b = result.coefficients
    objective = pool.mean_loss(b) + result.penalty.value(b)
    assert result.certificate.objective == pytest.approx(objective, rel=1e-9)


def test_large_effects_are_not_shrunk() -> None:
    """With orthogonal columns the fit is known: one proximal step from least squares."""
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.standard_normal((60, 4)))[0] * np.sqrt(60)
    y = X @ np.array([3.0, 1.0, 0.1, 0.0]) + 0.01 * rng.standard_normal(60)
    sites = [Site(name, X[j::2], y[j::2]) for j, name in enumerate("ab")]
    result = fit(InProcess(sites), "FISTA", penalty=MCP(0.5), rounds=500)
    plain = X.T @ y / 60
    np.testing.assert_allclose(result.coefficients, MCP(0.5).prox(plain, 1.0), atol=1e-8)
    assert result.coefficients[0] == pytest.approx(plain[0], abs=1e-8)


def test_sites_take_its_proximal_steps_as_the_server_does() -> None:
    """One local step of FedMid at one site is the pooled proximal gradient method."""
    site = draw_sites((60,), p=6)[0]
    result = fit(
        InProcess([site]), REGISTRY["FedMid"](settings=(1.0,)), penalty=MCP(0.1), rounds=2000
    )
    assert result.status is Status.STATIONARY
    theirs = fit(InProcess([site]), "FISTA", penalty=MCP(0.1), rounds=2000)
    np.testing.assert_allclose(result.coefficients, theirs.coefficients, atol=1e-7)


def test_it_travels_with_its_shape() -> None:
    sent = ProximalSteps(
        x=np.ones((3, 1)), rates=np.ones(1), epochs=1, **penalty_fields(MCP(0.3, gamma=5.0))
    )
    received = decode(encode(sent))
    assert isinstance(received, ProximalSteps)
    assert repr(received.penalty) == repr(MCP(0.3, gamma=5.0)) != repr(MCP(0.3))


@pytest.mark.parametrize("name", sorted(set(REGISTRY) - TAKING))
def test_others_name_the_capability_that_is_missing(name: str) -> None:
    missing = "a convex penalty|a soft threshold for each coefficient"
    with pytest.raises(
        FedLassoError,
        match=f"^{name} needs ({missing}); use FISTA or FedMid for this 'mcp for tests' penalty$",
    ):
        fit(draw_federation(), name, penalty=MCP(0.1), rounds=1)


def test_a_model_that_is_not_stationary_is_told_so() -> None:
    federation = draw_federation()
    found = certify(federation, fix_penalty(federation, MCP(0.01)), np.zeros(40))
    assert not found.reaches(1e-3)
    assert fit(draw_federation(), "FISTA", penalty=MCP(0.01), rounds=2).status is Status.SHORT
    assert Certificate(1.0, np.inf, 1e-9).reaches(1e-8)


@pytest.mark.standard
def test_groups_travel_and_the_fit_is_certified() -> None:
    site = draw_sites((60,), p=6)[0]
    penalty = GroupLasso(0.3, groups=np.array([0.0, 0.0, 1.0, 1.0, 2.0, 2.0]))
    for procedure in ("FISTA", REGISTRY["FedMid"](settings=(1.0,)), "ProxSkip"):
        result = fit(InProcess([site]), procedure, penalty=penalty, rounds=3000)
        assert result.status is Status.OPTIMAL
        together = (result.coefficients != 0).reshape(3, 2)
        assert (together[:, 0] == together[:, 1]).all()
    with pytest.raises(FedLassoError, match=r"^Newton needs a soft threshold for each coefficient"):
        fit(InProcess([site]), "Newton", penalty=penalty)
