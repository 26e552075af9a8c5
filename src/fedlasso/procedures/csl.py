r"""CSL and DANE: local surrogates of the pooled loss, corrected by the pooled gradient.

.. math::
    x_j = \arg\min_b f_j(b) + \langle \nabla f(b_t) - \nabla f_j(b_t), b \rangle
      + \lambda |b|_1 + \tfrac{\tau}{2} |b - b_t|^2.

CSL, communication-efficient surrogate likelihood, also EDSL (Jordan 2019; Wang 2017): site 1, the
first by name, solves, and :math:`b_{t+1} = x_1`. Averaged DANE (Shamir, Srebro and Zhang 2014, with
the penalty inside the local problems): every site solves, :math:`b_{t+1} = \sum_j w_j x_j`.

Gradient rounds (p numbers from every site) and solve rounds (p numbers from those that solve)
alternate. Without damping the problem may have no minimum if m_j < p, so tau is {0.1, 0.3, 1} times
the mean curvature of all sites, each a path. The gradient at b_{t+1}, which the next step needs
anyway, gives the exact change of the pooled objective. If it rose, the server takes the best point
between b_t and b_{t+1}, whose gradient follows by linearity. So the objective never rises, at no
further message.

For other losses sites solve the problem by sweeps over quadratic models. The change of the
objective is then approximate and gradients are not linear: if the objective rose, a further round
requests the gradient at the point between.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fedlasso.federation import Accumulated, Disclosure, Models, PerCandidate, Request
from fedlasso.numerics import L1, Array, LeastSquares
from fedlasso.numerics.curved_sweeps import minimize_smooth
from fedlasso.numerics.descent import shifted_lasso
from fedlasso.procedures.procedure import Coefficients, Problem, Procedure, State
from fedlasso.sites import GradientAt, MeanEigenvalue, View


class SurrogateFit(Request[Coefficients]):
    """Minimize the local loss, shifted to the pooled gradient at b, damped by each tau around b."""

    discloses = Disclosure("a site's own model at a pooled gradient, weighted by its rows")
    b: Models
    gradient: Accumulated
    lam: float
    tau: PerCandidate

    def answer(self, site: View) -> Coefficients:
        f = site.training
        values = np.empty_like(self.b)
        steps = 0
        columns = zip(self.b.T, self.gradient.T, self.tau.tolist(), strict=True)
        for k, (b, gradient, tau) in enumerate(columns):
            shift = gradient - f.gradient(b)
            if isinstance(f, LeastSquares):
                x, sweeps = shifted_lasso(f, f.score - shift + tau * b, self.lam, tau, b)
            else:
                x, sweeps = minimize_smooth(f, L1(self.lam), b, shift - tau * b, tau)
            values[:, k] = x
            steps += 1 + sweeps
        return Coefficients.of(site, values, steps)


class Surrogate(State):
    """b with its pooled gradient, and the newest model, whose gradient may still be unknown.

    If `solves`, sites solve surrogates next; else they send a gradient.
    """

    b: Array
    gradient: Array
    trial: Array
    tau: Array
    solves: int = 0


def safe_step(b: Array, trial: Array, before: Array, after: Array, lam: float) -> float:
    """Return the step from b to trial: 1, or to the lowest point if the objective rises."""
    d = trial - b
    slope = float(before @ d)
    curvature = float((after - before) @ d)
    if slope + curvature / 2 + lam * float(np.abs(trial).sum() - np.abs(b).sum()) <= 0:
        return 1.0
    low = 0.0
    high = 1.0
    for _ in range(60):
        s = (low + high) / 2
        rising = slope + s * curvature + lam * float(d @ np.sign(b + s * d)) > 0
        low, high = (low, s) if rising else (s, high)
    return low


@dataclass(frozen=True)
class CSL(Procedure[Surrogate]):
    """CSL: the first site fits its own rows, corrected by the pooled gradient; no ``epochs``."""

    name = "CSL"
    losses = "any smooth"
    first_question = MeanEigenvalue
    # How many sites, first by name, solve the surrogate; None means all.
    solvers: ClassVar[int | None] = 1
    settings: tuple[float, ...] = (0.1, 0.3, 1.0)

    def start(self, problem: Problem, prepared: Any) -> Surrogate:
        zero = np.zeros((problem.p, self.paths))
        tau = np.array(self.settings) * (prepared.value / problem.m)
        return Surrogate(zero, zero, zero, tau)

    def request(self, problem: Problem, state: Surrogate) -> Request[Any]:
        if not state.solves:
            return GradientAt(state.trial)
        lam = problem.penalty.lam
        to = problem.sites[: self.solvers]
        return SurrogateFit(state.b, state.gradient, lam, state.tau, to=to)

    def advance(self, problem: Problem, state: Surrogate, total: Any) -> Surrogate:
        state = replace(state, round=state.round + 1)
        if state.solves:
            trial = total.values / sum(problem.sizes[: self.solvers])
            return replace(state, trial=trial, solves=0)
        b, trial, gradient = state.b, state.trial, state.gradient
        after = total.gradient / problem.m
        columns = zip(b.T, trial.T, gradient.T, after.T, strict=True)
        s = np.array([safe_step(*each, problem.penalty.lam) for each in columns])
        trial = np.where(s == 1.0, trial, b + s * (trial - b))
        if not problem.quadratic and (s < 1.0).any():
            return replace(state, trial=trial)
        gradient = np.where(s == 1.0, after, gradient + s * (after - gradient))
        return replace(state, b=trial, gradient=gradient, trial=trial, solves=1)

    def models(self, problem: Problem, state: Surrogate) -> Array:
        # For other losses the trial may lie far outside the range of its quadratic model.
        return state.trial if problem.quadratic else state.b


@dataclass(frozen=True)
class DANE(CSL):
    """DANE: CSL at every site, and the mean is the model; ``epochs`` is not used."""

    name = "DANE"
    solvers = None
