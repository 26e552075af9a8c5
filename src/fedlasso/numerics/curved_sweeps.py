r"""Coordinate descent for any smooth loss, on quadratic models of it: local steps and local fits.

At b, rows have slopes s_i and curvatures h_i, and the loss is modelled by

.. math:: f(x) \approx f(b) + \frac1m s'X(x - b) + \frac1{2m} (x - b)'X' \mathrm{diag}(h) X (x - b).

A sweep minimizes model plus penalty over one coefficient after the other. The step is halved until
the objective itself does not rise.
"""

import numpy as np

from fedlasso.numerics.machine import ROUNDING, Array, compiled, dot, soft
from fedlasso.numerics.penalties import Penalty
from fedlasso.numerics.sample import Sample

# Minimum curvature of a row, as a fraction of the mean: without it steps would be too long.
FLATTEST = 1e-3
# Maximum number of halvings of a step; after that the coefficients stay as they are.
HALVINGS = 40
# A fit has converged when solving the model changes no slope by more than this fraction.
CONVERGED = 1e-12
# Tolerance of the sweeps over a model, as a fraction of the largest change in the first sweep.
CLOSER = 1e-3
MODELS = 500
SWEEPS = 1000


class Descent:
    """Coefficients b that descend f(b) + linear'b + ridge |b|^2 / 2 + penalty(b).

    The penalty must have soft thresholds: that of a Lasso or an elastic net.
    """

    def __init__(
        self, f: Sample, penalty: Penalty, b: Array, linear: Array | None = None, ridge: float = 0.0
    ) -> None:
        self.f = f
        self.penalty = penalty
        self.linear = np.zeros(f.p) if linear is None else linear
        self.damping = ridge
        self.thresholds = penalty.thresholds(f.p)
        self.ridges = np.full(f.p, ridge)
        if (own := penalty.smooth_part(f.p)) is not None:
            self.ridges = self.ridges + own
        self.b = np.where(np.isinf(self.thresholds), 0.0, b)
        self.eta = f.predictor(self.b)
        self.value = self.at(self.b, self.eta)

    def at(self, b: Array, eta: Array) -> float:
        """Return the objective at b, whose linear predictors are eta."""
        shifted = float(self.linear @ b) + self.damping * float(b @ b) / 2
        loss = float(self.f.loss.values(eta, self.f.response).sum()) / max(self.f.m, 1)
        return loss + shifted + self.penalty.value(b)

    def step(self, most: int) -> tuple[int, float]:
        """Sweep over a model; return the sweeps, and the largest change of a slope in the first."""
        f = self.f
        slopes = f.slopes_at(self.eta)
        h = f.loss.row_curvature(self.eta, f.response)
        h = np.maximum(h, FLATTEST * float(h.mean()) or 1.0)
        x = self.b.copy()
        swept = sweep_model(
            f.columns, slopes, h, self.linear, self.ridges, self.thresholds, x, most
        )
        limit = self.value + ROUNDING * abs(self.value)
        for _ in range(HALVINGS):
            if np.isfinite(x).all():
                eta = self.f.predictor(x)
                value = self.at(x, eta)
                if value <= limit:
                    self.b, self.eta, self.value = x, eta, value
                    break
            x = self.b + (x - self.b) / 2
        return swept


def curved_sweeps(f: Sample, b: Array, penalty: Penalty, epochs: int) -> Array:
    """Return b after `epochs` sweeps, each over a new model."""
    descent = Descent(f, penalty, b)
    for _ in range(epochs):
        descent.step(1)
    return descent.b


def minimize_smooth(
    f: Sample, penalty: Penalty, start: Array, linear: Array | None = None, ridge: float = 0.0
) -> tuple[Array, int]:
    """Minimize the objective of `Descent`; return the minimizer and the number of sweeps."""
    descent = Descent(f, penalty, start, linear, ridge)
    steepest = float(np.abs(f.gradient(descent.b) + descent.linear).max(initial=0.0))
    scale = max(steepest, penalty.lam)
    total = 0
    for _ in range(MODELS):
        before = descent.b
        sweeps, largest = descent.step(SWEEPS)
        total += sweeps
        if descent.b is before or largest <= CONVERGED * scale:
            break
    return descent.b, total


@compiled
def sweep_model(
    Xt: Array, s: Array, h: Array, linear: Array, ridges: Array, pen: Array, b: Array, most: int
) -> tuple[int, float]:
    """Sweep over a model in place; return the sweeps, and the largest slope change in the first.

    The first sweep is over all coefficients. Further ones are over the nonzero ones until these
    have converged, then over all again. `pen` has their soft thresholds.
    """
    p, m = Xt.shape
    u = s.copy()
    curvature = np.zeros(p)
    first = 0.0
    full = True
    for sweep in range(most):
        largest = 0.0
        for k in range(p):
            if not full and b[k] == 0.0:
                continue
            x = Xt[k]
            if sweep == 0:
                total = 0.0
                for i in range(m):
                    total += h[i] * x[i] * x[i]
                curvature[k] = total / m + ridges[k]
            c = curvature[k]
            if c <= 0.0 or np.isinf(pen[k]):
                continue
            slope = dot(x, u) / m + linear[k] + ridges[k] * b[k]
            new = soft(c * b[k] - slope, pen[k]) / c
            step = new - b[k]
            if step != 0.0:
                largest = max(largest, abs(step) * c)
                b[k] = new
                for i in range(m):
                    u[i] += step * h[i] * x[i]
        if sweep == 0:
            first = largest
        still = largest <= CLOSER * first
        if full and still:
            return sweep + 1, first
        full = still
    return most, first
