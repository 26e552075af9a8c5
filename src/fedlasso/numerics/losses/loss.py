"""What a loss is: how linear predictors meet responses.

Most losses are sums over rows: such a `RowLoss` says four functions of a row's linear predictor and
response. A loss whose rows depend on each other, as survival times do, says what a whole sample
costs.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlasso.numerics.machine import Array
from fedlasso.numerics.response import Response


class Loss(ABC):
    """What the rows of a sample cost, convex and smooth in their linear predictors eta.

    Attributes
    ----------
    name : as settings and messages call it
    smoothness : the largest second derivative in eta; infinite where there is none
    centres : whether an intercept is the same as centring columns and response
    intercept : whether an intercept changes anything at all
    quadratic : whether it is least squares
    survival : whether responses are times of events, or censored
    wants : what responses must be, in words

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
        """Return what every row costs, times its weight; the loss is their sum."""

    @abstractmethod
    def slopes(self, eta: Array, rows: Response) -> Array:
        """Return the derivative of the loss in every row's eta."""

    @abstractmethod
    def curve(self, eta: Array, rows: Response, V: Array) -> Array:
        """Return the second derivative of the loss in eta times vectors, the columns of V."""

    @abstractmethod
    def row_curvature(self, eta: Array, rows: Response) -> Array:
        """Return one number per row whose diagonal matrix is no less than the second derivative."""

    @abstractmethod
    def dual(self, eta: Array, rows: Response, scale: float) -> float:
        """Return the dual value of the slopes at eta times `scale`, which is from zero to one.

        It bounds from below what any linear predictor of the same columns and offsets costs, if
        the scaled slopes are orthogonal to those columns.
        """

    @abstractmethod
    def mean(self, eta: Array) -> Array:
        """Return what to expect at a linear predictor: a value, a probability, a rate, a risk."""

    def deviance(self, eta: Array, rows: Response) -> Array:
        """Return twice what every row costs more than with a model that fits it perfectly."""
        return 2 * self.values(eta, rows)

    def told(self, y: Array) -> Array:
        """Return what sums over responses are about: whether a time ended in an event, not when."""
        return y

    def disclosed(self, rows: Response) -> Array:
        """Return the same of rows that may have offsets, which centring a response takes away."""
        told = self.told(rows.y)
        return told - rows.offset if self.centres else told

    def varies(self, total: float, weight: float) -> bool:
        """Return whether responses that add up so, of rows that weigh so much, tell anything."""
        return True

    def find_misfits(self, y: Array) -> NDArray[np.bool_]:
        """Return which responses the loss cannot take."""
        return ~np.isfinite(y)

    def slope_size(self, rows: float, y_norm: float) -> float:
        """Bound the Euclidean norm of the slopes, by the number of rows and the responses' norm.

        Rows are weighted. Where no bound exists it holds for every model worth asking about.
        """
        return float(np.sqrt(rows)) + y_norm


class RowLoss(Loss):
    """A loss that is a sum over rows, l(eta, y) each, times the row's weight.

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso.numerics import find_loss
    >>> find_loss("quadratic").value(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    array([0., 2.])
    """

    @abstractmethod
    def value(self, eta: Array, y: Array) -> Array:
        """Return l(eta, y) of every row."""

    @abstractmethod
    def derivative(self, eta: Array, y: Array) -> Array:
        """Return the derivative in eta."""

    @abstractmethod
    def curvature(self, eta: Array, y: Array) -> Array:
        """Return the second derivative in eta."""

    @abstractmethod
    def conjugate(self, u: Array, y: Array) -> Array:
        """Return the largest value of u eta - l(eta, y) over eta; it bounds fits from below."""

    def mean(self, eta: Array) -> Array:
        """Return the response at which a row with this linear predictor costs least."""
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
