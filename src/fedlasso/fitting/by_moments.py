"""Fits from second moments: sites answer once, and the server does all the choosing and fitting."""

from dataclasses import dataclass, replace

import numpy as np

from fedlasso.federation import Costs, Federation, metered
from fedlasso.fitting.families import ADAPTIVE, BLENDS, ELASTIC, LASSO, Folded, Judged, judge
from fedlasso.fitting.goals import Goal, GoalFit
from fedlasso.fitting.session import PathPoint
from fedlasso.fitting.tuning import Curve, Rule, Validation, fix_penalty
from fedlasso.numerics import L1, Array, one_thread
from fedlasso.numerics.moment_path import solve_path
from fedlasso.numerics.moments import Moments, Normal, residuals, unpack
from fedlasso.procedures import Problem
from fedlasso.sites import FoldMoments, deal

# What a refit without shrinkage still pays, as a share of the largest useful penalty: without any
# there is no duality gap to certify by.
REFIT = 1e-8
# Penalties on the way to a single one: nearly dependent columns need a good start.
STEPS = 20


@dataclass(frozen=True, eq=False)
class Gathered:
    """Moments of all folds as the sites added them up, the problem, and what asking cost."""

    folded: Folded
    problem: Problem
    costs: Costs


def gather(
    view: Federation, folds: int, deals: int = 1, seed: int = 0, *, centre: bool, scale: bool
) -> Gathered:
    """Ask the sites for the second moments of every fold, in one or more deals of their rows."""
    ledger = metered(view)
    before = ledger.costs
    problem = fix_penalty(ledger, 0.0)
    found = []
    for number in range(deals):
        total = ledger.total(FoldMoments(deal(folds, deals * seed + number)))
        parts = [Moments(unpack(packed, problem.p + 2)) for packed in total.moments]
        # With few rows a fold may be empty.
        found.append(tuple(part for part in parts if part.rows))
    folded = Folded(tuple(found), centre, scale)
    return Gathered(folded, problem, ledger.costs - before)


@dataclass(frozen=True, eq=False)
class Choice:
    """A model of one family: which share of the shrinkage it keeps, at which penalty."""

    judged: Judged
    share: int
    at: int

    @property
    def error(self) -> float:
        """Its cross-validated error."""
        return float(self.judged.error[self.share, self.at])

    @property
    def se(self) -> float:
        """The standard error of that."""
        return float(self.judged.se[self.share, self.at])

    @property
    def name(self) -> str:
        """Its family, and whether it is relaxed."""
        family = self.judged.family.name
        return family if BLENDS[self.share] == 1.0 else f"relaxed {family}"


@dataclass(frozen=True, eq=False)
class Chosen:
    """What cross-validation made of the families.

    Attributes
    ----------
    lasso : the Lasso's errors, relaxed or not
    candidates : the best of every family
    place : which of them was chosen
    """

    lasso: Judged
    candidates: tuple[Choice, ...]
    place: int

    @property
    def choice(self) -> Choice:
        """The chosen candidate."""
        return self.candidates[self.place]


def choose(folded: Folded, goal: Goal, rule: Rule) -> Chosen:
    """Cross-validate the families that serve a goal, and choose by a rule."""
    whole = folded.whole
    families = [LASSO]
    if goal == "prediction" and rule == "min":
        families.append(ELASTIC)
        if whole.rows > len(whole.products) - 2:
            families.append(ADAPTIVE)
    shares = 1 if goal == "objective" else len(BLENDS)
    judged = [judge(folded, family, shares) for family in families]
    if rule == "1se":
        candidates = [_one_standard_error(judged[0])]
    else:
        candidates = [Choice(family, *family.best) for family in judged]
    place = min(range(len(candidates)), key=lambda i: candidates[i].error)
    return Chosen(judged[0], tuple(candidates), place)


@one_thread()
def fit_by_moments(gathered: Gathered, goal: Goal = "prediction", rule: Rule = "min") -> GoalFit:
    """Choose among families by cross-validation, and fit the choice to all rows.

    Prediction: the Lasso, an elastic net and, with more rows than columns, the adaptive Lasso, each
    also relaxed. Selection: the Lasso, relaxed or not. Objective: the Lasso.

    Parameters
    ----------
    gathered : moments of the folds
    goal : what the model is for
    rule : the smallest error, or the largest penalty of the Lasso whose error is within one
        standard error of its smallest; relaxed where that predicts better with the same columns
    """
    folded = gathered.folded
    whole = folded.whole.normal(centre=False, scale=False)
    chosen = choose(folded, goal, rule)
    lasso = chosen.lasso
    choice = chosen.choice
    points = tuple(fit_choice(whole, each) for each in chosen.candidates)
    point = points[chosen.place]
    models = solve_path(whole, lasso.penalties).lasso
    how = {"min": "the smallest error", "1se": "the sparsest Lasso within one standard error"}
    deals = f", dealt {len(folded.deals)} times" if len(folded.deals) > 1 else ""
    return GoalFit(
        goal=goal,
        problem=replace(gathered.problem, penalty=point.penalty),
        method=choice.name,
        rounds=len(folded.deals),
        points=points,
        chosen=chosen.place,
        validation=Validation(
            np.array([each.error for each in chosen.candidates]),
            np.array([each.se for each in chosen.candidates]),
            np.array([float(each.active) for each in points]),
        ),
        curve=Curve(
            lasso.penalties,
            models,
            Validation(lasso.error[0], lasso.se[0], (models != 0).sum(axis=0).astype(np.float64)),
            choice.at if choice.judged is lasso else lasso.best[1],
        ),
        costs=gathered.costs,
        why=(
            f"goal {goal!r}: {choice.name} with {point.active} active coefficients, "
            f"{how[rule]} on {len(folded.deals[0])} folds{deals}, fitted to all rows"
        ),
    )


@one_thread()
def nested_error(folded: Folded, goal: Goal, rule: Rule) -> Validation:
    """Return the error of the whole way of choosing, on rows that took no part in it.

    Every fold of the first deal is predicted by a model that was chosen and fitted on the others.
    """
    errors = []
    active = []
    deal = folded.deals[0]
    rows = np.array([fold.rows for fold in deal], dtype=np.float64)
    for fold in deal:
        others = tuple(part for part in deal if part is not fold)
        inner = replace(folded, deals=(others,))
        normal = inner.normal(inner.whole)
        b = fit_choice(normal, choose(inner, goal, rule).choice).coefficients
        B, intercept = normal.original(b[:, None])
        V = residuals(B, intercept)
        errors.append(max(float(fold.between(V, V)[0]), 0.0) / fold.rows)
        active.append(float(np.count_nonzero(b)))
    share = rows / rows.sum()
    error = float(share @ errors)
    spread = float(share @ (np.array(errors) - error) ** 2)
    se = np.sqrt(spread / (len(deal) - 1))
    return Validation(np.array([error]), np.array([se]), np.array([share @ active]))


def _one_standard_error(lasso: Judged) -> Choice:
    """The largest penalty within one standard error, relaxed where that predicts better."""
    error = lasso.error[0]
    best = int(np.argmin(error))
    at = int(np.flatnonzero(error <= error[best] + lasso.se[0, best])[0])
    return Choice(lasso, int(np.argmin(lasso.error[:, at])), at)


def fit_choice(whole: Normal, choice: Choice) -> PathPoint:
    """Fit a choice to all rows, exactly."""
    judged = choice.judged
    family = judged.family
    weights = family.weigh(whole)
    steady = whole.steadied(family.ridge) if family.ridge else whole
    lam = float(judged.penalties[choice.at])
    b = solve_at(steady, L1(lam, weights))
    share = BLENDS[choice.share]
    if share < 1.0:
        own = np.ones(whole.p) if weights is None else weights
        weights = np.where(b != 0, own, np.inf)
        lam = max(share * lam, REFIT * whole.weighted(weights).largest_penalty)
        b = solve_at(steady, L1(lam, weights))
    penalty = family.penalty(lam, weights)
    (certificate,) = whole.certificates(b[:, None], [penalty])
    residual = max(whole.variance - 2 * float(b @ whole.score) + float(b @ whole.gram @ b), 0.0)
    return PathPoint(penalty, b, whole.rows * residual, certificate)


def solve_at(normal: Normal, penalty: L1) -> Array:
    """Return the Lasso at one penalty, by way of larger ones."""
    weights = np.ones(normal.p) if penalty.weights is None else penalty.weights
    own = normal.weighted(weights)
    lam = max(penalty.lam, REFIT * own.largest_penalty)
    grid = np.geomspace(max(own.largest_penalty, lam), lam, STEPS) if lam > 0 else np.zeros(1)
    b = solve_path(own, grid).lasso[:, -1]
    return np.divide(b, weights, out=np.zeros(b.size), where=b != 0)
