r"""Debiased estimates of single coefficients, from second derivatives of the loss.

The Lasso shrinks coefficients and sets some to zero, so its estimates have no valid intervals. One
Newton step along a direction m_j, nearly orthogonal to the other columns, removes the bias:

.. math:: \hat b_j - m_j'g, \qquad m_j = (1, -\gamma_j) / \tau_j^2,

with the gradient g at the Lasso and the Lasso :math:`\gamma_j` of column j on all others in the
metric H of the second derivatives (Zhang and Zhang 2014; van de Geer, Bühlmann, Ritov and Dezeure
2014). Its penalty is in units of column j's own noise, as in the scaled Lasso of Sun and Zhang
(2012), so nearly collinear columns are separated as carefully as others.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedlasso.numerics.descent import Lasso, descend
from fedlasso.numerics.machine import Array, one_thread

# How often a direction's penalty is updated from its own noise, and the change that ends this.
SETTINGS = 5
SETTLED = 0.01
# Smallest noise of a direction, as a fraction of its column's standard deviation.
LEAST_NOISE = 1e-3
# Maximum number of sweeps for one direction, and the change of a coefficient that ends them.
SWEEPS = 500
SMALL = 1e-6
# A direction's penalty is lowered while the variance of its leftover bias exceeds this multiple of
# its sampling variance, by this factor and at most so often.
MOST_LEFTOVER = 0.15
LOWER = np.sqrt(0.5)
LOWERINGS = 4
# A column is not identified if less than this fraction of its variance is left beside all others.
IDENTIFIED = 1e-4
RIDGE = 1e-9
# A direction is exactly orthogonal to all others, and leaves no bias, if it is not sparse (more
# columns than sqrt(rows) / log(p), beyond which theory bounds no bias), less than a fraction of the
# column's variance is left beside all others, and there are at most so many columns per row.
COLLINEAR = 0.01
EXACT_COLUMNS = 0.5
MOST_SPARSE = 1.5
# Coefficients that count as part of a combination, for standardised columns.
PART = 0.02
# The largest number of columns, per row, whose combinations could not be a coincidence: of all
# columns, and of those that a projection selects if there are more columns than rows.
MOST_COLUMNS = 0.9
FEW_COLUMNS = 0.25


@dataclass(frozen=True, eq=False)
class Projections:
    """Directions in which one column alone changes, and what they leave open.

    Attributes
    ----------
    directions : array (p, columns); zero for a column that is not identified
    leftover : variance of the bias that remains, per column, in the units of m'Hm
    combinations : columns that are not identified, each with those that it is a combination of
    """

    directions: Array
    leftover: Array
    combinations: dict[int, tuple[int, ...]]


@one_thread()
def find_directions(
    H: Array,
    columns: NDArray[np.int64],
    free: NDArray[np.bool_],
    rows: int,
    strength: float,
    unknown: Array | None = None,
) -> Projections:
    """Return the directions m_j of some columns.

    H has the mean second derivatives over `rows` rows. Directions are orthogonal, in the metric H,
    to the unpenalised columns `free`. The penalty is `strength` times sqrt(2 log p / rows) times a
    column's own noise, or less if the leftover bias would be large.

    A step along m_j leaves the bias r'(b - truth), with r = e_j - H m_j. `unknown` has the
    variances of the coefficients b, in units of the noise variance over `rows`; as if these were
    independent, the variance of the leftover bias is the sum of r^2 times `unknown`.
    """
    p = len(H)
    unknown = np.zeros(p) if unknown is None else unknown
    unit = strength * np.sqrt(2 * np.log(max(p, 2)) / rows)
    common = take_out(H, np.flatnonzero(free))
    directions = np.zeros((p, len(columns)))
    leftover = np.zeros(len(columns))
    tall = p <= MOST_COLUMNS * rows
    lost = find_combinations(H, columns, np.arange(p)) if tall else {}
    exact = find_exact(H, columns) if p <= EXACT_COLUMNS * rows else {}
    for i, j in enumerate(columns):
        if j in lost:
            continue
        kept = np.flatnonzero(free & (np.arange(p) != j))
        others, out, rest = take_out(H, kept) if free[j] else common
        at = int(np.searchsorted(others, j))
        if not rest[at, at] > IDENTIFIED * H[j, j]:
            lost[int(j)] = tuple(kept.tolist())
            continue
        b = np.zeros(len(others))
        m = np.zeros(p)
        for k in range(LOWERINGS + 1):
            m[others] = _project(rest, at, unit * LOWER**k, b)
            m[kept] = -out @ m[others]
            if k == 0 and not tall and np.count_nonzero(m) <= FEW_COLUMNS * rows:
                lost |= find_combinations(H, np.array([j]), np.flatnonzero(m))
            if j in lost:
                break
            if j in exact and np.count_nonzero(m) > MOST_SPARSE * np.sqrt(rows) / np.log(p):
                directions[:, i] = exact[int(j)]
                leftover[i] = 0.0
                break
            m /= m @ H[:, j]
            moved = H @ m
            directions[:, i] = m
            leftover[i] = np.delete(moved, j) ** 2 @ np.delete(unknown, j)
            if leftover[i] <= MOST_LEFTOVER * float(m @ moved):
                break
    if not tall:
        for whole in [{j, *part} for j, part in lost.items()]:
            own = whole.intersection(columns.tolist()) - lost.keys()
            lost |= {j: tuple(sorted(whole - {j})) for j in own}
    directions[:, [int(j) in lost for j in columns]] = 0.0
    return Projections(directions, leftover, lost)


def find_combinations(
    H: Array, columns: NDArray[np.int64], some: NDArray[np.int64]
) -> dict[int, tuple[int, ...]]:
    """Return the columns that are nearly combinations of some others, with those others."""
    some = np.union1d(some, columns)
    sizes = np.sqrt(np.maximum(np.diagonal(H)[some], 0.0))
    shrink = np.divide(1.0, sizes, out=np.zeros(some.size), where=sizes > 0)
    C = H[np.ix_(some, some)] * np.outer(shrink, shrink) + RIDGE * np.eye(some.size)
    at = np.searchsorted(some, columns)
    # The residual variance of a column given all others is the inverse of this diagonal.
    inverse = np.linalg.solve(C, np.eye(some.size)[:, at])
    found = {}
    for i, j in enumerate(columns):
        own = inverse[at[i], i]
        if not 0 < own * IDENTIFIED < 1:
            part = np.abs(inverse[:, i]) > PART * abs(own)
            found[int(j)] = tuple(int(k) for k in some[part] if k != j)
    return found


def find_exact(H: Array, columns: NDArray[np.int64]) -> dict[int, Array]:
    """Return directions without bias for the columns that are nearly collinear with others."""
    inverse = np.asarray(np.linalg.pinv(H, rcond=1e-15, hermitian=True), np.float64)
    own = np.diagonal(inverse) * np.diagonal(H)
    return {int(j): inverse[:, j] for j in columns if own[j] * COLLINEAR > 1}


def take_out(H: Array, kept: NDArray[np.int64]) -> tuple[NDArray[np.int64], Array, Array]:
    """Return the other columns, their regression on the kept ones, and H's Schur complement."""
    others = np.setdiff1d(np.arange(len(H)), kept).astype(np.int64)
    across = H[np.ix_(kept, others)]
    out = np.asarray(np.linalg.lstsq(H[np.ix_(kept, kept)], across, rcond=None)[0])
    return others, out, np.ascontiguousarray(H[np.ix_(others, others)] - across.T @ out)


def _project(G: Array, j: int, unit: float, b: Array) -> Array:
    """Return the coefficients of column j minus its scaled Lasso on all others, which starts at b.

    b is overwritten by the Lasso.
    """
    size = np.sqrt(G[j, j])
    m = np.where(np.arange(len(G)) == j, 1.0, -b)
    noise = np.sqrt(max(float(m @ G @ m), 0.0))
    for _ in range(SETTINGS):
        sweep_others(G, j, unit * max(noise, LEAST_NOISE * size), SMALL * size, b)
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
