r"""Secant on a working set: the same products with G, but only the rows that may matter travel.

On the rows A alone the Lasso is one of \|A\| predictors, and Secant solves it from c_A and
Y = G_AA Q, with directions Q that are zero outside A. A round after the first, which asks for c,
is one of three kinds:

- *learn*: G_AA q for one new direction q; \|A\| numbers a site;
- *check*, when the duality gap on A is 0.3 times the last one proven: G b outside A, p - \|A\|
  numbers. With it the whole gradient, and so the pooled duality gap of b, is known;
- *fill*, when the check found a gradient above the penalty: the n steepest rows N from 0.9 lambda
  up join A, and what was learned before is asked for there, G_NA Q: n times \|Q\| numbers.

After a check without violators the next one waits for a gap of ``tol`` on A. What a check proves
stays true: F(b) minus its gap bounds min F from below, whatever the model is later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fedlasso.federation import GradientAt, Reply, Request, Site
from fedlasso.lasso import Array, Secants
from fedlasso.lasso.least_squares import one_thread
from fedlasso.procedures.certificate import Certificate
from fedlasso.procedures.procedure import Problem
from fedlasso.procedures.secant import Knowledge, UntilCertified, better
from fedlasso.procedures.working_set_gram import places

# Rows join from this share of the penalty: at most this share of p at once, or as many as A has.
NEAR, GROWTH = 0.9, 0.1
# A check is due when the gap on A is this share of the last one proven.
SOLVED = 0.3


@dataclass(frozen=True, eq=False)
class ProductSums(Reply):
    """X_N'X_A v, a sum over the site's rows."""

    products: Array


@dataclass(frozen=True, eq=False)
class ProductsAt(Request[ProductSums]):
    """Products of X'X with vectors v (columns) that are zero outside A, in the rows N only."""

    v: Array
    A: Array
    N: Array

    def answer(self, site: Site) -> ProductSums:
        f, steps = site.training, self.v.shape[1]
        with one_thread():
            products = f.columns[places(self.N)] @ (f.columns[places(self.A)].T @ self.v)
        operations = 2 * f.m * (self.A.size + self.N.size) * steps
        return ProductSums(products, steps=steps, operations=operations)


@dataclass(frozen=True, eq=False)
class Restricted(Knowledge):
    """Secant's knowledge with every array on the rows A only, and what is known of the rest.

    A: the rows as they joined; N: rows to be filled next; score: c, all p; low: a proven lower
    bound on min F; aim: the gap on A at which a check is due; due: whether it is.
    """

    A: Array
    N: Array
    score: Array
    low: float
    aim: float
    due: int

    @property
    def outside(self) -> Array:
        """The rows that are not in A."""
        return np.delete(np.arange(self.score.size, dtype=np.float64), places(self.A))

    def widen(self, on_A: Array, elsewhere: Array | float = 0.0) -> Array:
        """A vector of all p entries from its parts."""
        whole = np.empty(self.score.size)
        whole[places(self.A)], whole[places(self.outside)] = on_A, elsewhere
        return whole


@dataclass(frozen=True)
class WorkingSetSecant(UntilCertified[Restricted]):
    """Secant on a working set of rows."""

    name: ClassVar[str] = "SecantWS"

    def start(self, problem: Problem, prepared: Sequence[Any]) -> Restricted:
        y_ms = sum(reply.y_ss for reply in prepared) / problem.m
        o, oo, zero = np.zeros(0), np.zeros((0, 0)), np.zeros(problem.p)
        return Restricted(o, y_ms, oo, oo, 0.0, o, o, o, o, zero, low=0.0, aim=0.0, due=1)

    def request(self, problem: Problem, state: Restricted) -> Request[Any]:
        if state.round == 0:
            return GradientAt(np.zeros(problem.p))
        if state.N.size:
            return ProductsAt(state.Q, state.A, state.N)
        if state.due:
            return ProductsAt(state.best[:, None], state.A, state.outside)
        q = state.secants.direction(state.trial)
        return ProductsAt((state.trial if q is None else q)[:, None], state.A, state.A)

    def upload(self, problem: Problem, state: Restricted) -> int:
        n, k, a = state.N.size, state.Q.shape[1], state.A.size
        return int(n * k if n else problem.p - a if state.due else a)

    def advance(self, problem: Problem, state: Restricted, replies: Sequence[Any]) -> Restricted:
        state = replace(state, round=state.round + 1)
        if state.round == 1:
            score = -np.sum([r.gradient for r in replies], axis=0) / problem.m
            return self._check(problem, replace(state, score=score), 0 * score)
        products = np.sum([r.products for r in replies], axis=0) / problem.m
        if state.N.size:
            return self._fill(problem, state, products)
        return (self._check if state.due else self._learn)(problem, state, products[:, 0])

    def _learn(self, problem: Problem, state: Restricted, Gq: Array) -> Restricted:
        known, q = state.secants, state.secants.direction(state.trial)
        known = known if q is None else known.learn(q, Gq)
        best = better(known, np.full(state.A.size, problem.lam), state.best, state.trial)
        return self._try(problem, replace(state, best=best), known)

    @one_thread()
    def _check(self, problem: Problem, state: Restricted, Gb_outside: Array) -> Restricted:
        b, penalties = state.widen(state.best), np.full(problem.p, problem.lam)
        Gb = state.widen(state.secants.times(state.best), Gb_outside)
        known, size = Secants.first(state.score, state.y_ms), float(np.linalg.norm(b))
        known = known.learn(b / size, Gb / size) if size else known
        gap = known.gap(b, penalties)
        low = max(state.low, known.objective(b, penalties) - gap)
        steep = np.abs(Gb_outside - state.score[places(state.outside)])
        violated = bool((steep > problem.lam).any())
        most = max(int(np.ceil(GROWTH * problem.p)), state.A.size)
        steepest = np.argsort(-steep, kind="stable")[: most if violated else 0]
        N = state.outside[steepest[steep[steepest] >= NEAR * problem.lam]]
        state = replace(state, N=N, low=low, aim=SOLVED * gap if violated else 0.0, due=0)
        fill = N.size > 0 and state.Q.shape[1] == 0
        return self._fill(problem, state, np.zeros((N.size, 0))) if fill else state

    def _fill(self, problem: Problem, state: Restricted, products: Array) -> Restricted:
        n, k = products.shape
        A, best = np.append(state.A, state.N), np.append(state.best, np.zeros(n))
        known = Secants.first(state.score[places(A)], state.y_ms)
        if k:
            Q, Y = np.vstack((state.Q, np.zeros((n, k)))), np.vstack((state.Y, products))
            known = replace(known, Q=Q, Y=Y, mu=state.mu)
        return self._try(problem, replace(state, A=A, N=np.zeros(0), best=best), known)

    def _try(self, problem: Problem, state: Restricted, known: Secants) -> Restricted:
        """The next trial on A. Where it adds nothing, or A is solved for now, a check is due."""
        best, penalties, low = state.best, np.full(state.A.size, problem.lam), state.low
        if not known.positive:
            known = known.restart(best)
        trial = known.propose(penalties, best)
        inside = known.direction(trial) is None
        if inside:
            best = better(known, penalties, best, trial)
        on_A = Certificate(known.objective(best, penalties), known.gap(best, penalties))
        due = inside or on_A.gap <= state.aim or on_A.relative_gap <= self.tol
        if state.A.size == problem.p:
            due, low = False, max(low, on_A.objective - on_A.gap)
        state = replace(state, best=best, trial=trial, low=low, due=int(due))
        return replace(state, c=known.c, Q=known.Q, Y=known.Y, mu=known.mu)

    def models(self, problem: Problem, state: Restricted) -> Array:
        return state.widen(state.best)[:, None]

    def certificate(self, problem: Problem, state: Restricted) -> Certificate | None:
        """F(b), and how far it is above the proven lower bound on min F."""
        if state.round == 0:
            return None
        F = state.secants.objective(state.best, np.full(state.A.size, problem.lam))
        return Certificate(F, max(F - state.low, 0.0))

    def done(self, problem: Problem, state: Restricted) -> bool:
        certificate = self.certificate(problem, state)
        if certificate is None:
            return False
        stuck = not (state.due or state.N.size) and state.secants.direction(state.trial) is None
        return certificate.relative_gap <= self.tol or stuck
