"""Fits by goal: say what the model is for and what may be sent, not how to get there.

Both validation samples are used as the paper uses them: the first chooses penalties, the second
chooses among the candidates that are left.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Ledger
from fedlasso.fitting.session import Explorer, PathPoint
from fedlasso.fitting.tuning import Rule, Validation, validate

Goal = Literal["prediction", "selection", "objective"]
GOALS: tuple[Goal, ...] = ("prediction", "selection", "objective")
# Certified relative gaps: of the Lasso fits on the way, and of refits on a support.
TOL, REFIT_TOL = 0.01, 0.005
# The adaptive path by goal: power of the weights, penalties, and the last as a share of the first.
# Squared weights give sparser paths: better F1 in most scenarios, but no better prediction.
ADAPTIVE = {"prediction": (1.0, 14, 0.01), "selection": (2.0, 20, 0.003)}
# A path ends when this many fits in a row have not lowered the validation error. Sparse fits of a
# weak signal are noisy, so paths that start with a few large coefficients are given longer.
PATIENCE, PATIENCE_SPARSE = 4, 8


@dataclass(frozen=True, eq=False)
class Pursuit:
    """What was found on the way to a goal: certified fits, their validation, the choice, and why.

    Attributes
    ----------
    explorer : what the server knows now
    points : the candidates
    validation : their pooled errors on the second validation samples
    chosen : index of the chosen candidate
    why : one line for the user
    lasso : the Lasso path on the way, with errors on the first validation samples
    """

    explorer: Explorer
    points: tuple[PathPoint, ...]
    validation: Validation
    chosen: int
    why: str
    lasso: tuple[tuple[PathPoint, float], ...]


def pursue(ledger: Ledger, goal: Goal, uploads: int, rule: Rule = "min") -> Pursuit:
    """A model for prediction or for selection, within `uploads` vectors from every site.

    Prediction: a Lasso path, an adaptive path weighted by its best fit, and least-squares refits of
    the adaptive supports; the first validation samples choose within each, the second among them.

    Selection: the refits alone, as candidates for `rule`. A refit has no shrinkage, so a predictor
    too many costs validation error at once and the smallest error is also a sparse choice.
    """
    if goal not in ("prediction", "selection"):
        raise FedLassoError(f"no goal is called {goal!r}; use one of {', '.join(GOALS)}")
    # One upload is left to the scalars: sizes, ||y||^2, three for every validated fit.
    explorer = Explorer(ledger, max(uploads - 1, 1))
    lasso = _validated(
        explorer, explorer.walk(explorer.grid(_count(uploads, 20)), tol=TOL, reserve=uploads // 2)
    )
    adaptive: list[tuple[PathPoint, float]] = []
    filled = [(point, error) for point, error in lasso if point.active]
    if filled:
        power, count, ratio = ADAPTIVE[goal]
        weights = explorer.adaptive_weights(_best(filled).coefficients, power)
        grid = explorer.adaptive_grid(weights, _count(uploads, count), ratio)
        walk = explorer.walk(grid, weights, tol=TOL, reserve=uploads // 5)
        adaptive = _validated(explorer, walk, PATIENCE_SPARSE)
    supports = _refits(explorer, [point for point, _ in adaptive])
    refits = _validated(explorer, supports, PATIENCE_SPARSE)
    # The path starts with the empty model, certified by the first gradient: it is never empty.
    families = {"Lasso": lasso, "adaptive Lasso": adaptive, "refitted adaptive Lasso": refits}
    if goal == "selection" and refits:
        points = tuple(point for point, _ in refits)
        names = ["refitted adaptive Lasso"] * len(points)
    else:
        points = tuple(_best(family) for family in families.values() if family)
        names = [name for name, family in families.items() if family]
    models = np.column_stack([point.coefficients for point in points])
    validation = validate(ledger, models)
    chosen = validation.select(rule)
    error = {"min": "the smallest validation error", "1se": "one standard error's sparsest"}[rule]
    why = (
        f"goal {goal!r}: {names[chosen]} with {points[chosen].active} active coefficients, "
        f"{error} of {len(points)} candidates, after {explorer.spent} of {uploads} uploads"
    )
    return Pursuit(explorer, points, validation, chosen, why, tuple(lasso))


def _count(uploads: int, most: int) -> int:
    """Penalties on a path: fewer when few uploads must do for all of them."""
    return max(3, min(most, uploads * most // 100))


def _validated(
    explorer: Explorer, fits: Iterable[PathPoint], patience: int = PATIENCE
) -> list[tuple[PathPoint, float]]:
    """Fits with their error on the first validation samples, until that has long been rising."""
    found: list[tuple[PathPoint, float]] = []
    for point in fits:
        validation = validate(explorer.ledger, point.coefficients[:, None], purpose="penalty")
        found.append((point, float(validation.mse[0])))
        if min(error for _, error in found) < min(error for _, error in found[-patience:]):
            break
    return found


def _refits(explorer: Explorer, points: Iterable[PathPoint]) -> Iterable[PathPoint]:
    """Least squares on every support once, while uploads last."""
    seen: set[bytes] = set()
    for point in points:
        support = (point.coefficients != 0).tobytes()
        if point.active and support not in seen:
            seen.add(support)
            refit = explorer.relax(point.coefficients, tol=REFIT_TOL)
            if refit.certificate.relative_gap <= REFIT_TOL:
                yield refit


def _best(family: list[tuple[PathPoint, float]]) -> PathPoint:
    return min(family, key=lambda found: found[1])[0]
