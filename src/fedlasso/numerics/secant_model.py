"""A model of the pooled curvature G from a few known products G q, and its Lasso.

With orthonormal directions Q, their products Y = G Q and M = Q'Y the model is

    B = Y M^+ Y' + mu (I - Q Q'),

which agrees with G on the known directions: B Q = G Q. It is stored as B = A diag(d) A' + mu I with
A = [Y M^(-1/2), Q], so p = 20,000 and 40 products take 80 columns and no p x p matrix.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fedlasso.numerics.certificate import Certificate, duality_gap
from fedlasso.numerics.machine import EPS, Array, one_thread
from fedlasso.numerics.penalties import Penalty
from fedlasso.numerics.quadratic_lasso import CurvatureModel, solve_model

# A vector is in the span of the known directions if at most this fraction of it lies outside.
INSIDE = 1e-14
# Entries of a unit direction below this are rounding errors.
FAINT = 1e-100
# Curvatures below this fraction of the largest are zero; this far below zero they are an error.
FLAT = 1e-13
NEGATIVE = 1e-8
# The curvature assumed in unknown directions, as a multiple of the last new one.
SAFETY = 1.1
# Rounding error of a pooled sum, as a fraction of ||y||^2 / m, and how many of them are tolerated.
SUM_ROUNDING = 16 * EPS
FINEST = 2.0


@dataclass(frozen=True)
class Secants:
    """The server's knowledge of f(b) = b'Gb/2 - c'b + y_ms/2 = ||y - Xb||^2 / (2m).

    G b, f(b), the objective and its duality gap are known exactly for b in the span of Q only.
    """

    c: Array  # X'y / m
    y_ms: float  # ||y||^2 / m
    Q: Array  # (p, k), orthonormal directions
    Y: Array  # G Q
    mu: float  # the curvature assumed outside the span of Q

    @classmethod
    @one_thread()
    def first(cls, c: Array, y_ms: float) -> "Secants":
        """Return the model that knows c only; the curvature along c is at least c'c / y_ms."""
        none = np.empty((c.size, 0))
        return cls(c, y_ms, none, none, float(c @ c) / y_ms if y_ms > 0 else 1.0)

    @classmethod
    def all(cls, gram: Array, c: Array, y_ms: float) -> "Secants":
        """Return the model that knows all of G: the directions are the unit vectors."""
        return cls(c, y_ms, np.eye(c.size), gram, 0.0)

    @one_thread()
    def correct(self, b: Array, gradient: Array) -> "Secants":
        """Return the model with the gradient at b that the sites measured.

        Sites compute it from residuals, so it is more accurate than a sum of products, which loses
        digits to cancellation. The difference is added to c.
        """
        return replace(self, c=self.times(b) - gradient)

    @one_thread()
    def finest(self, b: Array) -> float:
        """Return the gap at b that rounding errors alone may cause.

        The gradient's rounding error is relative to the terms it is summed from. It makes dual
        points infeasible, and scaling them down costs |b|_1 times that error.
        """
        terms = np.abs(self.Y) @ np.abs(self.Q.T @ b) + np.abs(self.c)
        slopes = float(np.abs(b).sum()) * float(terms.max(initial=0.0))
        return FINEST * SUM_ROUNDING * (self.y_ms + slopes)

    @property
    def M(self) -> Array:
        M = self.Q.T @ self.Y
        return np.asarray((M + M.T) / 2)

    @cached_property
    @one_thread()
    def curved(self) -> tuple[Array, Array]:
        """The eigenvalues of M that are not zero, and their eigenvectors."""
        e, P = np.linalg.eigh(self.M)
        seen = e > FLAT * e.max(initial=0.0)
        return e[seen], P[:, seen]

    @cached_property
    @one_thread()
    def model(self) -> CurvatureModel:
        e, P = self.curved
        root = self.Y @ (P / np.sqrt(e))
        A = np.ascontiguousarray(np.hstack((root, self.Q)))
        d = np.concatenate((np.ones(root.shape[1]), np.full(self.Q.shape[1], -self.mu)))
        return CurvatureModel(A, d, self.mu, (A**2) @ d + self.mu)

    @property
    @one_thread()
    def positive(self) -> bool:
        """Whether the model is a possible curvature: finite and positive semidefinite."""
        if not np.isfinite(self.Y).all():
            return False
        e = np.linalg.eigvalsh(self.M)
        upwards = e.min(initial=0.0) >= -NEGATIVE * e.max(initial=0.0)
        return bool(upwards and (self.model.diagonal >= 0).all())

    @one_thread()
    def propose(self, penalty: Penalty, start: Array) -> Array:
        """Return the Lasso of the model; an infinite threshold keeps a coefficient at zero.

        B ignores flat directions, but G b is known for every b in the span of Q. If `start` is in
        it, the model gets the true gradient there.
        """
        penalties = penalty.thresholds(self.c.size)
        b = np.where(np.isfinite(penalties), start, 0.0)
        c = self.c
        if b.any() and self.direction(b) is None:
            c = c + (self.model.times(b) - self.times(b))
        return solve_model(self.model, c, penalties, b)

    @one_thread()
    def direction(self, b: Array) -> Array | None:
        """Return the unit direction that b adds to the span of Q; None if b lies inside."""
        q = b
        size = float(np.linalg.norm(b))
        for _ in range(3):
            q = q - self.Q @ (self.Q.T @ q)
        outside = float(np.linalg.norm(q))
        if outside <= INSIDE * size:
            return None
        q = q / outside
        # Sites refuse numbers whose products underflow.
        q[np.abs(q) < FAINT] = 0.0
        return q

    @one_thread()
    def learn(self, q: Array, Gq: Array) -> "Secants":
        """Return the model with one more direction q.

        mu becomes 1.1 times the curvature along q that the model did not have,
        q'Gq - q'Y M^+ Y'q, but at least half of what it was.
        """
        e, P = self.curved
        known = P.T @ (self.Y.T @ q)
        left = float(q @ Gq - (known**2 / e).sum())
        mu = max(SAFETY * left, self.mu / 2)
        Q, Y = (np.ascontiguousarray(np.column_stack(a)) for a in ((self.Q, q), (self.Y, Gq)))
        return replace(self, Q=Q, Y=Y, mu=mu)

    @one_thread()
    def restart(self, b: Array) -> "Secants":
        """Return the model that knows the direction of b only."""
        size = float(np.linalg.norm(b))
        if size == 0.0:
            return Secants.first(self.c, self.y_ms)
        q = b / size
        Gq = self.times(q)
        mu = SAFETY * max(float(q @ Gq), 0.0) or self.mu
        return replace(self, Q=q[:, None], Y=Gq[:, None], mu=mu)

    @one_thread()
    def times(self, b: Array) -> Array:
        return np.asarray(self.Y @ (self.Q.T @ b))

    @one_thread()
    def loss(self, b: Array) -> float:
        return max(float(b @ (self.times(b) / 2 - self.c)) + self.y_ms / 2, 0.0)

    @one_thread()
    def objective(self, b: Array, penalty: Penalty) -> float:
        return self.loss(b) + penalty.value(b)

    @one_thread()
    def gap(self, b: Array, penalty: Penalty) -> float:
        residual_y = self.y_ms - float(self.c @ b)
        gradient = self.times(b) - self.c
        gap = duality_gap(2 * self.loss(b), residual_y, self.y_ms, gradient, b, penalty, 1)
        # The gap includes the rounding error of F.
        return gap + SUM_ROUNDING * self.y_ms

    def certificate(self, b: Array, penalty: Penalty) -> Certificate:
        return Certificate(self.objective(b, penalty), self.gap(b, penalty))
