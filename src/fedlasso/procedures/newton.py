r"""Newton: the pooled optimum of any smooth loss, with the Hessian of a working set only.

Most columns of a sparse fit stay at zero and need only one comparison with the penalty at the end.
On a working set A of columns, with gradient g_A and an approximate Hessian H, the next model solves

.. math:: \min_x\; g_A'(x - b) + \tfrac12 (x - b)'H(x - b) + \text{penalty}(x).

The step is halved until the pooled objective falls enough. H is requested once per column that
joins A, and every further gradient updates it (BFGS); it is requested again if updates converge
slowly. Rounds are of five kinds:

- *try*: loss and gradient on A at a trial model; \|A\| + 1 numbers per site;
- *curve*: second derivatives of the columns that joined A;
- *look*: loss and gradient in all columns, when A is solved: the steepest columns whose gradient
  exceeds the penalty join A;
- *settle*: loss and gradient in the unpenalised columns, until these are solved for exactly;
- *bound*: one scalar, the dual value of the scaled slopes, which gives the pooled duality gap.

The best dual value is a lower bound on the objective for the rest of the fit.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from fedlasso.federation import Request
from fedlasso.numerics import Array, Certificate, certify_loss, feasible_scale, settle_slopes
from fedlasso.numerics.certificate import REACH
from fedlasso.numerics.machine import EPS, ROUNDING
from fedlasso.numerics.quadratic_lasso import correct_curvature, keep_convex, solve_step
from fedlasso.numerics.triangles import count_packed, unpack
from fedlasso.procedures.newton_state import UNKNOWN, NewtonState, free_columns, open_slopes
from fedlasso.procedures.procedure import Problem, UntilCertified
from fedlasso.sites import CurvatureAt, DualAt, PartAt

# Tolerance on A before all columns are checked, as a fraction of the worst violation outside.
SOLVED = 0.1
# A bound is requested once the slopes on A are optimal within this many times `tol`.
CLOSE = 5.0
# Columns that may join A at once: so many, or this fraction of p, or as many as A has.
FEWEST = 10
GROWTH = 0.05
# A block of second derivatives is requested if it has at most this many times p numbers, else its
# diagonal.
BLOCK = 1.0
# BFGS updates after which their rate is judged.
PATIENCE = 3
# A step must lower the objective by this fraction of its model's prediction.
ENOUGH = 1e-4
# Unpenalised coefficients are solved until their slopes cost a bound at most this fraction of
# `tol`, or are rounding errors as a fraction of the largest slope, in at most so many rounds.
SETTLED = 0.1
EXACT = 1e-14
SETTLING = 8
# Slopes of this size at a model of size zero are rounding errors of the sites' sums. If they are
# those of unpenalised columns, a bound cannot be closer than they cost.
GRID = 2.0**-40
# Rounds without progress after which only rounding errors are left.
IDLE = 4
# How often second derivatives are requested again before that.
STALLS = 3


@dataclass(frozen=True)
class Newton(UntilCertified[NewtonState]):
    """Newton, the pooled optimum of every loss and elastic net; ``epochs`` is not used.

    With `diagonal` no second derivatives in two columns are requested.
    """

    diagonal: bool = False
    name = "Newton"
    losses = "any smooth"
    needs = ("thresholds", "dual_limit")

    def start(self, problem: Problem, prepared: Any) -> NewtonState:
        free = free_columns(problem)
        zero = np.zeros(problem.p)
        step = "try" if free.size else "look"
        H = np.zeros((0, 0))
        return NewtonState(A=free, b=zero, slopes=zero, H=H, trial=zero, aim=SOLVED, step=step)

    def go_on(self, problem: Problem, state: NewtonState) -> NewtonState:
        """Return the state from which a fit at another penalty continues.

        All slopes must be known at b, as they are after a bound.
        """
        known = replace(state, low=-UNKNOWN, aim=SOLVED, idle=0, stalls=0, along=1.0, miss=UNKNOWN)
        return self._join(problem, known.leave_out_zeros(problem))

    def request(self, problem: Problem, state: NewtonState) -> Request[Any]:
        if state.step == "curve":
            return self._ask_curvature(problem, state)
        if state.step == "bound":
            return DualAt(state.b, feasible_scale(state.b, state.slopes, problem.penalty))
        columns = {"look": np.arange(0), "settle": free_columns(problem)}
        return PartAt(state.trial, columns.get(state.step, state.A))

    def advance(self, problem: Problem, state: NewtonState, total: Any) -> NewtonState:
        state = replace(state, round=state.round + 1)
        if state.step == "curve":
            return self._learn(problem, state, total)
        steps = {"look": self._look, "settle": self._settle, "bound": self._bound}
        return steps.get(state.step, self._judge)(problem, state, total)

    def without_moments(self) -> Self | None:
        return None if self.diagonal else replace(self, diagonal=True)

    def models(self, problem: Problem, state: NewtonState) -> Array:
        return state.b[:, None]

    def certificate(self, problem: Problem, state: NewtonState) -> Certificate | None:
        """Return F(b) and its distance to the best lower bound on min F."""
        if state.low == -UNKNOWN:
            return None
        objective = state.loss + problem.penalty.value(state.b)
        return Certificate(objective, max(objective - state.low, 0.0))

    def finest(self, problem: Problem, state: NewtonState) -> float:
        size = float(np.abs(state.b).sum())
        slopes = float(np.abs(state.slopes).max(initial=0.0)) * size
        free = free_columns(problem)
        left = np.minimum(np.abs(state.slopes[free]), GRID * (1 + size))
        slack = REACH * float(left @ (1 + np.abs(state.b[free])))
        return ROUNDING * (abs(state.loss) + slopes) + slack

    def done(self, problem: Problem, state: NewtonState) -> bool:
        return state.step == "end" or self.arrived(problem, state)

    def _ask_curvature(self, problem: Problem, state: NewtonState) -> CurvatureAt:
        """Request the block of second derivatives of new columns, or if large, its diagonal."""
        whole = CurvatureAt(state.b, state.A, state.curved)
        again = state.curved == 0 and state.slow
        block = not self.diagonal and (again or whole.count() <= BLOCK * problem.p)
        return whole if block else replace(whole, alone=True)

    def _judge(self, problem: Problem, state: NewtonState, total: Any) -> NewtonState:
        """Accept the trial model, or halve the step."""
        loss = total.loss / problem.m
        before = state.loss + problem.penalty.value(state.b)
        after = loss + problem.penalty.value(state.trial)
        on = state.A
        slopes = state.slopes.copy()
        slopes[on] = total.gradient / problem.m
        fine = bool(np.isfinite(after) and np.isfinite(slopes).all())
        rounding = ROUNDING * abs(after) if fine else 0.0
        enough = after <= before - ENOUGH * state.along * state.promise + rounding
        if not fine or not (enough or state.surely_falls(problem, slopes)):
            return self._shorten(problem, state)
        H = state.H
        if state.loss < UNKNOWN and state.curved == state.A.size:
            moved = (state.trial - state.b)[on]
            H = correct_curvature(H, moved, slopes[on] - state.slopes[on])
        state = replace(state, b=state.trial, loss=loss, slopes=slopes, H=H, along=1.0)
        if state.curved < state.A.size:
            return replace(state, step="curve")
        now = state.find_miss(problem)
        idle = 0 if now < 0.9 * state.miss else state.idle + 1
        state = replace(state, miss=now, idle=idle, tries=state.tries + 1)
        if now > state.aim and self._is_slow(state):
            return replace(state, curved=0, slow=True, step="curve")
        return self._step(problem, state)

    def _is_slow(self, state: NewtonState) -> bool:
        """Return whether updates, at their rate so far, would cost more than a new Hessian."""
        if state.tries < PATIENCE:
            return False
        rate = (state.miss / state.first) ** (1 / state.tries)
        rounds = np.log(state.aim / state.miss) / np.log(min(rate, 0.99))
        return bool(rounds * state.A.size > count_packed(state.A.size) + 3 * state.A.size)

    def _shorten(self, problem: Problem, state: NewtonState) -> NewtonState:
        along = state.along / 2
        if along < 1e-6 or state.idle >= IDLE:
            # Only rounding errors are left, unless the second derivatives are outdated.
            return self._check(problem, replace(state, along=1.0, idle=IDLE))
        trial = state.b + (state.trial - state.b) / 2
        return replace(state, trial=trial, along=along)

    def _learn(self, problem: Problem, state: NewtonState, total: Any) -> NewtonState:
        """Extend H by the columns that joined A."""
        block = total.block / problem.m
        size, known = state.A.size, state.curved
        if self._ask_curvature(problem, state).alone:
            H = np.diag(np.append(np.zeros(known), block))
        else:
            lower = np.zeros(count_packed(size))
            lower[len(lower) - len(block) :] = block
            H = unpack(lower, size, lower=True)
        H[:known, :known] = state.H[:known, :known]
        state = replace(state, H=keep_convex(H), curved=size, slow=False, tries=0)
        miss = state.find_miss(problem)
        return self._step(problem, replace(state, miss=miss, first=miss))

    def _step(self, problem: Problem, state: NewtonState) -> NewtonState:
        """Try the quadratic model's optimum, unless A is solved to its tolerance."""
        if state.miss <= state.aim or state.idle >= IDLE:
            return self._check(problem, state)
        slopes, H, thresholds = state.smooth_part(problem)
        on = state.A
        bounds = problem.penalty.bounds
        own = None if bounds is None else bounds.part(on)
        x, promise = solve_step(H, slopes, thresholds, state.b[on], own)
        trial = state.b.copy()
        trial[on] = x
        if np.array_equal(trial, state.b):
            return self._check(problem, replace(state, idle=IDLE))
        return replace(state, trial=trial, along=1.0, promise=promise, step="try")

    def _check(self, problem: Problem, state: NewtonState) -> NewtonState:
        """Check all columns; before a bound is requested, solve for the unpenalised ones."""
        free = free_columns(problem)
        final = min(state.aim, state.miss) <= CLOSE * self.tol or state.idle >= IDLE
        if not (final and free.size):
            return replace(state, trial=state.b, step="look")
        return self._settle_on(problem, replace(state, along=1.0))

    def _settle_on(self, problem: Problem, state: NewtonState) -> NewtonState:
        """Try a Newton step in the unpenalised coefficients only."""
        free = free_columns(problem)
        slopes = state.slopes[free]
        if self._is_settled(problem, state) or state.along < 2.0**-SETTLING:
            return replace(state, trial=state.b, along=1.0, step="look")
        own = state.free_places(problem)
        block = state.H[np.ix_(own, own)]
        trial = state.b.copy()
        bounds = problem.penalty.bounds
        if bounds is None:
            trial[free] -= np.linalg.lstsq(block, slopes, rcond=None)[0]
        else:
            within = bounds.part(free)
            trial[free], _ = solve_step(block, slopes, np.zeros(free.size), trial[free], within)
        # `along` counts these rounds; the step is not shortened.
        return replace(state, trial=trial, along=state.along / 2, step="settle")

    def _is_settled(self, problem: Problem, state: NewtonState) -> bool:
        """Return whether the slopes of unpenalised coefficients are zero within tolerance."""
        slopes = open_slopes(problem, state.b, state.slopes)
        left = slopes[free_columns(problem)]
        largest = max(float(np.abs(state.slopes).max(initial=0.0)), problem.penalty.lam)
        if np.abs(left).max(initial=0.0) <= EXACT * largest:
            return True
        _, cost = settle_slopes(state.b, slopes, problem.penalty.without_bounds())
        objective = state.loss + problem.penalty.value(state.b)
        return cost <= SETTLED * self.tol * abs(objective)

    def _settle(self, problem: Problem, state: NewtonState, total: Any) -> NewtonState:
        free = free_columns(problem)
        found = total.gradient / problem.m
        slopes = state.slopes.copy()
        slopes[free] = found
        left = open_slopes(problem, state.trial, slopes)[free]
        before = open_slopes(problem, state.b, state.slopes)[free]
        if not np.abs(left).max() < np.abs(before).max():
            return replace(state, trial=state.b, along=1.0, step="look")
        own = state.free_places(problem)
        block = np.ix_(own, own)
        H = state.H.copy()
        moved = (state.trial - state.b)[free]
        H[block] = correct_curvature(H[block], moved, found - state.slopes[free])
        loss = total.loss / problem.m
        state = replace(state, b=state.trial, loss=loss, slopes=slopes, H=keep_convex(H))
        return self._settle_on(problem, state)

    def _look(self, problem: Problem, state: NewtonState, total: Any) -> NewtonState:
        slopes = total.gradient / problem.m
        state = replace(state, b=state.trial, loss=total.loss / problem.m, slopes=slopes)
        return self._join(problem, state)

    def _join(self, problem: Problem, state: NewtonState) -> NewtonState:
        """Add the steepest violating columns to A; if there are none, request a bound."""
        p = problem.p
        thresholds = problem.penalty.thresholds(p)
        excess = np.abs(open_slopes(problem, state.b, state.slopes)) - thresholds
        excess[state.A] = -np.inf
        excess[~np.isfinite(thresholds)] = -np.inf
        scale = problem.penalty.lam or 1.0
        rounding = ROUNDING * float(np.abs(state.slopes).max(initial=0.0))
        worst = float(excess.max(initial=-np.inf))
        final = min(CLOSE * self.tol, state.aim)
        if worst > max(rounding, final * scale):
            most = max(FEWEST, int(np.ceil(GROWTH * p)), state.A.size)
            steepest = np.argsort(-excess, kind="stable")[:most]
            joined = steepest[excess[steepest] > 0]
            A = np.concatenate([state.A, np.sort(joined)])
            aim = max(final, SOLVED * min(1.0, worst / scale))
            return replace(state, A=A, aim=aim, idle=0, miss=UNKNOWN, step="curve")
        if state.A.size and state.curved < state.A.size:
            return replace(state, aim=final, step="curve")
        miss = state.find_miss(problem) if state.A.size else 0.0
        if miss > final and state.aim > final and state.idle < IDLE:
            return self._step(problem, replace(state, aim=final, miss=miss))
        if state.step != "look" or self._is_settled(problem, state) or state.idle >= IDLE:
            return replace(state, miss=miss, step="bound")
        # A bound proves nothing unless the unpenalised coefficients are solved for.
        return self._settle_on(problem, replace(state, miss=miss, along=1.0, idle=IDLE))

    def _bound(self, problem: Problem, state: NewtonState, total: Any) -> NewtonState:
        dual = total.value / problem.m
        certificate = certify_loss(state.loss, dual, state.b, state.slopes, problem.penalty)
        before = certificate.objective - state.low
        low = max(state.low, certificate.objective - certificate.gap)
        state = replace(state, low=low)
        if self.done(problem, state):
            return state
        # If a bound hardly improves, only rounding errors are left, or H has become inaccurate.
        if state.idle >= IDLE or certificate.gap > before / 2:
            aim = min(state.aim, CLOSE * self.tol)
            if state.stalls >= STALLS or (not state.tries and state.miss <= aim):
                return replace(state, step="end")
            again = replace(state, idle=0, along=1.0, aim=aim, stalls=state.stalls + 1)
            if not state.tries:
                # Settling made it idle: H is new, and A is not solved yet.
                return self._step(problem, again)
            return replace(again, curved=0, slow=True, step="curve")
        # The gap is still too large: solve A more accurately.
        aim = max(0.1 * min(state.aim, max(state.miss, EPS)), EPS)
        return self._step(problem, replace(state, aim=aim, idle=state.idle + 1))
