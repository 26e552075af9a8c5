"""Local steps of federated dual averaging at one site (Yuan, Zaheer and Reddi, 2021)."""

import numpy as np

from fedlasso.numerics.arrays import Array
from fedlasso.numerics.compiled import compiled, dot, soft, subtract_product
from fedlasso.numerics.least_squares import LeastSquares
from fedlasso.numerics.penalties import L1, Penalty
from fedlasso.numerics.sample import Sample
from fedlasso.numerics.sweeps import Form


def dual_steps(
    f: Sample,
    z: Array,
    rates: Array,
    penalty: Penalty,
    first_step: int,
    epochs: int,
    form: Form | None = None,
) -> Array:
    """Take E dual-averaging steps from every column of `z`, each at its own rate.

    For k = 0..E-1: b = prox(z, rate (first_step + k)), then z <- z - rate grad f(b).

    Parameters
    ----------
    f : Sample
        The site's data; least squares with a Lasso penalty run compiled.
    z : array (p, q)
        q dual vectors; not changed. A column's result does not depend on the other columns.
    rates : array (q,)
        The step size of each column.
    penalty : Penalty
        What coefficients pay.
    first_step : int
        Steps taken before, t E at the start of round t.
    epochs : int
        The number of steps, E.
    form : {"gram", "residual"}, optional
        Which of two equal computations to use; `f.prefers_gram` chooses when not given.

    Returns
    -------
    array (p, q)
    """
    Z = np.array(z.T, dtype=np.float64, order="C")
    rates = np.ascontiguousarray(rates, dtype=np.float64)
    if not isinstance(f, LeastSquares) or type(penalty) is not L1 or penalty.weights is not None:
        for z_k, rate in zip(Z, rates.tolist(), strict=True):
            for step in range(first_step, first_step + epochs):
                z_k -= rate * f.gradient(penalty.prox(z_k, rate * step))
        return Z.T
    lam = penalty.lam
    if form == "gram" or (form is None and f.prefers_gram):
        gram_steps(f.gram, f.score, Z, rates, lam, first_step, epochs)
    else:
        residual_steps(f.columns, f.y, Z, rates, lam, first_step, epochs)
    return Z.T


@compiled
def gram_steps(
    G: Array, c: Array, Z: Array, rates: Array, lam: float, first_step: int, epochs: int
) -> None:
    """Step every row of Z in place, with grad f(b) = G b - c."""
    q, p = Z.shape
    b = np.empty(p)
    for j in range(q):
        z = Z[j]
        for step in range(first_step, first_step + epochs):
            for k in range(p):
                b[k] = soft(z[k], rates[j] * step * lam)
            descent = c.copy()
            subtract_product(descent, G, b)
            for k in range(p):
                z[k] += rates[j] * descent[k]


@compiled
def residual_steps(
    Xt: Array, y: Array, Z: Array, rates: Array, lam: float, first_step: int, epochs: int
) -> None:
    """Step every row of Z in place, with grad f(b) = -X'(y - Xb)/m."""
    q, p = Z.shape
    m = y.size
    b = np.empty(p)
    for j in range(q):
        z = Z[j]
        for step in range(first_step, first_step + epochs):
            for k in range(p):
                b[k] = soft(z[k], rates[j] * step * lam)
            r = y.copy()
            subtract_product(r, Xt, b)
            for k in range(p):
                z[k] += rates[j] * (dot(Xt[k], r) / m)
