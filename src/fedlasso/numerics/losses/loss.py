"""The interface of a loss.

Most losses are sums over rows: a `RowLoss` defines four functions of a row's linear predictor and
response. A loss whose rows depend on each other, as for survival times, defines a `Loss` of the
whole sample.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlasso.numerics.machine import Array
from fedlasso.numerics.response import Response


class Loss(ABC):
    """A loss that is convex and smooth in the linear predictors eta of a sample's rows.

    Attributes
    ----------
    name : the name in settings and messages
    smoothness : upper bound on the second derivative in eta; infinite if there is none
    centres : whether an intercept is equivalent to centring columns and response
    intercept : whether an intercept has an effect
    quadratic : whether it is least squares
    survival : whether responses are event times or censored
    wants : description of valid responses

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso.numerics import find_loss
    >>> find_loss("binomial").mean(np.array([0.0, 3.0])).round(3)
    array([0.5  , 0.953])
    """

    name: ClassVar[str]
    smoothness: ClassVar[float]
    centres: ClassVar[bool] = False
    intercept: ClassVar[bool] = True
    quadratic: ClassVar[bool] = False
    survival: ClassVar[bool] = False
    wants: ClassVar[str] = "finite numbers"

    @abstractmethod
    def values(self, eta: Array, rows: Response) -> Array:
        """Return the weighted loss of every row; the loss is their sum."""

    @abstractmethod
    def slopes(self, eta: Array, rows: Response) -> Array:
        """Return the derivative of the loss in every row's eta."""

    @abstractmethod
    def curve(self, eta: Array, rows: Response, V: Array) -> Array:
        """Return the Hessian of the loss in eta times the columns of V."""

    @abstractmethod
    def row_curvature(self, eta: Array, rows: Response) -> Array:
        """Return the diagonal of a diagonal upper bound on the Hessian in eta."""

    def slope_terms(self, eta: Array, rows: Response, V: Array) -> Array:
        """Return each row's part of the slopes along V, which has a row per row of the sample."""
        return np.asarray(self.slopes(eta, rows)[:, None] * V)

    @abstractmethod
    def dual(self, eta: Array, rows: Response, scale: float) -> float:
        """Return the dual value of the slopes at eta times `scale`, between zero and one.

        If the scaled slopes are orthogonal to the columns, it is a lower bound on the loss of any
        linear predictor of these columns and offsets.
        """

    @abstractmethod
    def mean(self, eta: Array) -> Array:
        """Return the inverse link: the expected value, probability, rate or relative risk."""

    def link(self, mean: float) -> float:
        """Return the linear predictor at which all rows would have this mean; zero if unknown."""
        return 0.0

    def deviance(self, eta: Array, rows: Response) -> Array:
        return 2 * self.values(eta, rows)

    def disclosed_response(self, y: Array) -> Array:
        """Return the response whose sums are disclosed; for survival times, the event indicator."""
        return y

    def disclosed(self, rows: Response) -> Array:
        """Return the same, minus the offset if the response is centred."""
        y = self.disclosed_response(rows.y)
        return y - rows.offset if self.centres else y

    def varies(self, total: float, weight: float) -> bool:
        """Return whether responses vary, given their sum and the total weight of the rows."""
        return True

    def find_misfits(self, y: Array) -> NDArray[np.bool_]:
        """Return which responses are invalid."""
        return ~np.isfinite(y)

    def slope_size(self, rows: float, y_norm: float) -> float:
        """Return a bound on the slopes' norm, from the weighted rows and the responses' norm.

        If the slopes are unbounded, it holds for all reasonable models.
        """
        return float(np.sqrt(rows)) + y_norm


class RowLoss(Loss):
    """A loss that is a weighted sum over rows of l(eta, y)."""

    @abstractmethod
    def value(self, eta: Array, y: Array) -> Array:
        """Return l(eta, y) for every row."""

    @abstractmethod
    def derivative(self, eta: Array, y: Array) -> Array:
        """Return the derivative in eta."""

    @abstractmethod
    def curvature(self, eta: Array, y: Array) -> Array:
        """Return the second derivative in eta."""

    @abstractmethod
    def conjugate(self, u: Array, y: Array) -> Array:
        """Return the maximum of u eta - l(eta, y) over eta."""

    def mean(self, eta: Array) -> Array:
        return eta

    def values(self, eta: Array, rows: Response) -> Array:
        return rows.weights * self.value(eta, rows.y)

    def slopes(self, eta: Array, rows: Response) -> Array:
        return rows.weights * self.derivative(eta, rows.y)

    def curve(self, eta: Array, rows: Response, V: Array) -> Array:
        return np.asarray((rows.weights * self.curvature(eta, rows.y)) * V.T).T

    def row_curvature(self, eta: Array, rows: Response) -> Array:
        return rows.weights * self.curvature(eta, rows.y)

    def dual(self, eta: Array, rows: Response, scale: float) -> float:
        u = scale * self.derivative(eta, rows.y)
        return float((rows.weights * (u * rows.offset - self.conjugate(u, rows.y))).sum())
