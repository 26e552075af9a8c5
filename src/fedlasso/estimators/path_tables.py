"""Path, cross-validation and models at single penalties, under the names that glmnet uses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError
from fedlasso.fitting.exact_path import ExactPath
from fedlasso.models.document import ErrorCurve
from fedlasso.numerics import Array


def data_frame(columns: Mapping[str, Any]) -> Any:
    """Return a pandas data frame of these columns."""
    try:
        from pandas import DataFrame
    except ImportError:
        need = "a data frame requires pandas: pip install 'fedlasso[formula]'"
        raise FedLassoError(need) from None
    return DataFrame(dict(columns))


@dataclass(frozen=True, eq=False)
class PenaltyPath:
    """The pooled Lasso of all rows at decreasing penalties, each with its certificate.

    Attributes
    ----------
    columns : names of the coefficients
    penalties : glmnet's ``lambda``, an array (L,), on the scale of standardised columns
    coefficients, intercepts : arrays (p, L) and (L,), on the original scale; the intercepts of a
        Cox model are such that predictions are relative to a row at the mean of all columns
    nzero : number of nonzero coefficients, without the intercept
    dev_ratio : glmnet's ``dev.ratio``, the fraction of the empty model's deviance explained
    gaps : certified bounds of the relative distance to the best possible objective
    has_intercept : whether the intercepts are coefficients of the model, unlike those of Cox's
    """

    columns: tuple[str, ...]
    penalties: Array
    coefficients: Array
    intercepts: Array
    nzero: NDArray[np.int64]
    dev_ratio: Array
    gaps: Array
    has_intercept: bool = True

    @classmethod
    def of(cls, columns: tuple[str, ...], path: ExactPath, has_intercept: bool) -> "PenaltyPath":
        """Return the path of named columns."""
        return cls(columns, nzero=path.nzero, has_intercept=has_intercept, **vars(path))

    def to_frame(self) -> Any:
        """Return a data frame with glmnet's names, one row per penalty."""
        return data_frame(
            {
                "lambda": self.penalties,
                "nzero": self.nzero,
                "dev.ratio": self.dev_ratio,
                "gap": self.gaps,
                **({"(Intercept)": self.intercepts} if self.has_intercept else {}),
                **dict(zip(self.columns, self.coefficients, strict=True)),
            }
        )


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Held-out error along the penalties, pooled over the sites.

    Attributes
    ----------
    penalties : glmnet's ``lambda``
    mean, se : glmnet's ``cvm`` and ``cvsd``: the mean error per row, and its standard error
    nzero : number of nonzero coefficients of the fit to all rows; where gradients chose it is known
        at the chosen penalty, and at all once `path_` was used, else NaN
    lambda_min : the penalty of smallest error
    lambda_1se : the largest penalty whose error is within one standard error of that
    chosen : the penalty that the fit has chosen
    """

    penalties: Array
    mean: Array
    se: Array
    nzero: Array
    lambda_min: float
    lambda_1se: float
    chosen: float

    @classmethod
    def of(cls, curve: ErrorCurve) -> "CrossValidation":
        """Return the curve of a model's document."""
        penalties = np.array(curve.penalties)
        return cls(
            penalties,
            np.array(curve.mse),
            np.array([np.nan if se is None else se for se in curve.se]),
            np.array([np.nan if own is None else own for own in curve.nzero]),
            float(penalties[curve.minimum]),
            float(penalties[curve.one_se]),
            float(penalties[curve.chosen]),
        )

    def to_frame(self) -> Any:
        """Return a data frame with glmnet's names, one row per penalty."""
        names = ("lambda", "cvm", "cvsd", "nzero")
        return data_frame(
            dict(zip(names, (self.penalties, self.mean, self.se, self.nzero), strict=True))
        )


@dataclass(frozen=True, eq=False)
class PenaltyModel:
    """The model at one penalty, on the original scale.

    Attributes
    ----------
    penalty : on the scale of standardised columns
    coef, intercept : array (p,), and a number
    gap : certified bound of the relative distance to the best possible objective there
    """

    penalty: float
    coef: Array
    intercept: float
    gap: float

    @property
    def nzero(self) -> int:
        """Number of nonzero coefficients, without the intercept."""
        return int(np.count_nonzero(self.coef))
