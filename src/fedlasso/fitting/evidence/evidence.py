"""The interface of all evidence, the fits requested of it, and those it returns."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedlasso.fitting.validation import ACTIVE
from fedlasso.numerics import Array, Certificate, Penalty


@dataclass(frozen=True, eq=False)
class Wanted:
    """A requested fit.

    Attributes
    ----------
    penalty : with infinite weights for coefficients that stay zero
    tol : relative duality gap
    rows : name of the rows, as the evidence calls them; all rows by default
    start : a model fitted before to the same rows; empty by default
    reserve : vectors of p numbers that must be left over
    """

    penalty: Penalty
    tol: float = 0.01
    rows: str = ""
    start: Array | None = None
    reserve: int = 0


@dataclass(frozen=True, eq=False)
class PathPoint:
    """One fit: argmin loss(b) + penalty(b).

    Attributes
    ----------
    penalty : the penalty, with its weights
    coefficients : array (p,)
    residual_ss : ||y - Xb||^2 over all sites; twice the loss for losses other than least squares
    certificate : distance to the best possible objective with this penalty
    finest : the gap that rounding alone may leave
    intercept : whether the last coefficient is an intercept

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, L1, Site, open_evidence
    >>> evidence = open_evidence(InProcess([Site("a", np.eye(3), [3.0, 2.0, 0.1])]))
    >>> evidence.fit(L1(0.5)).active
    2
    """

    penalty: Penalty
    coefficients: Array
    residual_ss: float
    certificate: Certificate
    finest: float = 0.0
    intercept: bool = False

    def arrived(self, tol: float) -> bool:
        """Return whether it is certified to a relative gap, or as far as rounding allows."""
        return self.certificate.reaches(tol, self.finest)

    @property
    def lam(self) -> float:
        """Strength of the penalty, before weights."""
        return self.penalty.lam

    @property
    def active(self) -> int:
        """Number of active coefficients, without an intercept."""
        columns = self.coefficients[: self.coefficients.size - self.intercept]
        return int((np.abs(columns) > ACTIVE).sum())


class Evidence(ABC):
    """What the server knows of the pooled objective on given rows.

    A kind of evidence is one class with `fit_many`, which takes many fits at once so that their
    next questions go out together.
    """

    @abstractmethod
    def fit_many(self, wanted: Sequence[Wanted]) -> tuple[PathPoint, ...]:
        """Make fits, each to its tolerance or until no more may be sent."""

    def fit(
        self, penalty: Penalty, start: Array | None = None, tol: float = 0.01, reserve: int = 0
    ) -> PathPoint:
        """Make one fit to all rows."""
        return self.fit_many([Wanted(penalty, tol, "", start, reserve)])[0]
