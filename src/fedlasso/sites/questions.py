"""Questions that any procedure may ask."""

from dataclasses import field

import numpy as np

from fedlasso.federation import (
    AnyPoints,
    Disclosure,
    ModelVector,
    Positive,
    Reply,
    Request,
    Weights,
)
from fedlasso.federation.magnitudes import COARSE, Bound, Magnitudes
from fedlasso.federation.messages import ERRORS, Count, R, Vectors
from fedlasso.numerics import Penalty, rebuild_penalty
from fedlasso.sites.site import View

# Relative tolerance for the Cauchy-Schwarz inequality of rounded sums.
SCHWARZ_TOLERANCE = 1e-9


class Penalised(Request[R]):
    """A question whose answer depends on the penalty.

    The penalty travels as its strength, its weights if they differ, a further number and a further
    vector over the columns, and its name `form`; an empty name is the Lasso.
    """

    strength: float
    weights: Weights = field(default=None, kw_only=True)
    shape: float = field(default=0.0, kw_only=True)
    form: str = field(default="", kw_only=True)
    vector: Weights = field(default=None, kw_only=True)

    @property
    def penalty(self) -> Penalty:
        return rebuild_penalty(self.form, self.strength, self.weights, self.shape, self.vector)


class RowCount(Reply):
    rows: Count[int]


class Rows(Request[RowCount]):
    """How many training rows does the site have?"""

    kind = "penalty"
    discloses = Disclosure(
        "the number of training rows", single="sites are weighted and listed by their rows"
    )

    def answer(self, site: View) -> RowCount:
        return RowCount(site.rows)


def bound_of_gradient(magnitudes: Magnitudes) -> Bound:
    """Bound sums of products of columns and residuals of a model in the question."""
    return Bound(magnitudes.columns + magnitudes.reach, words=1, coarse=COARSE)


def bound_of_squares(magnitudes: Magnitudes, further: int = 0) -> Bound:
    """Bound sums of squares of such residuals, which may be so many powers of two larger."""
    return Bound(2 * magnitudes.reach + further, coarse=COARSE + further)


def bound_of_loss(magnitudes: Magnitudes) -> Bound:
    """Bound sums of losses by slopes times linear predictors."""
    return Bound(magnitudes.slopes + magnitudes.reach, coarse=COARSE)


class Eigenvalue(Reply):
    """A bound on the curvature of the local loss; a total is the maximum over sites."""

    adds = "max"
    value: Positive[float]


class LargestEigenvalue(Request[Eigenvalue]):
    """The largest curvature of the local loss: lambda_max(X_j'X_j / m_j) for least squares."""

    kind = "rate"
    discloses = Disclosure(
        "the largest variance of any combination of columns", single="a maximum is not a sum"
    )

    def answer(self, site: View) -> Eigenvalue:
        return Eigenvalue(site.training.largest_curvature)


class Scalar(Reply):
    """One number, a sum over the site's rows."""

    value: float


class Amount(Reply):
    """One number that cannot be negative, a sum over the site's rows."""

    value: Positive[float]


class WeightedEigenvalue(Request[Amount]):
    """The largest curvature of the local loss, times the site's rows."""

    kind = "rate"
    discloses = Disclosure("the largest variance of any combination of columns")

    def answer(self, site: View) -> Amount:
        return Amount(site.rows * site.training.largest_curvature)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        # Least squares is the most curved loss, and no direction has more curvature than this.
        columns = magnitudes.columns
        return {"value": Bound(2 * int(columns.max(initial=0)) + columns.size.bit_length())}


class MeanEigenvalue(WeightedEigenvalue):
    """The average curvature of the local loss, tr(X_j'X_j / m_j) / p, times the site's rows."""

    discloses = Disclosure("the average variance of the columns")

    def answer(self, site: View) -> Amount:
        return Amount(site.rows * site.training.mean_curvature)


class ResponseSquares(Request[Amount]):
    """The sum of squared responses: with it a certificate needs only gradients."""

    kind = "rate"
    discloses = Disclosure("the sum of squared responses")

    def answer(self, site: View) -> Amount:
        return Amount(site.least_squares.y_ss)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        return {"value": Bound(2 * magnitudes.response)}


class GradientSum(Reply):
    """m_j times the gradient of the local loss: a sum over the site's rows."""

    gradient: Vectors


class GradientAt(Request[GradientSum]):
    """Gradient of the local loss at b, or at every column of b."""

    # These points do not count as models; the budget of vectors limits them.
    discloses = Disclosure("one combination of second moments per vector: sums over rows")
    b: AnyPoints

    def answer(self, site: View) -> GradientSum:
        f = site.training
        columns = [f.m * f.gradient(b) for b in np.atleast_2d(self.b.T)]
        gradient = columns[0] if self.b.ndim == 1 else np.column_stack(columns)
        steps = len(columns)
        return GradientSum(gradient, steps=steps, operations=site.operations(steps))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        return {"gradient": bound_of_gradient(magnitudes)}


class FitSums(Reply):
    """Sums over a site's rows, with r = y_j - X_j b: -X_j'r, r'r, r'y_j and y_j'y_j."""

    gradient: Vectors
    residual_ss: Positive[float]
    residual_y: float
    y_ss: Positive[float]

    def find_contradiction(self, rows: int) -> str:
        most = np.sqrt(self.residual_ss) * np.sqrt(self.y_ss)
        fits = abs(self.residual_y) <= most * (1 + SCHWARZ_TOLERANCE)
        return "" if fits else f"residual_y of {self.residual_y:.3g}, more than {most:.3g}"


class FitAt(Request[FitSums]):
    """Gradient and fit of least squares at b: sufficient for its pooled duality gap."""

    kind = "certificate"
    discloses = Disclosure(
        "the gradient and squared error of a model and the squared responses: sums over rows"
    )
    b: ModelVector

    def answer(self, site: View) -> FitSums:
        f = site.least_squares
        r = f.residual(self.b)
        products = (float((a * b).sum()) for a, b in ((r, r), (r, f.y), (f.y, f.y)))
        gradient = f.m * f.gradient(self.b)
        return FitSums(gradient, *products, steps=1, operations=site.operations(1))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        sums = ("residual_ss", "residual_y", "y_ss")
        squares = dict.fromkeys(sums, bound_of_squares(magnitudes))
        return {"gradient": bound_of_gradient(magnitudes), **squares}


class LossSums(Reply):
    """m_j times the loss and its gradient."""

    gradient: Vectors
    loss: float


class LossAt(Request[LossSums]):
    """Loss and gradient at b, for any loss."""

    kind = "certificate"
    discloses = Disclosure("the gradient and the loss of a model: sums over rows")
    b: ModelVector

    def answer(self, site: View) -> LossSums:
        f = site.training
        sums = (f.m * f.gradient(self.b), f.m * f.value(self.b))
        return LossSums(*sums, steps=1, operations=site.operations(1))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        return {"gradient": bound_of_gradient(magnitudes), "loss": bound_of_loss(magnitudes)}


class DualAt(Request[Scalar]):
    """Dual value of the loss at the slopes of a model, scaled to be feasible."""

    kind = "certificate"
    discloses = Disclosure("one sum over rows of a function of a model")
    b: ModelVector
    scale: float

    def answer(self, site: View) -> Scalar:
        return Scalar(site.training.dual(self.b, self.scale))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        return {"value": bound_of_loss(magnitudes)}


class ErrorAt(Request[Amount]):
    """Sum of the squared errors, or the deviance, of a model on the site's own training rows."""

    kind = "certificate"
    discloses = Disclosure(
        f"errors of a model at each site: a sum of {ERRORS} over its rows",
        single="the card shows where a model fits badly",
    )
    b: ModelVector

    def answer(self, site: View) -> Amount:
        return Amount(float(site.training.errors(self.b).sum()), steps=1)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        return {"value": bound_of_squares(magnitudes)}
