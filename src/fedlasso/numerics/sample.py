"""A sample: a design, a response and a loss; the mean loss of a model and its derivatives."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from fedlasso.numerics.designs import Dense, Design, Weighted, find_largest_eigenvalue
from fedlasso.numerics.losses import DEFAULT_LOSS, LOSSES, Loss
from fedlasso.numerics.machine import Array, one_thread, sum_products
from fedlasso.numerics.response import Places, Response

# X'X takes m p^2 operations once. At p = 4000 that is hundreds of sweeps over X, more than many
# fits make; up to this many columns it is faster even for one fit, and takes 32 MiB.
GRAM_COLUMNS = 2048
# With p beyond this many times m, X'X is slower: with a nonzero coefficients a sweep reads about
# a p numbers of it, or (p + 2a) m of X, and a is mostly a fraction of m.
GRAM_ASPECT = 16
# Largest distance of a sample's own intercept from its rows' linear predictors: e^-700 is about the
# smallest number, and the optimum is infinite if all counts are zero.
FARTHEST_EFFECT = 500.0
STEPS = 200


class Sample:
    """The mean loss f(b) = sum_i w_i l(x_i'b + o_i, y_i) / m of a design and a response.

    With `effect` the sample has its own intercept, which is always the optimal one and is not
    disclosed; another sample as `effect` lends its intercept. `judge` is called with the linear
    predictors of every model at which rows' slopes are computed, and may refuse it.
    """

    def __init__(
        self, design: Design | Array, y: Array | Response, loss: Loss, effect: bool | Sample = False
    ) -> None:
        self.design = design if isinstance(design, Design) else Dense(design)
        self.m = self.design.m
        self.p = self.design.p
        self.response = y if isinstance(y, Response) else Response.of(y)
        self.y = self.response.y.view()
        if self.y.shape != (self.m,):
            shape = (self.m, self.p)
            raise ValueError(f"X must be (m, p) and y (m,), not {shape} and {self.y.shape}.")
        if not np.isfinite(self.y).all():
            raise ValueError("y must be finite.")
        self.y.flags.writeable = False
        self.loss = loss
        self.has_effect = effect is True
        self.judge: Callable[[Array], None] | None = None
        self._other = effect if isinstance(effect, Sample) else None

    @property
    def columns(self) -> Array:
        """The transpose of X, read-only."""
        return self.design.columns

    @property
    def X(self) -> Array:
        return self.design.columns.T

    @property
    def unweighted(self) -> tuple[Design, Response]:
        """Design and response of the rows as they are, without an own intercept."""
        return self.design, self.response

    def predictor(self, b: Array) -> Array:
        """Return every row's linear predictor, the sample's own intercept included."""
        eta = self.design.product(b) + self.response.offset
        if self._other is not None:
            return eta + self._other.effect_at(b)
        return eta + self.find_effect(eta) if self.has_effect else eta

    def effect_at(self, b: Array) -> float:
        return self.find_effect(self.design.product(b) + self.response.offset)

    def find_effect(self, eta: Array) -> float:
        """Return the intercept that minimizes the loss of rows with these linear predictors.

        It is found by bisection, with Newton steps where they stay inside the interval.
        """
        if not len(eta):
            return 0.0
        ones = np.ones((len(eta), 1))
        low = -FARTHEST_EFFECT - float(eta.max())
        high = FARTHEST_EFFECT - float(eta.min())
        at = 0.0
        for _ in range(STEPS):
            slopes = self.loss.slopes(eta + at, self.response)
            slope = float(slopes.sum())
            if slope == 0.0 or high - low <= 1e-15 * max(abs(low), abs(high)):
                break
            if slope > 0.0:
                high = at
            else:
                low = at
            curvature = float(self.loss.curve(eta + at, self.response, ones).sum())
            step = at - slope / curvature if curvature > 0.0 else np.inf
            if abs(step - at) <= 1e-16 * abs(at):
                break
            at = step if low < step < high else (low + high) / 2
        return at

    def row_slopes(self, b: Array) -> Array:
        """Return the slope of each row's loss, along its linear predictor."""
        return self.slopes_at(self.predictor(b))

    def slopes_at(self, eta: Array) -> Array:
        """Return the same at linear predictors."""
        if self.judge is not None:
            self.judge(eta)
        return self.loss.slopes(eta, self.response)

    def value(self, b: Array) -> float:
        return float(self.loss.values(self.predictor(b), self.response).sum()) / max(self.m, 1)

    def gradient(self, b: Array) -> Array:
        return self.slope(self.row_slopes(b))

    def value_and_gradient(self, b: Array) -> tuple[float, Array]:
        eta = self.predictor(b)
        value = float(self.loss.values(eta, self.response).sum()) / max(self.m, 1)
        return value, self.slope(self.slopes_at(eta))

    def slope(self, u: Array) -> Array:
        """Return X'u / m; zero without rows."""
        return self.design.inner(u) / max(self.m, 1)

    @one_thread()
    def hessian(self, b: Array, columns: Places) -> Array:
        V = self.design.pick(columns).T
        return np.asarray(V.T @ self._curve(self.predictor(b), V)) / max(self.m, 1)

    def hessian_diagonal(self, b: Array, columns: Places) -> Array:
        V = self.design.pick(columns).T
        curved = self._curve(self.predictor(b), V)
        return np.asarray(np.einsum("ik,ik->k", V, curved)) / max(self.m, 1)

    def curvature_product(self, b: Array, v: Array) -> Array:
        """Return the Hessian of f at b times a vector."""
        curved = self._curve(self.predictor(b), self.design.product(v)[:, None])
        return self.slope(np.ascontiguousarray(curved[:, 0]))

    def _curve(self, eta: Array, V: Array) -> Array:
        curved = self.loss.curve(eta, self.response, V)
        if not self.has_effect:
            return curved
        # The optimal intercept changes with b.
        ones = self.loss.curve(eta, self.response, np.ones((len(eta), 1)))
        total = float(ones.sum())
        if total <= 0.0:
            return curved
        return np.asarray(curved - ones @ (curved.sum(axis=0, keepdims=True) / total))

    @one_thread()
    def slopes_along(self, b: Array, directions: Array) -> tuple[Array, Array]:
        """Return first and second derivatives of m f at b along directions (columns)."""
        D = np.column_stack([self.design.product(d) for d in directions.T])
        slopes = self.m * (self.gradient(b) @ directions)
        curvatures = np.einsum("ik,ik->k", D, self._curve(self.predictor(b), D))
        return slopes, np.asarray(curvatures)

    @one_thread()
    def slope_terms(self, b: Array, directions: Array) -> Array:
        """Return each row's part of the slopes of m f at b along directions (columns)."""
        eta = self.predictor(b)
        D = np.column_stack([self.design.product(d) for d in directions.T])
        if self.has_effect:
            ones = self.loss.curve(eta, self.response, np.ones((len(eta), 1)))
            D = D - ones.T @ D / max(float(ones.sum()), np.finfo(np.float64).tiny)
        return self.loss.slope_terms(eta, self.response, D)

    def dual(self, b: Array, scale: float) -> float:
        """Return the dual value of the slopes at b times `scale`, summed over rows."""
        return self.loss.dual(self.predictor(b), self.response, scale)

    def errors(self, b: Array) -> Array:
        """Return the deviance of each row: the squared error for least squares."""
        return self.loss.deviance(self.predictor(b), self.response)

    @cached_property
    def largest_curvature(self) -> float:
        """The largest second derivative of f along a unit vector, an upper bound over all b.

        If the loss has no such bound, it is the largest one at b = 0.
        """
        if np.isfinite(self.loss.smoothness):
            heaviest = float(self.response.weights.max(initial=0.0))
            return self.loss.smoothness * heaviest * self.design.largest_eigenvalue
        zero = np.zeros(self.p)
        return find_largest_eigenvalue(lambda v: self.curvature_product(zero, v), self.p)

    @cached_property
    def mean_curvature(self) -> float:
        """The average second derivative of f along a coordinate, bounded in the same way."""
        if np.isfinite(self.loss.smoothness):
            heaviest = float(self.response.weights.max(initial=0.0))
            return self.loss.smoothness * heaviest * float(self.design.norms.mean())
        eta = self.predictor(np.zeros(self.p))
        rows = self.loss.curve(eta, self.response, np.ones((self.m, 1))).sum() / max(self.m, 1)
        return float(abs(rows)) * float(self.design.norms.mean())


class LeastSquares(Sample):
    """f(b) = ||y - Xb||^2 / (2m), with shortcuts for the quadratic loss.

    Weights, offsets and the sample's own intercept are part of X and y. With `gram` solvers use
    X'X/m instead of X; by default if that is faster.
    """

    def __init__(self, design: Design | Array, y: Array, gram: bool | None = None) -> None:
        super().__init__(design, y, LOSSES[DEFAULT_LOSS])
        # The design and response before an own intercept was projected out.
        self.given: tuple[Design, Response] | None = None
        self._unweighted: tuple[Design, Response] | None = None
        faster = self.p <= min(GRAM_COLUMNS, GRAM_ASPECT * self.m)
        self.prefers_gram = faster if gram is None else gram

    @property
    def unweighted(self) -> tuple[Design, Response]:
        return self._unweighted or super().unweighted

    @property
    def gram(self) -> Array:
        """X'X / m, a p x p array; check `prefers_gram` first."""
        return self.design.gram

    @cached_property
    def y_ss(self) -> float:
        return sum_products(self.y, self.y)

    @cached_property
    def score(self) -> Array:
        return self.slope(self.y)

    def effect_at(self, b: Array) -> float:
        if self.given is None:
            return 0.0
        design, response = self.given
        left = response.y - response.offset - design.product(b)
        return float(response.weights @ left) / response.weight

    def residual(self, b: Array) -> Array:
        r = self.y.copy()
        self.design.subtract(r, b)
        return r

    def row_slopes(self, b: Array) -> Array:
        return -self.residual(b)

    def slope_terms(self, b: Array, directions: Array) -> Array:
        D = np.column_stack([self.design.product(d) for d in directions.T])
        return np.asarray(self.row_slopes(b)[:, None] * D)

    def gradient(self, b: Array) -> Array:
        return -self.slope(self.residual(b))

    def value(self, b: Array) -> float:
        r = self.residual(b)
        return sum_products(r, r) / (2 * self.m)

    def value_and_gradient(self, b: Array) -> tuple[float, Array]:
        return self.value(b), self.gradient(b)

    def errors(self, b: Array) -> Array:
        return self.residual(b) ** 2


def make_sample(
    design: Design | Array, y: Array | Response, loss: Loss, effect: bool | Sample = False
) -> Sample:
    """Return a sample: `LeastSquares` for the quadratic loss, else a general one."""
    if not loss.quadratic or isinstance(effect, Sample):
        return Sample(design, y, loss, effect)
    if not isinstance(y, Response) or (y.plain and not effect):
        return LeastSquares(design, y.y if isinstance(y, Response) else y)
    inner = design if isinstance(design, Design) else Dense(design)
    weighted = Weighted(inner, y.weights, effect)
    sample = LeastSquares(weighted, weighted.transform_rows(y.y - y.offset))
    sample.given = (inner, y) if effect else None
    sample._unweighted = (inner, y)
    return sample
