r"""SecantWS: Secant on a working set, so that only relevant rows of G are sent.

Most columns of a sparse fit stay at zero and need only one comparison with the penalty at the end.
On a working set A the Lasso has \|A\| predictors. Secant solves it from c_A and Y = G_AA Q, with
directions Q that are zero outside A. The first round requests c; later rounds are of three kinds:

- *learn*: G_AA q for one new direction q; \|A\| numbers per site;
- *check*: G b outside A, p - \|A\| numbers, which gives the whole gradient and the pooled duality
  gap of b. A check is due when the gap on A is 0.3 times the last pooled gap;
- *fill*: if a check found columns whose gradient exceeds the penalty, the n steepest columns N
  above 0.9 lambda join A, and their earlier products are requested: G_NA Q, n times \|Q\| numbers.

After a check without violators the next one waits for a gap of ``tol`` on A. F(b) minus the gap of
a check is a lower bound on min F for the rest of the fit.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from fedlasso.federation import Columns, Disclosure, Reply, Request, Role, Shapes
from fedlasso.federation.magnitudes import COARSE, Bound, Magnitudes
from fedlasso.federation.messages import Whole
from fedlasso.numerics import Array, Certificate, Secants
from fedlasso.procedures.procedure import Problem
from fedlasso.procedures.secant import BySecants, Knowledge, better, next_trial
from fedlasso.sites import GradientAt, View

# Columns join above this fraction of the penalty: at most this fraction of p, or as many as A has.
NEAR = 0.9
GROWTH = 0.1
# A check is due when the gap on A is this fraction of the last pooled gap.
SOLVED = 0.3


class ProductSums(Reply):
    """X_N'X_A v, a sum over the site's rows."""

    products: Array


class ProductsAt(Request[ProductSums]):
    """Return the rows N of X'X v, for vectors v (columns) that are zero outside A."""

    discloses = Disclosure(
        "combinations of covariances in the working set: sums over rows", allowed=False
    )
    about_response = False
    v: Annotated[Array, Role("points", (2,), within="A")]
    A: Columns
    N: Columns

    def expects(self, p: int) -> Shapes:
        return {"products": (self.N.size, self.v.shape[1])}

    def answer(self, site: View) -> ProductSums:
        f = site.least_squares
        steps = self.v.shape[1]
        products = f.columns[self.N] @ (f.columns[self.A].T @ self.v)
        operations = 2 * f.m * (self.A.size + self.N.size) * steps
        return ProductSums(products, steps=steps, operations=operations)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        N = magnitudes.columns[self.N]
        return {"products": Bound(N + magnitudes.reach, words=1, coarse=COARSE)}


class Restricted(Knowledge):
    """Secant's state with every array restricted to the working set A, and the rest."""

    A: Whole  # columns in the order in which they joined
    N: Whole  # columns to fill in next
    score: Array  # c, all p entries
    low: float = 0.0  # lower bound on min F
    aim: float = 0.0  # gap on A at which a check is due
    due: bool = True

    @property
    def stuck(self) -> bool:
        return not (self.due or self.N.size) and super().stuck

    @property
    def outside(self) -> Whole:
        return np.delete(np.arange(self.score.size), self.A)

    def widen(self, on_A: Array, elsewhere: Array | float = 0.0) -> Array:
        """Return the vector of all p entries from its parts."""
        whole = np.empty(self.score.size)
        whole[self.A] = on_A
        whole[self.outside] = elsewhere
        return whole


@dataclass(frozen=True)
class WorkingSetSecant(BySecants[Restricted]):
    """SecantWS, Secant on a working set of columns: about half the uploads of a sparse fit."""

    name = "SecantWS"

    def start(self, problem: Problem, prepared: Any) -> Restricted:
        none = np.zeros(0)
        QY = np.zeros((0, 0))
        A = np.arange(0)
        y_ms = prepared.value / problem.m
        score = np.zeros(problem.p)
        return Restricted(none, y_ms, QY, QY, 0.0, none, none, A=A, N=A, score=score)

    def request(self, problem: Problem, state: Restricted) -> Request[Any]:
        if state.round == 0:
            return GradientAt(np.zeros(problem.p))
        if state.N.size:
            return ProductsAt(state.Q, state.A, state.N)
        if state.due:
            return ProductsAt(state.best[:, None], state.A, state.outside)
        q = state.secants.direction(state.trial)
        return ProductsAt((state.trial if q is None else q)[:, None], state.A, state.A)

    def advance(self, problem: Problem, state: Restricted, total: Any) -> Restricted:
        state = replace(state, round=state.round + 1)
        if state.round == 1:
            score = -total.gradient / problem.m
            return self._check(problem, replace(state, score=score), 0 * score)
        products = total.products / problem.m
        if state.N.size:
            return self._fill(problem, state, products)
        if state.due:
            return self._check(problem, state, products[:, 0])
        known = state.secants
        q = known.direction(state.trial)
        if q is not None:
            known = known.learn(q, products[:, 0])
        best = better(known, problem.penalty, state.best, state.trial)
        return self._go_on(problem, replace(state, best=best), known)

    def _check(self, problem: Problem, state: Restricted, Gb_outside: Array) -> Restricted:
        """Update the lower bound from the whole gradient, and find the columns missing in A."""
        lam = problem.penalty.lam
        b = state.widen(state.best)
        Gb = state.widen(state.secants.times(state.best), Gb_outside)
        known = Secants.first(state.score, state.y_ms)
        size = float(np.linalg.norm(b))
        if size:
            known = known.learn(b / size, Gb / size)
        proven = known.certificate(b, problem.penalty)
        low = max(state.low, proven.objective - proven.gap)
        steep = np.abs(Gb_outside - state.score[state.outside])
        N = np.arange(0)
        aim = 0.0
        if (steep > lam).any():
            most = max(int(np.ceil(GROWTH * problem.p)), state.A.size)
            steepest = np.argsort(-steep, kind="stable")[:most]
            N = state.outside[steepest[steep[steepest] >= NEAR * lam]]
            aim = SOLVED * proven.gap
        state = replace(state, N=N, low=low, aim=aim, due=False)
        if N.size and state.Q.shape[1] == 0:
            # There are no earlier products to fill in.
            return self._fill(problem, state, np.zeros((N.size, 0)))
        return state

    def _fill(self, problem: Problem, state: Restricted, products: Array) -> Restricted:
        """Add the columns N to A, with their earlier products."""
        n, k = products.shape
        A = np.append(state.A, state.N)
        best = np.append(state.best, np.zeros(n))
        known = Secants.first(state.score[A], state.y_ms)
        if k:
            Q = np.vstack((state.Q, np.zeros((n, k))))
            Y = np.vstack((state.Y, products))
            known = replace(known, Q=Q, Y=Y, mu=state.mu)
        return self._go_on(problem, replace(state, A=A, N=np.arange(0), best=best), known)

    def _go_on(self, problem: Problem, state: Restricted, known: Secants) -> Restricted:
        """Take the Secant step on A; if it adds nothing, or A is solved, a check is due."""
        low = state.low
        known, best, trial = next_trial(known, problem.penalty, state.best)
        on_A = known.certificate(best, problem.penalty)
        solved = on_A.gap <= state.aim or on_A.relative_gap <= self.tol
        due = solved or known.direction(trial) is None
        if state.A.size == problem.p:
            due = False
            low = max(low, on_A.objective - on_A.gap)
        state = replace(state, best=best, trial=trial, low=low, due=due)
        return replace(state, c=known.c, Q=known.Q, Y=known.Y, mu=known.mu)

    def models(self, problem: Problem, state: Restricted) -> Array:
        return state.widen(state.best)[:, None]

    def certificate(self, problem: Problem, state: Restricted) -> Certificate | None:
        """Return F(b) and its distance to the best lower bound on min F."""
        if state.round == 0:
            return None
        objective = state.secants.objective(state.best, problem.penalty)
        return Certificate(objective, max(objective - state.low, 0.0))
