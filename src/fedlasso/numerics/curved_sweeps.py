r"""Coordinate sweeps for any smooth loss, on quadratic models of it: local steps and local fits.

At b, rows have slopes s_i and curvatures h_i, and the loss is modelled by

.. math:: f(x) \approx f(b) + \frac1m s'X(x - b) + \frac1{2m} (x - b)'X' \mathrm{diag}(h) X (x - b).

A sweep minimizes the model and the penalty over one coefficient after the other. Where the
objective itself would rise, half of the way is gone, so that it never does.
"""

import numpy as np

from fedlasso.numerics.machine import Array, compiled, dot, soft
from fedlasso.numerics.penalties import Penalty
from fedlasso.numerics.sample import Sample

# No row is taken to be flatter than this share of the mean: steps would go too far there.
FLATTEST = 1e-3
# Half of the way, so often at most; then the model stays where it is.
HALVINGS = 40
# A fit has arrived when a whole solution of the model moves no slope by more than this share.
ARRIVED = 1e-12
# Models are solved so much closer than their first sweep has moved.
CLOSER = 1e-3
MODELS = 500
SWEEPS = 1000
ROUNDING = 64 * float(np.finfo(np.float64).eps)


class Descent:
    """A model b on the way down: f(b) + linear'b + ridge |b|^2 / 2 and what b pays.

    The penalty must have soft thresholds: a Lasso's or an elastic net's.
    """

    def __init__(
        self,
        f: Sample,
        penalty: Penalty,
        start: Array,
        linear: Array | None = None,
        ridge: float = 0.0,
    ) -> None:
        self.f = f
        self.penalty = penalty
        self.linear = np.zeros(f.p) if linear is None else linear
        self.damping = ridge
        self.pays = penalty.thresholds(f.p)
        self.ridges = np.full(f.p, ridge)
        if (own := penalty.smooth_part(f.p)) is not None:
            self.ridges = self.ridges + own
        self.b = np.where(np.isinf(self.pays), 0.0, start)
        self.eta = f.predictor(self.b)
        self.value = self.at(self.b, self.eta)

    def at(self, b: Array, eta: Array) -> float:
        """Return the objective at b, whose rows have these linear predictors."""
        shifted = float(self.linear @ b) + self.damping * float(b @ b) / 2
        loss = float(self.f.loss.values(eta, self.f.response).sum()) / max(self.f.m, 1)
        return loss + shifted + self.penalty.value(b)

    def step(self, most: int) -> tuple[int, float]:
        """Sweep over a model; return how often, and how far the first sweep moved a slope."""
        f = self.f
        slopes = f.loss.slopes(self.eta, f.response)
        h = f.loss.row_curvature(self.eta, f.response)
        h = np.maximum(h, FLATTEST * float(h.mean()) or 1.0)
        x = self.b.copy()
        swept = sweep_model(f.columns, slopes, h, self.linear, self.ridges, self.pays, x, most)
        self._move(x)
        return swept

    def _move(self, x: Array) -> None:
        """Go to x, or as far as the objective does not rise."""
        limit = self.value + ROUNDING * abs(self.value)
        for _ in range(HALVINGS):
            if np.isfinite(x).all():
                eta = self.f.predictor(x)
                value = self.at(x, eta)
                if value <= limit:
                    self.b = x
                    self.eta = eta
                    self.value = value
                    return
            x = self.b + (x - self.b) / 2


def curved_sweeps(f: Sample, b: Array, penalty: Penalty, epochs: int) -> Array:
    """Return where so many sweeps lead from b, each over a model of its own."""
    descent = Descent(f, penalty, b)
    for _ in range(epochs):
        descent.step(1)
    return descent.b


def fit_curved(
    f: Sample, penalty: Penalty, start: Array, linear: Array | None = None, ridge: float = 0.0
) -> tuple[Array, int]:
    """Minimize a sample's loss and a penalty; return b and the sweeps it took.

    Parameters are those of a `Descent`.
    """
    descent = Descent(f, penalty, start, linear, ridge)
    steepest = float(np.abs(f.gradient(descent.b) + descent.linear).max(initial=0.0))
    scale = max(steepest, penalty.lam)
    total = 0
    for _ in range(MODELS):
        before = descent.b
        sweeps, largest = descent.step(SWEEPS)
        total += sweeps
        if descent.b is before or largest <= ARRIVED * scale:
            break
    return descent.b, total


@compiled
def sweep_model(
    Xt: Array,
    slopes: Array,
    h: Array,
    linear: Array,
    ridges: Array,
    pays: Array,
    b: Array,
    most: int,
) -> tuple[int, float]:
    """Sweep over a model in place; return the sweeps, and how far the first moved a slope.

    The first sweep is over all coefficients. Further ones are over those that are not zero until
    these are still, then over all again.
    """
    p, m = Xt.shape
    u = slopes.copy()
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
            if c <= 0.0 or np.isinf(pays[k]):
                continue
            slope = dot(x, u) / m + linear[k] + ridges[k] * b[k]
            new = soft(c * b[k] - slope, pays[k]) / c
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
