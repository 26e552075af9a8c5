r"""Debiased estimates of single coefficients, from second derivatives of the loss.

The Lasso shrinks coefficients and sets some to zero, so its estimates have no valid intervals. One
Newton step along a direction m_j, nearly orthogonal to the other columns, removes the bias:

.. math:: \hat b_j - m_j'g, \qquad m_j = (1, -\gamma_j) / \tau_j^2,

with the gradient g at the Lasso and the Lasso :math:`\gamma_j` of column j on all others in the
metric H of the second derivatives (Zhang and Zhang 2014; van de Geer, Bühlmann, Ritov and Dezeure
2014). Its penalty is in units of column j's own noise, as in the scaled Lasso of Sun and Zhang
(2012), so nearly collinear columns are separated as carefully as others.
"""

import numpy as np
from numpy.typing import NDArray

from fedlasso.numerics.descent import Lasso, descend
from fedlasso.numerics.machine import Array, one_thread

# How often a direction's penalty is updated from its own noise, and the change that ends this.
SETTINGS = 5
SETTLED = 0.01
# Maximum number of sweeps for one direction, and the change of a coefficient that ends them.
SWEEPS = 500
SMALL = 1e-6


@one_thread()
def find_directions(
    H: Array, columns: NDArray[np.int64], free: NDArray[np.bool_], rows: int, strength: float
) -> Array:
    """Return the directions m_j of some columns, as columns of a (p, len(columns)) array.

    H has the mean second derivatives over `rows` rows. Directions are orthogonal, in the metric H,
    to the unpenalised columns `free`. The penalty is `strength` times sqrt(2 log p / rows) times a
    column's own noise.
    """
    unit = strength * np.sqrt(2 * np.log(max(len(H), 2)) / rows)
    common = take_out(H, np.flatnonzero(free))
    directions = np.zeros((len(H), len(columns)))
    for i, j in enumerate(columns):
        kept = np.flatnonzero(free & (np.arange(len(H)) != j))
        others, out, rest = take_out(H, kept) if free[j] else common
        m = _project(rest, int(np.searchsorted(others, j)), unit)
        directions[others, i] = m
        directions[kept, i] = -out @ m
        directions[:, i] /= directions[:, i] @ H[:, j]
    return directions


def take_out(H: Array, kept: NDArray[np.int64]) -> tuple[NDArray[np.int64], Array, Array]:
    """Return the other columns, their regression on the kept ones, and H's Schur complement."""
    others = np.setdiff1d(np.arange(len(H)), kept).astype(np.int64)
    across = H[np.ix_(kept, others)]
    out = np.asarray(np.linalg.lstsq(H[np.ix_(kept, kept)], across, rcond=None)[0])
    return others, out, np.ascontiguousarray(H[np.ix_(others, others)] - across.T @ out)


def _project(G: Array, j: int, unit: float) -> Array:
    """Return the coefficients of column j minus its scaled Lasso on all others."""
    noise = np.sqrt(G[j, j])
    b = np.zeros(len(G))
    m = b
    for _ in range(SETTINGS):
        sweep_others(G, j, unit * noise, SMALL * np.sqrt(G[j, j]), b)
        m = -b
        m[j] = 1.0
        before = noise
        noise = np.sqrt(max(float(m @ G @ m), 0.0))
        if abs(noise - before) <= SETTLED * before:
            break
    return m


def sweep_others(G: Array, j: int, lam: float, small: float, b: Array) -> None:
    """Solve the Lasso of column j on all others by coordinate descent, in place."""
    norms = np.diagonal(G).copy()
    problem = Lasso.of(G, norms, G[j], lam)
    problem.thresholds[j] = np.inf
    problem.units[:] = np.sqrt(np.maximum(norms, 0.0))
    descend(problem, b, small, SWEEPS)
