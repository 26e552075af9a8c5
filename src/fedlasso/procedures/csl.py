r"""CSL: communication-efficient surrogate likelihood, also EDSL (Jordan 2019; Wang 2017).

Site 1, the first by name, coordinates. A pooled gradient at b_t, then one solve at site 1:

.. math::
    b_{t+1} = \arg\min_b f_1(b) + \langle \nabla f(b_t) - \nabla f_1(b_t), b \rangle
      + \lambda |b|_1 + \tfrac{\tau}{2} |b - b_t|^2.

Both are exchanges of their own: rounds alternate, p numbers from every site and p from site 1.
Undamped, the problem may have no minimum when m_1 < p, so tau is ``damping`` times the mean
curvature of all sites. The gradient at b_{t+1}, which the next step needs anyway, tells the server
exactly how the pooled objective changed; where it rose, the server takes the best point between
b_t and b_{t+1} instead, whose gradient it knows by linearity. So no further message is needed, and
the objective never rises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedlasso.federation import GradientAt, MeanEigenvalue, Request, Site
from fedlasso.lasso import Array
from fedlasso.lasso.shifted import shifted_lasso
from fedlasso.procedures.averaging import Coefficients
from fedlasso.procedures.procedure import Problem, Procedure, State

_BISECTIONS = 60


@dataclass(frozen=True, eq=False)
class SurrogateFit(Request[Coefficients]):
    """Minimize the local loss, shifted to the pooled gradient at b, damped by tau around b."""

    b: Array
    gradient: Array
    lam: float
    tau: float

    def answer(self, site: Site) -> Coefficients:
        f = site.training
        score = f.score - (self.gradient - f.gradient(self.b)) + self.tau * self.b
        values, sweeps = shifted_lasso(f, score, self.lam, self.tau, self.b)
        return Coefficients(values, steps=1 + sweeps, operations=site.operations(1 + sweeps))


@dataclass(frozen=True, eq=False)
class Surrogate(State):
    """b with its pooled gradient, and the newest model, whose gradient may not be known yet."""

    b: Array
    gradient: Array
    trial: Array
    tau: float
    coordinator: str


def safe_share(b: Array, trial: Array, before: Array, after: Array, lam: float) -> float:
    """How far to go from b to trial: all the way, or to the lowest point where that rises."""
    d = trial - b
    slope, curvature = float(before @ d), float((after - before) @ d)
    if slope + curvature / 2 + lam * float(np.abs(trial).sum() - np.abs(b).sum()) <= 0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        s = (low + high) / 2
        rising = slope + s * curvature + lam * float(d @ np.sign(b + s * d)) > 0
        low, high = (low, s) if rising else (s, high)
    return low


@dataclass(frozen=True)
class CSL(Procedure[Surrogate]):
    """Surrogate likelihood at the first site; ``epochs`` is not used."""

    name: ClassVar[str] = "CSL"
    damping: float = 0.4

    def prepare(self) -> MeanEigenvalue:
        return MeanEigenvalue()

    def start(self, problem: Problem, prepared: Sequence[Any]) -> Surrogate:
        zero = np.zeros(problem.p)
        tau = self.damping * float(problem.average([np.array(r.value) for r in prepared]))
        return Surrogate(zero, zero, zero, tau, prepared[0].site)

    def request(self, problem: Problem, state: Surrogate) -> Request[Any]:
        if state.round % 2 == 0:
            return GradientAt(state.trial)
        return SurrogateFit(state.b, state.gradient, problem.lam, state.tau, to=self.solvers(state))

    def solvers(self, state: Surrogate) -> tuple[str, ...]:
        """The sites that solve the surrogate."""
        return (state.coordinator,)

    def combine(self, problem: Problem, replies: Sequence[Any]) -> Array:
        """The next model from the solvers' replies."""
        values: Array = replies[0].values
        return values

    def advance(self, problem: Problem, state: Surrogate, replies: Sequence[Any]) -> Surrogate:
        b, gradient, trial = state.b, state.gradient, state.trial
        if state.round % 2 == 1:
            trial = self.combine(problem, replies)
        else:
            after = np.sum([r.gradient for r in replies], axis=0) / problem.m
            s = safe_share(b, trial, gradient, after, problem.lam)
            trial = b = trial if s == 1.0 else b + s * (trial - b)
            gradient = after if s == 1.0 else gradient + s * (after - gradient)
        return Surrogate(b, gradient, trial, state.tau, state.coordinator, round=state.round + 1)

    def models(self, problem: Problem, state: Surrogate) -> Array:
        return state.trial[:, None]

    def upload(self, problem: Problem, state: Surrogate) -> int:
        return problem.p
