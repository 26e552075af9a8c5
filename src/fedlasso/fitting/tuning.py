"""Tuning: rows x candidates x rule. Held-out errors of candidates, and the choice by them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fedlasso.errors import CannotFit
from fedlasso.fitting.candidates import LASSO, Candidate
from fedlasso.fitting.evidence import Folded, PathPoint, SplitEvidence, Wanted
from fedlasso.fitting.paths import Errors, grid_and_decades, has_risen, step_down, walk_down
from fedlasso.fitting.validation import Curve, Rule, Validation
from fedlasso.numerics import Array, Penalty
from fedlasso.numerics.moment_path import Walk
from fedlasso.numerics.moments import Moments, residuals

# Fractions of the Lasso's shrinkage that a relaxed fit keeps; one is the Lasso itself. Without any,
# a refit of nearly dependent columns predicts badly now and then.
BLENDS = (1.0, 0.75, 0.5, 0.25)
# By moments: penalties, the last one as a fraction of the first, where rows outnumber columns and
# where they do not, and the smallest that is tried while the best is the last.
PENALTIES = 100
RATIO_MANY_ROWS = 1e-4
RATIO_FEW_ROWS = 1e-2
SMALLEST_BY_MOMENTS = 1e-6
# By gradients: the end of the grid, and the smallest.
RATIO = 0.003
SMALLEST_RATIO = 1e-4
# A candidate is taken instead of the plain Lasso when it is better by this many standard errors of
# the difference, fold by fold.
SURE = 2.0
# Errors beyond this many times the response's squares are all alike.
HOPELESS = 1e6


def average(each: Array, rows: Array, deals: int = 1) -> tuple[Array, Array]:
    """Return the mean error over all rows and its standard error, by the mean on every fold.

    Several assignments of the same rows know no more than one of how rows differ.
    """
    fraction = rows / rows.sum()
    error = np.tensordot(fraction, each, axes=1)
    spread = np.tensordot(fraction, (each - error) ** 2, axes=1)
    return error, np.sqrt(spread / max(len(rows) / deals - 1, 1))


@dataclass(frozen=True, eq=False)
class CandidateErrors:
    """Errors of one candidate on held-out rows, at every fraction of shrinkage and penalty.

    Attributes
    ----------
    candidate : what was fitted
    penalties : array (L,)
    each : array (splits, fractions, L): mean error on the rows that every split holds out
    rows : array (splits,): those rows
    deals : how many cross-validations these are
    fits : for each penalty, the fits on all splits, where they were made one by one
    single_se : standard errors where there is one split, by the spread over its rows
    """

    candidate: Candidate
    penalties: Array
    each: Array
    rows: Array
    deals: int = 1
    fits: tuple[tuple[PathPoint, ...], ...] = ()
    single_se: Array | None = None

    def average(self, each: Array) -> tuple[Array, Array]:
        """Return the mean over all rows and its standard error, by the mean on every fold."""
        return average(each, self.rows, self.deals)

    @cached_property
    def error(self) -> Array:
        """Mean errors, an array (fractions, L)."""
        return self.average(self.each)[0]

    @cached_property
    def se(self) -> Array:
        """The standard errors of those."""
        return self.average(self.each)[1]

    @cached_property
    def validation(self) -> Validation:
        """Errors along the penalties without relaxing, where the fits were made one by one."""
        active = np.array([np.mean([fit.active for fit in own]) for own in self.fits])
        se = self.se[0] if self.single_se is None else self.single_se
        return Validation(self.error[0], se, active)

    @property
    def limit(self) -> float:
        """The smallest unrelaxed error and one standard error."""
        best = int(np.argmin(self.error[0]))
        return float(self.error[0, best] + self.se[0, best])

    @property
    def sparsest(self) -> int:
        """Place of the largest penalty whose unrelaxed error is within one standard error."""
        return int(np.flatnonzero(self.error[0] <= self.limit)[0])

    def largest_within(self, fraction: float) -> int:
        """Place of the largest penalty whose unrelaxed error exceeds the smallest by a fraction."""
        error = self.error[0]
        return int(np.flatnonzero(error <= error.min() * (1 + fraction))[0])

    @property
    def allowed(self) -> Array:
        """Errors, infinite for relaxed fits at larger penalties than the sparsest within one SE.

        The few columns of such a fit are too often not those of other rows.
        """
        allowed = self.error.copy()
        allowed[1:, : self.sparsest] = np.inf
        return allowed

    @property
    def best(self) -> tuple[int, int]:
        """Fraction and penalty with the smallest error; a tie goes to the larger penalty."""
        allowed = self.allowed
        place, at = np.unravel_index(int(np.argmin(allowed)), allowed.shape)
        return int(place), int(at)


def judge_by_moments(
    folded: Folded, candidate: Candidate, fractions: int = len(BLENDS)
) -> CandidateErrors:
    """Cross-validate over penalties that reach beyond the one with the smallest error."""
    whole = folded.normal(folded.whole)
    largest = candidate.adapt(whole).largest_penalty
    ratio = RATIO_MANY_ROWS if whole.rows > whole.p else RATIO_FEW_ROWS
    walks = [(fold, Walk(candidate.adapt(normal))) for fold, normal in folded.training()]
    judged = CandidateErrors(
        candidate,
        np.empty(0),
        np.empty((len(walks), fractions, 0)),
        folded.rows,
        folded.deals,
    )

    def visit(penalties: Array) -> Array:
        nonlocal judged
        errors = [_follow(fold, walk, penalties)[:fractions] for fold, walk in walks]
        judged = replace(
            judged,
            penalties=np.append(judged.penalties, penalties),
            each=np.concatenate([judged.each, errors], axis=2),
        )
        return np.asarray(judged.allowed.min(axis=0))

    blocks = grid_and_decades(largest, PENALTIES, ratio, SMALLEST_BY_MOMENTS)
    walk_down(blocks, visit, lambda errors: judged.best[1] < len(errors) - 1)
    return judged


def _follow(fold: Moments, walk: Walk, penalties: Array) -> Array:
    """Mean squared errors on a fold along a path, an array (fractions of shrinkage, L)."""
    path = walk.follow(penalties)
    lasso = residuals(*walk.normal.original(path.lasso))
    refit = residuals(*walk.normal.original(path.refits))
    both = fold.between(lasso, lasso)
    mixed = fold.between(lasso, refit)
    alone = fold.between(refit, refit)
    sums = [g**2 * both + 2 * g * (1 - g) * mixed + (1 - g) ** 2 * alone for g in BLENDS]
    return np.clip(sums, 0.0, HOPELESS * fold.products[-1, -1]) / fold.rows


Fits = Iterable[tuple[float, tuple[PathPoint, ...] | None]]


def judge_by_gradients(
    evidence: SplitEvidence,
    candidate: Candidate,
    fits: Fits,
    ended: Callable[[Errors], bool] = has_risen,
) -> tuple[CandidateErrors, bool]:
    """Judge fits on all splits, penalty by penalty, until the error on held-out rows ends it.

    The second result is whether uploads ended first: there are no fits at a penalty then.
    """
    penalties: list[float] = []
    points: list[tuple[PathPoint, ...]] = []
    each: list[list[float]] = []
    se: list[float] = []

    def visit(fit: tuple[float, tuple[PathPoint, ...] | None]) -> list[float] | None:
        lam, own = fit
        if own is None:
            return None
        held_out = evidence.hold_out(own)
        penalties.append(lam)
        points.append(own)
        each.append([float(one.error[0]) for one in held_out])
        se.append(float(held_out[0].se[0]))
        return [float(average(np.array(one), evidence.rows)[0]) for one in each]

    cut = walk_down(fits, visit, ended)
    judged = CandidateErrors(
        candidate,
        np.array(penalties),
        np.array(each).reshape(len(each), len(evidence.splits)).T[:, None, :],
        evidence.rows,
        fits=tuple(points),
        single_se=np.array(se) if len(evidence.splits) == 1 else None,
    )
    return judged, cut


def fit_down(
    evidence: SplitEvidence, penalties: Iterable[float], forms: Sequence[Penalty], reserve: int
) -> Fits:
    """Fit all splits at decreasing penalties of their forms, each from its fit before."""
    tol = evidence.path_tol
    starts: list[Array | None] = [None] * len(forms)
    for lam in penalties:
        wanted = [
            Wanted(form.at(lam), tol, rows, start, reserve)
            for rows, form, start in zip(evidence.splits, forms, starts, strict=True)
        ]
        points = evidence.fit_many(wanted)
        yield lam, points if all(point.arrived(tol) for point in points) else None
        starts = [point.coefficients for point in points]


def judge_lasso(evidence: SplitEvidence, reserve: float = 0.0) -> tuple[CandidateErrors, bool]:
    """Walk down the penalties of the Lasso, or of whatever the form of the penalty makes of it."""
    parts = evidence.parts.values()
    largest = max(part.largest_penalty for part in parts)
    step = RATIO ** (1 / (evidence.path_penalties - 1))
    penalties = step_down(largest, step, SMALLEST_RATIO)
    forms = [part.form for part in parts]
    fits = fit_down(evidence, penalties, forms, int(reserve * evidence.each))
    return judge_by_gradients(evidence, LASSO, fits)


def curve_of(lasso: CandidateErrors, at: int, cut: bool) -> Curve:
    """Return the Lasso's errors along its penalties, and its fits on the first split."""
    coefficients = np.column_stack([fits[0].coefficients for fits in lasso.fits])
    return Curve(lasso.penalties, coefficients, lasso.validation, at, cut)


def search_penalty_curve(evidence: SplitEvidence, rule: Rule) -> Curve:
    """Choose the strength of a penalty by the error on held-out rows of one or more splits."""
    lasso, cut = judge_lasso(evidence)
    if not lasso.penalties.size:
        raise CannotFit(
            "no column pays a penalty, so none can be chosen; give one, which changes nothing"
        )
    return curve_of(lasso, lasso.validation.select(rule), cut)


def is_surely_better(each: Array, plain: Array, judged: CandidateErrors) -> bool:
    """Return whether errors beat the plain Lasso's by more than the luck of the folds, paired."""
    error, se = judged.average(each - plain)
    return bool(error < -SURE * se)


def choose_by_gradients(
    judged: list[CandidateErrors], plain: tuple[CandidateErrors, int], rule: Rule
) -> tuple[CandidateErrors, int]:
    """Return the sparsest within one standard error, or the best if it surely beats the Lasso."""
    places = [(one, at) for one in judged for at in range(one.penalties.size)]
    errors = [float(one.validation.error[at]) for one, at in places]
    best = int(np.argmin(errors))
    one, at = places[best]
    if rule == "1se":
        limit = errors[best] + float(one.validation.se[at])
        near = [i for i, error in enumerate(errors) if error <= limit]

        def sparse(i: int) -> tuple[float, float]:
            other, place = places[i]
            return float(other.validation.active[place]), errors[i]

        return places[min(near, key=sparse)]
    lasso, place = plain
    better = is_surely_better(one.each[:, 0, at], lasso.each[:, 0, place], lasso)
    return (one, at) if better else plain
