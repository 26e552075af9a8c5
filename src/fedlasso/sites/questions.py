"""Questions that every procedure may ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedlasso.federation import Reply, Request
from fedlasso.numerics import Array
from fedlasso.sites.site import Site


@dataclass(frozen=True, eq=False)
class RowCount(Reply):
    """m_j."""

    rows: int


@dataclass(frozen=True, eq=False)
class Rows(Request[RowCount]):
    """How many training rows does the site have?"""

    kind: ClassVar[str] = "penalty"

    def answer(self, site: Site) -> RowCount:
        return RowCount(site.rows)


@dataclass(frozen=True, eq=False)
class Eigenvalue(Reply):
    """lambda_max(X_j'X_j / m_j)."""

    value: float


@dataclass(frozen=True, eq=False)
class LargestEigenvalue(Request[Eigenvalue]):
    """The largest curvature of the local loss."""

    kind: ClassVar[str] = "rate"

    def answer(self, site: Site) -> Eigenvalue:
        return Eigenvalue(site.training.largest_eigenvalue)


@dataclass(frozen=True, eq=False)
class ResponseSquare(Reply):
    """y_j'y_j."""

    y_ss: float


@dataclass(frozen=True, eq=False)
class ResponseSquares(Request[ResponseSquare]):
    """The sum of squared responses: with it gradients alone make a certificate."""

    kind: ClassVar[str] = "rate"

    def answer(self, site: Site) -> ResponseSquare:
        return ResponseSquare(site.training.y_ss)


@dataclass(frozen=True, eq=False)
class MeanEigenvalue(Request[Eigenvalue]):
    """The average curvature of the local loss, tr(X_j'X_j / m_j) / p."""

    kind: ClassVar[str] = "rate"

    def answer(self, site: Site) -> Eigenvalue:
        return Eigenvalue(float(site.training.column_norms.mean()))


@dataclass(frozen=True, eq=False)
class GradientSum(Reply):
    """X_j'(X_j b - y_j), a sum over the site's rows: those of several sites simply add up."""

    gradient: Array


@dataclass(frozen=True, eq=False)
class GradientAt(Request[GradientSum]):
    """Gradient of the local loss at b, or at every column of b."""

    b: Array

    def answer(self, site: Site) -> GradientSum:
        f = site.training
        columns = [f.m * f.gradient(b) for b in np.atleast_2d(self.b.T)]
        gradient = columns[0] if self.b.ndim == 1 else np.column_stack(columns)
        steps = len(columns)
        return GradientSum(gradient, steps=steps, operations=site.operations(steps))


@dataclass(frozen=True, eq=False)
class FitSums(Reply):
    """Sums over a site's rows; those of several sites simply add up.

    With r = y_j - X_j b: gradient = -X_j'r, and r'r, r'y_j, y_j'y_j.
    """

    gradient: Array
    residual_ss: float
    residual_y: float
    y_ss: float


@dataclass(frozen=True, eq=False)
class FitAt(Request[FitSums]):
    """Gradient and fit of the local loss at b: all that a pooled duality gap needs."""

    kind: ClassVar[str] = "certificate"
    b: Array

    def answer(self, site: Site) -> FitSums:
        f = site.training
        r = f.residual(self.b)
        gradient = f.m * f.gradient(self.b)
        return FitSums(
            gradient,
            float((r * r).sum()),
            float((r * f.y).sum()),
            float((f.y * f.y).sum()),
            steps=1,
            operations=site.operations(1),
        )


@dataclass(frozen=True, eq=False)
class ErrorSums(Reply):
    """Per candidate: sum of squared residuals, sum of fourth powers, number of rows."""

    squares: Array
    fourths: Array
    counts: Array


@dataclass(frozen=True, eq=False)
class ValidationErrors(Request[ErrorSums]):
    """How well do candidate models (columns) predict the site's held-out rows?"""

    kind: ClassVar[str] = "validation"
    candidates: Array
    purpose: str = "candidate"

    def answer(self, site: Site) -> ErrorSums:
        held_out = site.validation(self.purpose)
        r2 = [held_out.residual(b) ** 2 for b in self.candidates.T]
        return ErrorSums(
            np.array([e.sum() for e in r2]),
            np.array([(e**2).sum() for e in r2]),
            np.full(len(r2), float(held_out.m)),
        )
