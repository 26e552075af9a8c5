"""Choosing a family, its penalty and its columns by cross-validation, from moments of folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedlasso.fitting.families import (
    BLENDS,
    ELASTIC,
    LASSO,
    SURE,
    Folded,
    Judged,
    adaptive,
    judge,
    solve_at,
    training,
)
from fedlasso.fitting.goals import Goal
from fedlasso.fitting.tuning import Rule
from fedlasso.numerics import L1, Array
from fedlasso.numerics.moment_path import solve_path
from fedlasso.numerics.moments import Moments, Normal, residuals
from fedlasso.numerics.spike_slab import weigh_columns

# The penalty that selects may cost so many standard errors, as normal errors have them: those of
# the folds differ from sample to sample, and the number of columns with them.
SPARE = 2.5
# Nearly dependent columns go on changing where the fit to the rows does not. A path is at its end,
# as paths of glmnet are, where one penalty more adds less than this share to the variance that is
# explained, or almost all of that is, but not before so many penalties. Beyond it only a large gain
# counts, an error of at most this share: rows that are a little unlike those seen are predicted
# badly there, and no fold tells.
GAIN = 1e-5
ALMOST_ALL = 0.999
FIRST = 5
BEYOND = 0.25
# Pairs of halves that the folds are cut into, at random.
PAIRS = 25
# Share of the fits to halves that must use a column for it to be selected.
VOTES = 0.25
# The likeliest columns are selected where there are so many of them, as a share of those that the
# votes name, or fewer: among hundreds of columns, votes name many that have no effect.
FEWER = 0.75
LIKELIEST = "the columns with the largest expected F1"


@dataclass(frozen=True, eq=False)
class Choice:
    """A model of one family at one penalty.

    Attributes
    ----------
    judged : the family and its penalties
    share : place of the share of shrinkage that a fit on the support keeps
    at : place of the penalty
    each : array (folds,) of mean squared errors
    support : columns that may be used, where some were named; else the path's own
    named_by : what has named them, in words
    """

    judged: Judged
    share: int
    at: int
    each: Array
    support: NDArray[np.bool_] | None = None
    named_by: str = ""

    @classmethod
    def on_path(cls, judged: Judged, share: int, at: int) -> Choice:
        """Return the model that the path itself has at a place."""
        return cls(judged, share, at, judged.each[:, share, at])

    @property
    def error(self) -> float:
        """Its mean squared error."""
        return float(self.judged.average(self.each)[0])

    @property
    def se(self) -> float:
        """The standard error of that."""
        return float(self.judged.average(self.each)[1])

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
    shares = 1 if goal == "objective" else len(BLENDS)
    predicts = goal == "prediction" and rule == "min"
    if predicts:
        folded = folded.paired()
    judged = [judge(folded, LASSO, shares)]
    lasso = judged[0]
    smallest = int(np.argmin(lasso.error[0]))
    if predicts:
        weights_at = float(lasso.penalties[smallest])
        judged += [judge(folded, family) for family in (ELASTIC, adaptive(weights_at))]
    if rule == "1se":
        sparsest = Choice.on_path(lasso, 0, lasso.sparsest)
        candidates = [sparsest if goal == "objective" else _select(folded, lasso)]
    else:
        further = Choice.on_path(lasso, 0, smallest)
        end = find_end(folded.normal(folded.whole), lasso.penalties) if predicts else smallest
        plain = Choice.on_path(lasso, 0, int(np.argmin(lasso.error[0, : end + 1])))
        best = [Choice.on_path(family, *family.best) for family in judged]
        most = plain.error * (BEYOND if smallest > end else 1.0)
        better = [each for each in (further, *best) if _surely_better(each, plain)]
        candidates = [plain, *(each for each in better if each.error <= most)]
    place = min(range(len(candidates)), key=lambda i: candidates[i].error)
    return Chosen(lasso, tuple(candidates), place)


def find_end(normal: Normal, penalties: Array) -> int:
    """Return the place of the penalty from which on smaller ones hardly fit the rows any better."""
    path = solve_path(normal, penalties).lasso
    explained = 2 * normal.score @ path - np.einsum("il,il->l", normal.gram @ path, path)
    ended = np.diff(explained) < GAIN * explained[1:]
    ended |= explained[1:] > ALMOST_ALL * normal.variance
    ended[: FIRST - 1] = False
    return int(np.argmax(ended)) + 1 if ended.any() else penalties.size - 1


def _surely_better(choice: Choice, plain: Choice) -> bool:
    """Whether a choice beats the plain Lasso by more than the luck of the folds, paired."""
    error, se = plain.judged.average(choice.each - plain.each)
    return bool(error < -SURE * se)


def _select(folded: Folded, lasso: Judged) -> Choice:
    """The columns that fits to half of the folds use, or the likeliest where those are far fewer.

    Neither may predict worse than the Lasso's smallest error and one standard error.
    """
    voted = _vote(folded, lasso)
    whole = folded.normal(folded.whole)
    used = voted.support
    if used is None:
        used = solve_at(whole, L1(float(lasso.penalties[voted.at]))) != 0
    support = weigh_columns(whole, whole.p, np.zeros(whole.p), folded.seed).support
    if not 0 < support.sum() <= FEWER * used.sum():
        return voted
    at = int(np.argmin(lasso.error[0]))
    likeliest = _judge_support(folded, lasso, at, support, LIKELIEST)
    return likeliest if likeliest.error <= lasso.limit else voted


def _vote(folded: Folded, lasso: Judged) -> Choice:
    """The columns that fits to half of the folds use at a large penalty, relaxed or not.

    Where those predict worse than the Lasso's smallest error and one standard error, the sparsest
    Lasso that does not.
    """
    sparsest = lasso.sparsest
    own = Choice.on_path(lasso, int(np.argmin(lasso.error[:, sparsest])), sparsest)
    at = lasso.largest_within(SPARE * np.sqrt(2 / lasso.rows.sum()))
    support = count_votes(folded, float(lasso.penalties[at])) >= VOTES
    if not support.any():
        return own
    votes = f"the columns that {VOTES:.0%} of the fits to half of the rows use"
    choice = _judge_support(folded, lasso, at, support, votes)
    return choice if choice.error <= lasso.limit else own


def count_votes(folded: Folded, lam: float) -> Array:
    """Return the share of the Lasso fits to halves of the folds that use each column."""
    votes = [solve_at(folded.normal(half), L1(lam)) != 0 for half in cut_halves(folded)]
    return np.asarray(np.mean(votes, axis=0))


def cut_halves(folded: Folded) -> Iterator[Moments]:
    """Cut the folds into halves at random, both of which are returned, time after time."""
    rng = np.random.default_rng(folded.seed)
    count = len(folded.folds)
    products = np.array([fold.products for fold in folded.folds])
    for _ in range(PAIRS):
        half = Moments(products[rng.permutation(count)[: count // 2]].sum(axis=0))
        yield half
        yield folded.whole.without(half)


def _judge_support(
    folded: Folded, lasso: Judged, at: int, support: NDArray[np.bool_], named_by: str
) -> Choice:
    """Cross-validate the Lasso on given columns, with the best share of its shrinkage."""
    choices = []
    for share, blend in enumerate(BLENDS):
        penalty = L1(blend * float(lasso.penalties[at]), np.where(support, 1.0, np.inf))
        each = [
            mean_error(fold, normal, solve_at(normal, penalty)) for fold, normal in training(folded)
        ]
        choices.append(Choice(lasso, share, at, np.array(each), support, named_by))
    return min(choices, key=lambda choice: choice.error)


def mean_error(rows: Moments, normal: Normal, b: Array) -> float:
    """Return the mean squared error of a model on some rows."""
    V = residuals(*normal.original(b[:, None]))
    return max(float(rows.between(V, V)[0]), 0.0) / rows.rows
