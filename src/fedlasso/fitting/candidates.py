"""Models to compare on a path: the Lasso, the elastic net, the adaptive and relaxed Lasso."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fedlasso.fitting.evidence.moment_evidence import solve_at
from fedlasso.fitting.validation import ACTIVE
from fedlasso.numerics import L1, Array, ElasticNet, Penalty
from fedlasso.numerics.moments import Normal

# Penalty of a least-squares refit, as a fraction of the largest useful one: without any there is no
# duality gap to certify by.
RELAXED = 1e-4


@dataclass(frozen=True)
class Candidate:
    """A related model of the Lasso: penalty weights from the training rows, and a ridge.

    A new one is one function or value in this file.
    """

    name: str
    weights: Callable[[Normal], Array | None] = lambda normal: None
    ridge: float = 0.0

    def adapt(self, normal: Normal) -> Normal:
        """Return normal equations in which this model is a Lasso."""
        weights = self.weights(normal)
        steady = normal.steadied(self.ridge) if self.ridge else normal
        return steady if weights is None else steady.weighted(weights)

    def penalty(self, lam: float, weights: Array | None) -> Penalty:
        """Return the penalty at one strength."""
        return ElasticNet.with_ridge(lam, self.ridge, weights) if self.ridge else L1(lam, weights)


LASSO = Candidate("Lasso")
ELASTIC = Candidate("elastic net", ridge=0.01)
ADAPTIVE = Candidate("adaptive Lasso")
REFITTED = Candidate("refitted adaptive Lasso")


def adaptive(lam: float) -> Candidate:
    """Return the adaptive Lasso of Zou (2006), with weights from the Lasso at one penalty."""
    return Candidate(ADAPTIVE.name, lambda normal: adaptive_weights(solve_at(normal, L1(lam))))


def adaptive_weights(b: Array, power: float = 1.0, cutoff: float = 0.0) -> Array:
    """Return 1/|b_k|^power, infinite where b_k is not active."""
    weights = np.full(b.shape, np.inf)
    on = np.abs(b) > cutoff
    weights[on] = np.maximum(np.abs(b[on]), np.finfo(np.float64).tiny) ** -power
    return weights


def refit_penalty(b: Array, largest: float, phi: float = RELAXED) -> L1:
    """Return the penalty of a least-squares refit on the support of b."""
    return L1(phi * largest, np.where(np.abs(b) > ACTIVE, 1.0, np.inf))
