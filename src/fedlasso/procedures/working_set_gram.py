r"""Gram on a working set: the exact pooled Lasso from the moments of relevant columns only.

.. math::
    b_A = \arg\min \tfrac12 b'G_{AA}b - c_A'b + \lambda |b|_1, \qquad
    A \leftarrow A \cup \{k : |\nabla_k f(b)| > \lambda\}.

Rounds are of two kinds. A gradient round requests the pooled gradient outside A, p - \|A\| numbers;
without violators the fit is the pooled Lasso and the procedure ends. A moment round requests the
block of n new columns, n\|A\| + n(n+1)/2 numbers; nothing is sent twice. The n steepest violators
join, as many as cost no more than a gradient round plus ``growth`` times \|A\|^2, so that a large
model takes few rounds.

**This discloses the second moments of the columns in the working set**, as sums over a site's rows.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedlasso.federation import Columns, Disclosure, ModelVector, Reply, Request, Shapes
from fedlasso.federation.magnitudes import COARSE, Bound, Magnitudes
from fedlasso.federation.messages import LowerProducts, Whole
from fedlasso.numerics import Array, solve_reference
from fedlasso.numerics.moments import from_moments
from fedlasso.numerics.triangles import count_packed, pack, unpack
from fedlasso.procedures.procedure import Problem, Procedure, State
from fedlasso.sites import GradientSum, View

# A violation below this fraction of the largest score is rounding.
VIOLATION = 1e-12


class MomentBlock(Reply):
    """Sums over rows: X_N'X_A, and the lower triangle of X_N'X_N. Discloses second moments."""

    cross: Array
    corner: LowerProducts


class MomentsOf(Request[MomentBlock]):
    """Second moments of new columns with known ones and with each other."""

    discloses = Disclosure(
        "variances and covariances of the columns in the working set",
        allowed=False,
        moments=True,
    )
    new: Columns
    known: Columns

    def expects(self, p: int) -> Shapes:
        return {"cross": (self.new.size, self.known.size), "corner": (count_packed(self.new.size),)}

    def answer(self, site: View) -> MomentBlock:
        f = site.least_squares
        N = f.columns[self.new]
        A = f.columns[self.known]
        operations = 2 * f.m * len(N) * (len(N) + len(A))
        return MomentBlock(N @ A.T, pack(N @ N.T, lower=True), steps=1, operations=operations)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        N = magnitudes.columns[self.new]
        A = magnitudes.columns[self.known]
        return {
            "cross": Bound(N[:, None] + A, words=1),
            "corner": Bound(pack(N[:, None] + N, lower=True), words=1),
        }


class GradientOutside(Request[GradientSum]):
    """Gradient of the local loss at b, for the columns that are not known."""

    discloses = Disclosure(
        "the gradient of a model at columns outside the working set: sums over rows"
    )
    b: ModelVector
    known: Columns

    def expects(self, p: int) -> Shapes:
        return {"gradient": (p - self.known.size,)}

    def answer(self, site: View) -> GradientSum:
        f = site.training
        rest = np.delete(f.m * f.gradient(self.b), self.known)
        return GradientSum(rest, steps=1, operations=site.operations(1))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        rest = np.delete(magnitudes.columns, self.known)
        return {"gradient": Bound(rest + magnitudes.reach, words=1, coarse=COARSE)}


class WorkingSet(State):
    """The model, the known columns with their moments, the score, and the columns to add next."""

    b: Array
    known: Whole
    gram: Array
    score: Array
    wanted: Whole
    checked: bool


@dataclass(frozen=True)
class WorkingSetGram(Procedure[WorkingSet]):
    """The pooled Lasso from moments of a growing working set; ``epochs`` is not used."""

    name = "WorkingSetGram"
    growth: float = 0.25

    def start(self, problem: Problem, prepared: Any) -> WorkingSet:
        none = np.arange(0)
        zero = np.zeros(problem.p)
        return WorkingSet(zero, none, np.zeros((0, 0)), zero, none, False)

    def request(self, problem: Problem, state: WorkingSet) -> Request[Any]:
        if state.wanted.size:
            return MomentsOf(state.wanted, state.known)
        return GradientOutside(state.b, state.known)

    def advance(self, problem: Problem, state: WorkingSet, total: Any) -> WorkingSet:
        if state.wanted.size:
            return self._grow(problem, state, total)
        gradient = np.zeros(problem.p)
        rest = np.delete(np.arange(problem.p), state.known)
        gradient[rest] = total.gradient / problem.m
        score = state.score if state.round else -gradient
        steep = np.abs(gradient)
        order = np.argsort(-steep, kind="stable")
        violators = order[steep[order] > problem.penalty.lam + VIOLATION * np.abs(score).max()]
        a, n = state.known.size, 1
        allowed = problem.p - a + self.growth * a * a
        while n < violators.size and (n + 1) * a + (n + 1) * (n + 2) // 2 <= allowed:
            n += 1
        return replace(
            state, score=score, wanted=violators[:n], checked=True, round=state.round + 1
        )

    def _grow(self, problem: Problem, state: WorkingSet, total: Any) -> WorkingSet:
        cross = total.cross / problem.m
        corner = unpack(total.corner / problem.m, state.wanted.size, lower=True)
        gram = np.block([[state.gram, cross.T], [cross, corner]])
        A = np.concatenate([state.known, state.wanted])
        b = np.zeros(problem.p)
        b[A] = solve_reference(from_moments(gram, state.score[A]), problem.penalty.lam).coefficients
        return WorkingSet(b, A, gram, state.score, np.arange(0), False, round=state.round + 1)

    def models(self, problem: Problem, state: WorkingSet) -> Array:
        return state.b[:, None]

    def done(self, problem: Problem, state: WorkingSet) -> bool:
        """Return whether all columns are optimal, or all are known."""
        return not state.wanted.size and (state.checked or state.known.size == problem.p)
