"""A model of the pooled curvature G from the few products G q known so far, and its Lasso.

With orthonormal directions Q, their products Y = G Q and M = Q'Y the model is

    B = Y M^+ Y' + mu (I - Q Q'),

which agrees with G wherever G was asked: B Q = G Q. It is kept as B = A diag(d) A' + mu I with
A = [Y M^(-1/2), Q], so p = 20,000 and 40 products take 80 columns and no p x p matrix.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fedlasso.numerics.certificate import Certificate, duality_gap
from fedlasso.numerics.machine import Array, one_thread
from fedlasso.numerics.penalties import Penalty
from fedlasso.numerics.secant_lasso import CurvatureModel, solve_model

# A vector is in the span of the known directions when no larger share of it lies outside.
INSIDE = 1e-14
# Parts of a unit direction below this are rounding.
FAINT = 1e-100
# Curvatures below this share of the largest count as none; as far below zero they are an error.
FLAT = 1e-13
NEGATIVE = 1e-8
# The curvature left to the unknown directions, as a multiple of the last one seen.
SAFETY = 1.1
# Rounding of a pooled sum, as a share of ||y||^2 / m.
ROUNDING = 16 * float(np.finfo(np.float64).eps)
# How many such roundings count as none.
FINEST = 2.0


@dataclass(frozen=True)
class Secants:
    """What the server knows of f(b) = b'Gb/2 - c'b + y_ms/2 = ||y - Xb||^2 / (2m).

    Attributes
    ----------
    c : X'y / m
    y_ms : ||y||^2 / m
    Q, Y : arrays (p, k), orthonormal directions and G Q
    mu : the curvature assumed outside the span of Q
    """

    c: Array
    y_ms: float
    Q: Array
    Y: Array
    mu: float

    @classmethod
    @one_thread()
    def first(cls, c: Array, y_ms: float) -> "Secants":
        """Nothing known but c; the curvature along c is at least (c'c)^2 / (c'c y_ms)."""
        none = np.empty((c.size, 0))
        return cls(c, y_ms, none, none, float(c @ c) / y_ms if y_ms > 0 else 1.0)

    @classmethod
    def all(cls, gram: Array, c: Array, y_ms: float) -> "Secants":
        """Everything known: the directions are the columns, and their products are G itself."""
        return cls(c, y_ms, np.eye(c.size), gram, 0.0)

    @one_thread()
    def correct(self, b: Array, gradient: Array) -> "Secants":
        """The same with the gradient that was measured at b, which lies in the span of Q.

        Sites compute it from residuals. Summed up from products it has lost the digits that these
        have in common; c takes up the difference.
        """
        return replace(self, c=self.times(b) - gradient)

    @one_thread()
    def finest(self, b: Array) -> float:
        """The gap at b, in the span of Q, that rounding alone may leave.

        Besides the rounding of F there is that of the gradient, a share of what it is summed up
        from: dual values must be scaled down to be feasible, which costs |b|_1 times as much.
        """
        terms = np.abs(self.Y) @ np.abs(self.Q.T @ b) + np.abs(self.c)
        slopes = float(np.abs(b).sum()) * float(terms.max(initial=0.0))
        return FINEST * ROUNDING * (self.y_ms + slopes)

    @property
    def M(self) -> Array:
        """Q'GQ, symmetric."""
        M = self.Q.T @ self.Y
        return np.asarray((M + M.T) / 2)

    @cached_property
    @one_thread()
    def curved(self) -> tuple[Array, Array]:
        """Eigenvalues of M that are not flat, and their eigenvectors."""
        e, P = np.linalg.eigh(self.M)
        seen = e > FLAT * e.max(initial=0.0)
        return e[seen], P[:, seen]

    @cached_property
    @one_thread()
    def model(self) -> CurvatureModel:
        """B = Y M^+ Y' + mu (I - Q Q')."""
        e, P = self.curved
        root = self.Y @ (P / np.sqrt(e))
        A = np.ascontiguousarray(np.hstack((root, self.Q)))
        d = np.concatenate((np.ones(root.shape[1]), np.full(self.Q.shape[1], -self.mu)))
        return CurvatureModel(A, d, self.mu, (A**2) @ d + self.mu)

    @property
    @one_thread()
    def positive(self) -> bool:
        """Whether the model can be a curvature: finite, no direction curved downwards."""
        if not np.isfinite(self.Y).all():
            return False
        e = np.linalg.eigvalsh(self.M)
        upwards = e.min(initial=0.0) >= -NEGATIVE * e.max(initial=0.0)
        return bool(upwards and (self.model.diagonal >= 0).all())

    @one_thread()
    def propose(self, penalty: Penalty, start: Array) -> Array:
        """The Lasso of the model; an infinite penalty keeps its coefficient at zero.

        B is blind along flat directions, but G b is known for every b in the span of Q: where
        `start` is one, the model's gradient is made the true one there.
        """
        penalties = penalty.thresholds(self.c.size)
        b = np.where(np.isfinite(penalties), start, 0.0)
        c = self.c
        if b.any() and self.direction(b) is None:
            c = c + (self.model.times(b) - self.times(b))
        return solve_model(self.model, c, penalties, b)

    @one_thread()
    def direction(self, b: Array) -> Array | None:
        """The unit direction that b adds to the span of Q; None when b lies inside."""
        q = b
        size = float(np.linalg.norm(b))
        for _ in range(3):
            q = q - self.Q @ (self.Q.T @ q)
        outside = float(np.linalg.norm(q))
        if outside <= INSIDE * size:
            return None
        q = q / outside
        # What rounding left of nothing is nothing; sites refuse numbers whose products underflow.
        q[np.abs(q) < FAINT] = 0.0
        return q

    @one_thread()
    def learn(self, q: Array, Gq: Array) -> "Secants":
        """The same with one more direction.

        mu becomes 1.1 times the curvature along q that was not known before,
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
        """Forget every direction but that of b."""
        size = float(np.linalg.norm(b))
        if size == 0.0:
            return Secants.first(self.c, self.y_ms)
        q = b / size
        Gq = self.times(q)
        mu = SAFETY * max(float(q @ Gq), 0.0) or self.mu
        return replace(self, Q=q[:, None], Y=Gq[:, None], mu=mu)

    @one_thread()
    def times(self, b: Array) -> Array:
        """G b, for b in the span of Q."""
        return np.asarray(self.Y @ (self.Q.T @ b))

    @one_thread()
    def loss(self, b: Array) -> float:
        """||y - Xb||^2 / (2m), for b in the span of Q."""
        return max(float(b @ (self.times(b) / 2 - self.c)) + self.y_ms / 2, 0.0)

    @one_thread()
    def objective(self, b: Array, penalty: Penalty) -> float:
        """F(b), for b in the span of Q."""
        return self.loss(b) + penalty.value(b)

    @one_thread()
    def gap(self, b: Array, penalty: Penalty) -> float:
        """Bound F(b) - min F from above, for b in the span of Q: the pooled duality gap."""
        rss = 2 * self.loss(b)
        residual_y = self.y_ms - float(self.c @ b)
        gradient = self.times(b) - self.c
        gap = duality_gap(rss, residual_y, self.y_ms, gradient, b, penalty, 1)
        # No gap is claimed to be smaller than F can be known.
        return gap + ROUNDING * self.y_ms

    def certificate(self, b: Array, penalty: Penalty) -> Certificate:
        """F(b) and its gap, for b in the span of Q."""
        return Certificate(self.objective(b, penalty), self.gap(b, penalty))
