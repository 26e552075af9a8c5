"""Nearly collinear columns, as spectra have them, and their Lasso in exact arithmetic."""

from fractions import Fraction

import numpy as np
from helpers.secants import Parts

from fedlasso.numerics import Array, LeastSquares, solve_reference


def draw_spectra(seed: int, width: float = 10.0, m: int = 60, p: int = 100) -> Parts:
    """Smooth random curves in standardised columns, at three sites; neighbours are nearly equal."""
    rng = np.random.default_rng(seed)
    t = np.arange(p)
    smooth = np.exp(-0.5 * ((t[:, None] - t) / width) ** 2)
    X = rng.standard_normal((m, p)) @ smooth
    y = X[:, p // 4] - X[:, p // 2] + 0.3 * rng.standard_normal(m)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    cuts = np.array_split(rng.permutation(m), 3)
    return [(X[rows], y[rows] - y.mean()) for rows in cuts]


def solve_exactly(f: LeastSquares, lam: float) -> Array:
    """The Lasso without rounding: its support by another solver, its coefficients in fractions.

    Signs and slopes elsewhere are strictly as the optimality conditions want them, so there is no
    other solution.
    """
    near = solve_reference(f, lam).coefficients
    on = np.flatnonzero(near)
    columns = [[Fraction(x) for x in f.columns[k].tolist()] for k in on]
    y = [Fraction(value) for value in f.y.tolist()]
    pays = [Fraction(lam) * int(np.sign(near[k])) * f.m for k in on]
    system = [
        [*(_times(a, b) for b in columns), _times(a, y) - pay]
        for a, pay in zip(columns, pays, strict=True)
    ]
    b = np.zeros(f.p)
    b[on] = [float(value) for value in _eliminate(system)]
    assert (np.sign(b) == np.sign(near)).all()
    slopes = np.abs(np.delete(f.gradient(b), on))
    assert (slopes < lam * (1 - 1e-9)).all()
    return b


def _times(a: list[Fraction], b: list[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def _eliminate(rows: list[list[Fraction]]) -> list[Fraction]:
    """Solve a positive definite system, each row with its right side at the end."""
    n = len(rows)
    for i in range(n):
        for j in range(n):
            if j != i:
                share = rows[j][i] / rows[i][i]
                rows[j] = [x - share * y for x, y in zip(rows[j], rows[i], strict=True)]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def distance(b: Array, exact: Array) -> float:
    """The largest difference of two models, as a share of the largest coefficient."""
    return float(np.abs(b - exact).max() / np.abs(exact).max())
