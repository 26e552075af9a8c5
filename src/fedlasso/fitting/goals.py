"""Fits by goal: say what the model is for and what may be sent, not how to get there.

The first validation samples choose the penalty of a Lasso path. Second moments of the columns that
the path and its gradients point to, over all rows, then tell how likely each is to have an effect.
Where uploads do not suffice for that, the second validation samples choose among fits on the way.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Costs, Federation, metered
from fedlasso.fitting.by_chances import Candidate, ask_moments, predict_best, select_columns
from fedlasso.fitting.by_procedure import Status
from fedlasso.fitting.session import PathPoint, Session
from fedlasso.fitting.tuning import Curve, Rule, Validation, validate
from fedlasso.numerics import L1, Array, Certificate
from fedlasso.procedures import Problem

Goal = Literal["prediction", "selection", "objective", "discoveries"]
# What each goal is for, in the words of the command line.
GOALS: dict[Goal, str] = {
    "prediction": "predict new rows well, by the Lasso or a relative that predicts better",
    "selection": "few columns, and about the same ones on other rows",
    "objective": "the pooled Lasso itself, at the penalty that predicts held-out rows best",
    "discoveries": "columns with a promise: at most a share --fdr of them is false on average",
}
# Certified relative gaps: of the Lasso fits on the way, and of refits on a support.
TOL = 0.01
REFIT_TOL = 0.005
# The adaptive path by goal: power of the weights, penalties, and the last as a share of the first.
# Squared weights give sparser paths: better F1 in most scenarios, but no better prediction.
ADAPTIVE = {"prediction": (1.0, 14, 0.01), "selection": (2.0, 20, 0.003)}
# What the columns and coefficients are taken for, where chances of effects are known.
EXPECTED_BEST = {
    "prediction": "the smallest expected error",
    "selection": "the largest expected F1",
}
ALL_ROWS = ", fitted to all rows"
# A path ends when this many fits in a row have not lowered the validation error. Sparse fits of a
# weak signal are noisy, so paths that start with a few large coefficients are given longer.
PATIENCE = 4
# Penalties below the grid are tried while the best is the last, down to this share of the first.
SMALLEST_RATIO = 1e-4
PATIENCE_SPARSE = 8


@dataclass(frozen=True, eq=False)
class GoalFit:
    """What a goal chose among certified fits of several families.

    Attributes
    ----------
    goal : what the model is for
    problem : the pooled problem of the training rows, at the chosen candidate's own penalty
    method : how the chosen candidate was fitted
    rounds : vectors of p numbers that every site has sent
    points : the candidates, fitted to all rows where their moments are known
    chosen : index of the chosen candidate
    validation : pooled errors on the second validation samples of the same candidates, fitted to
        the training rows alone
    curve : held-out error along the Lasso path
    costs : what passed between server and sites
    why : what was chosen and why, in one line

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, Site, fit_for
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((150, 5))
    >>> y = 2 * X[:, 0] + rng.standard_normal(150)
    >>> held_out = {"penalty": (X[100:125], y[100:125]), "candidate": (X[125:], y[125:])}
    >>> site = Site("a", X[:100], y[:100], validation=held_out)
    >>> fit_for(InProcess([site]), "selection").method
    'least squares on the likeliest columns'
    """

    goal: str
    problem: Problem
    method: str
    rounds: int
    points: tuple[PathPoint, ...]
    chosen: int
    validation: Validation
    curve: Curve
    costs: Costs
    why: str
    status: Status = Status.CHOSEN

    @property
    def coefficients(self) -> Array:
        """The chosen model."""
        return self.points[self.chosen].coefficients

    @property
    def certificate(self) -> Certificate:
        """Distance to the best possible objective at the chosen candidate's penalty."""
        return self.points[self.chosen].certificate

    @property
    def penalty(self) -> L1:
        """The penalty of the chosen candidate, with its weights."""
        return self.points[self.chosen].penalty

    @property
    def setting(self) -> float:
        """Strength of the chosen candidate's penalty."""
        return self.penalty.lam


def fit_for(
    federation: Federation,
    goal: Goal = "prediction",
    *,
    uploads: int = 100,
    rule: Rule = "min",
    exact: bool = True,
) -> GoalFit:
    """Fit a model for prediction or for selection, within `uploads` vectors from every site.

    A Lasso path comes first. Then the sites tell second moments of the columns that may matter, as
    many as uploads allow, over training and validation rows, and from these follows how likely each
    column is to have an effect (`numerics.spike_slab`). Selection takes the columns with the
    largest expected F1, by least squares; prediction takes the expected effects. Either is fitted
    to all rows; its validation error is that of the same fit to the training rows.

    With few uploads, with rule ``"1se"``, or where a site does not tell moments, an adaptive path
    follows and least-squares refits of its supports. For prediction the second validation samples
    choose among the best of each family, for selection among the refits.

    Parameters
    ----------
    federation : the sites, each with both validation samples
    goal : ``"prediction"`` or ``"selection"``; the pooled Lasso at a penalty is
        ``fit(federation, "Secant", penalty=...)``
    uploads : how many vectors of p numbers each site may send; never more are sent
    rule : how the candidate is chosen on the second validation samples
    exact : take standard errors from fourth powers of errors, as the paper does, and weigh sites
        by how well a model fits there; sites with a policy do neither

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, fit_for
    >>> from fedlasso.study import SCENARIOS
    >>> draw = SCENARIOS["baseline"].draw(np.random.default_rng(0))
    >>> result = fit_for(InProcess(draw.sites()), "prediction", uploads=20)
    >>> result.rounds <= 20
    True
    """
    if goal not in ("prediction", "selection"):
        raise FedLassoError(
            f"no fit is made for {goal!r}; use 'prediction' or 'selection', or fit(..., 'Secant')"
        )
    ledger = metered(federation)
    before = ledger.costs
    # One upload is left to the scalars: sizes, ||y||^2, three for every validated fit.
    session = Session(ledger, max(uploads - 1, 1))
    half = uploads // 2
    grid = session.grid(_count(uploads, 20))
    judge = partial(_validated, session, exact)
    lasso = judge(session.walk(grid, tol=TOL, reserve=half))
    lasso += _go_on(session, judge, lasso, grid, half)
    # What stopped the path: its own error, or the end of the uploads?
    cut = session.cut
    # The path starts with the empty model, certified by the first gradient: it is never empty.
    best = _best(lasso)
    subset = ask_moments(session, best.coefficients, weigh=exact) if rule == "min" else None
    if subset is None:
        candidates = _walk_on(session, judge, lasso, goal, uploads)
    elif goal == "selection":
        candidates = select_columns(subset, best.coefficients)
    else:
        candidates = predict_best(subset, best)
    models = np.column_stack([candidate.trained.coefficients for candidate in candidates])
    validation = validate(ledger, models, exact=exact)
    chosen = validation.select(rule)
    choice = candidates[chosen]
    how = {"min": "the smallest validation error", "1se": "one standard error's sparsest"}[rule]
    how += f" of {len(candidates)} candidates"
    if subset is not None and len(candidates) == 1:
        how = EXPECTED_BEST[goal]
    why = (
        f"goal {goal!r}: {choice.name} with {choice.final.active} active coefficients, {how}, "
        f"after {session.spent} of {uploads} uploads"
    )
    if choice.final is not choice.trained:
        why += ALL_ROWS
    return GoalFit(
        goal=goal,
        problem=replace(session.problem, penalty=choice.final.penalty),
        method=choice.name,
        rounds=session.spent,
        points=tuple(candidate.final for candidate in candidates),
        chosen=chosen,
        validation=validation,
        curve=_curve(lasso, cut),
        costs=ledger.costs - before,
        why=why,
        status=Status.CUT if cut else Status.CHOSEN,
    )


def _walk_on(
    session: Session,
    judge: Callable[..., list[tuple[PathPoint, float]]],
    lasso: list[tuple[PathPoint, float]],
    goal: Goal,
    uploads: int,
) -> list[Candidate]:
    """Walk an adaptive path and refit its supports, where moments are out of reach."""
    adaptive: list[tuple[PathPoint, float]] = []
    filled = [(point, error) for point, error in lasso if point.active]
    if filled:
        power, count, ratio = ADAPTIVE[goal]
        weights = session.adaptive_weights(_best(filled).coefficients, power)
        grid = session.grid(_count(uploads, count), ratio, weights)
        walk = session.walk(grid, tol=TOL, reserve=uploads // 5)
        adaptive = judge(walk, PATIENCE_SPARSE)
    supports = _refits(session, [point for point, _ in adaptive])
    refits = judge(supports, PATIENCE_SPARSE)
    families = {"Lasso": lasso, "adaptive Lasso": adaptive, "refitted adaptive Lasso": refits}
    if goal == "selection" and refits:
        found = [("refitted adaptive Lasso", point) for point, _ in refits]
    else:
        found = [(name, _best(family)) for name, family in families.items() if family]
    return [Candidate(name, point, point) for name, point in found]


def _go_on(
    session: Session,
    judge: Callable[[Iterable[PathPoint]], list[tuple[PathPoint, float]]],
    found: list[tuple[PathPoint, float]],
    grid: list[L1],
    reserve: int,
) -> list[tuple[PathPoint, float]]:
    """Go on below the grid, in its steps, while the last fit has the smallest error."""
    more: list[tuple[PathPoint, float]] = []
    step = grid[1].lam / grid[0].lam if grid[0].lam > 0 else 0.0
    lam = grid[-1].lam * step
    while not session.cut and lam > SMALLEST_RATIO * grid[0].lam:
        errors = [error for _, error in found + more]
        # A fit that is good at the next penalty too has the same error, and says nothing yet.
        if min(errors[:-1]) < errors[-1]:
            break
        last = (found + more)[-1][0].coefficients
        more += judge(session.walk([L1(lam)], TOL, reserve, last))
        lam *= step
    return more


def _curve(lasso: list[tuple[PathPoint, float]], cut: bool) -> Curve:
    errors = np.array([error for _, error in lasso])
    active = np.array([float(point.active) for point, _ in lasso])
    return Curve(
        np.array([point.lam for point, _ in lasso]),
        np.column_stack([point.coefficients for point, _ in lasso]),
        Validation(errors, np.full(errors.shape, np.nan), active),
        int(errors.argmin()),
        cut=cut,
    )


def _count(uploads: int, most: int) -> int:
    """Penalties on a path: fewer when few uploads must do for all of them."""
    return max(3, min(most, uploads * most // 100))


def _validated(
    session: Session, exact: bool, fits: Iterable[PathPoint], patience: int = PATIENCE
) -> list[tuple[PathPoint, float]]:
    """Fits with their error on the first validation samples, until that has long been rising."""
    found: list[tuple[PathPoint, float]] = []
    for point in fits:
        model = point.coefficients[:, None]
        validation = validate(session.ledger, model, purpose="penalty", exact=exact)
        found.append((point, float(validation.error[0])))
        if min(error for _, error in found) < min(error for _, error in found[-patience:]):
            break
    return found


def _refits(session: Session, points: Iterable[PathPoint]) -> Iterable[PathPoint]:
    """Least squares on every support once, while uploads last."""
    seen: set[bytes] = set()
    for point in points:
        support = (point.coefficients != 0).tobytes()
        if point.active and support not in seen:
            seen.add(support)
            refit = session.relax(point.coefficients, tol=REFIT_TOL)
            if refit.certificate.relative_gap <= REFIT_TOL:
                yield refit


def _best(family: list[tuple[PathPoint, float]]) -> PathPoint:
    return min(family, key=lambda found: found[1])[0]
