"""Errors on held-out rows, pooled over sites, and the rules that choose by them."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedlasso.errors import CannotFit, FedLassoError
from fedlasso.federation import Federation
from fedlasso.fitting.fold_models import FoldModels
from fedlasso.numerics import Array
from fedlasso.sites import EffectAt, HeldOutErrors, HeldOutSums, ValidationErrors

Rule = Literal["min", "1se"]
# What each rule chooses, as the command line describes it.
RULES: dict[Rule, str] = {
    "min": "the smallest held-out error",
    "1se": "the sparsest model whose error is within one standard error of the smallest",
}
# A coefficient is active when it is larger than this.
ACTIVE = 1e-4
TOO_FEW = "too few to hold any out; give a penalty, a larger validation fraction or more rows"


@dataclass(frozen=True, eq=False)
class Validation:
    """Pooled validation of each candidate: mean error, its standard error, active count."""

    error: Array
    se: Array
    active: Array

    def select(self, rule: Rule = "min") -> int:
        """Return the index of the chosen candidate.

        ``min``: smallest error, then candidate order. ``1se``: among candidates within one standard
        error of the smallest, fewest active, then smaller error, then candidate order.
        """
        best = int(np.argmin(self.error))
        if rule == "min":
            return best
        if rule != "1se":
            raise FedLassoError(f"no selection rule is called {rule!r}; use 'min' or '1se'")
        near = np.flatnonzero(self.error <= self.error[best] + self.se[best])
        return int(min(near, key=lambda i: (self.active[i], self.error[i], i)))

    def take(self, place: int) -> "Validation":
        """Return one candidate alone."""
        return Validation(self.error[[place]], self.se[[place]], self.active[[place]])


@dataclass(frozen=True, eq=False)
class Curve:
    """Held-out error along the penalties of the Lasso.

    Attributes
    ----------
    penalties : array (L,), on the standardised scale
    coefficients : array (p, L), on that scale: of all rows, or of the first split's training rows
    validation : pooled errors
    chosen : index of the chosen penalty
    cut : whether uploads ended before the error was seen to rise
    risen : whether the error was seen to rise, or not to change, beyond the last penalty
    fold_models : the chosen model without each fold, where folds chose by gradients
    """

    penalties: Array
    coefficients: Array
    validation: Validation
    chosen: int
    cut: bool = False
    fold_models: FoldModels | None = None
    risen: bool = False

    @property
    def lam(self) -> float:
        """The chosen penalty."""
        return float(self.penalties[self.chosen])


def validate(
    federation: Federation,
    candidates: Array,
    cutoff: float = ACTIVE,
    purpose: str = "candidate",
    *,
    exact: bool = False,
) -> Validation:
    """Return pooled errors of candidate models (columns), on the second validation samples.

    `exact` takes the standard error from sums of fourth powers, as the paper does. Sites with a
    policy do not send them, because enough of them disclose the rows.
    """
    active = (np.abs(candidates) > cutoff).sum(axis=0).astype(np.float64)
    if not exact:
        return pool_errors(federation.total(HeldOutErrors(candidates, purpose)), active)
    sums = federation.total(ValidationErrors(candidates, purpose))
    n = _held_out(sums.counts)
    error = sums.errors / n
    spread = np.maximum(sums.squares / n - error**2, 0.0)
    # One held-out row has no standard error.
    se = np.sqrt(spread * n / np.maximum(n - 1, 1) / n)
    return Validation(error, se, active)


def mean_effect(view: Federation, b: Array) -> float:
    """Return the mean of the sites' own intercepts at b, which rows of no known site have."""
    sent = view.total(EffectAt(b))
    return sent.effects / sent.weight if sent.weight else 0.0


def pool_errors(sums: HeldOutSums, active: Array) -> Validation:
    """Return errors over all held-out rows, with standard errors by the kurtosis of residuals."""
    n = _held_out(sums.counts)
    error = sums.errors / n
    kurtosis = np.maximum(sums.tail / n, 1.0)
    return Validation(error, error * np.sqrt((kurtosis - 1.0) / n), active)


def _held_out(counts: Array) -> Array:
    if not counts.all():
        raise CannotFit(f"the rows are {TOO_FEW}")
    return counts
