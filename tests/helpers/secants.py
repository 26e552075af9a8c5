"""Data for both forms of Secant, and what must hold of their fits."""

from collections.abc import Sequence

import numpy as np
import pytest
from helpers.draws import draw_sites

from fedlasso import Fit, InProcess, Site, Status, fit
from fedlasso.numerics import Array, LeastSquares, solve_reference
from fedlasso.procedures import Secant
from fedlasso.procedures.working_set_secant import WorkingSetSecant

Parts = Sequence[tuple[Array, Array]]
SecantClass = type[Secant] | type[WorkingSetSecant]
# Rounds on a working set are more, and smaller.
ROUNDS: dict[SecantClass, int] = {Secant: 60, WorkingSetSecant: 300}


def parts(
    sizes: Sequence[int] = (30, 25, 20), p: int = 40, seed: int = 0
) -> list[tuple[Array, Array]]:
    return [(s.training.X, s.training.y) for s in draw_sites(sizes, p, seed)]


def pooled(data: Parts) -> LeastSquares:
    return LeastSquares(np.vstack([X for X, _ in data]), np.concatenate([y for _, y in data]))


def largest(data: Parts) -> float:
    return float(np.abs(pooled(data).score).max())


def run(
    secant: SecantClass, data: Parts, lam: float, rounds: int | None = None, tol: float = 1e-8
) -> Fit:
    sites = InProcess([Site(f"s{j}", X, y) for j, (X, y) in enumerate(data)])
    return fit(sites, secant(tol=tol), penalty=lam, rounds=rounds or ROUNDS[secant], tol=tol)


def check(result: Fit, data: Parts, lam: float, tol: float = 1e-8) -> None:
    """Optimal, as its own certificate and an independent solver say."""
    assert result.status is Status.OPTIMAL
    assert result.certificate is not None
    assert 0 <= result.certificate.relative_gap <= tol
    f = pooled(data)
    b = result.coefficients
    assert np.isfinite(b).all()
    best = solve_reference(f, lam).objective
    value = f.value(b) + lam * float(np.abs(b).sum())
    assert value - best <= tol * best
    assert result.certificate.objective == pytest.approx(value, rel=1e-9, abs=1e-300)
