"""Tuning by gradients: the Lasso, the adaptive Lasso and its refits, on one or more splits."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fedlasso.errors import CannotFit, Refused
from fedlasso.fitting.budget import Budget
from fedlasso.fitting.candidates import (
    ADAPTIVE,
    LASSO,
    REFITTED,
    Candidate,
    adaptive_weights,
    refit_penalty,
)
from fedlasso.fitting.context import Context
from fedlasso.fitting.evidence import PathPoint, SecantEvidence, SplitEvidence, Wanted
from fedlasso.fitting.evidence.split_evidence import count_gradients
from fedlasso.fitting.fit_plan import FEW_ROWS
from fedlasso.fitting.paths import Errors, has_risen, step_down, walk_down
from fedlasso.fitting.tuning import SURE_BY, CandidateErrors, average_folds
from fedlasso.fitting.validation import ACTIVE, Curve, Rule
from fedlasso.numerics import L1, Array, Penalty

# The end of a grid as a fraction of its start, and the smallest penalty that is tried.
GRID_RATIO = 0.003
SMALLEST_RATIO = 1e-4
# Certified relative gap of refits on a support.
REFIT_TOL = 0.005
# With few rows, the best of dozens of candidates on a few folds often beats the Lasso by chance.
SURE_BY_FEW_ROWS = 3.0
# A path that runs out of uploads is complete if so many fits after the best one are worse.
RISEN = 2
# Sparse fits of a weak signal are noisy, so paths that start with a few large coefficients may
# continue for longer without lowering the error.
has_long_risen = partial(has_risen, patience=8)
# Penalties with the fits on all splits, or None once uploads have run out.
Fits = Iterable[tuple[float, tuple[PathPoint, ...] | None]]


def judge_by_gradients(
    evidence: SplitEvidence,
    candidate: Candidate,
    fits: Fits,
    ended: Callable[[Errors], bool] = has_risen,
) -> tuple[CandidateErrors, bool]:
    """Judge fits on all splits, penalty by penalty, until the held-out error ends the path.

    The second result is whether uploads ran out before the error was seen to rise.
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
        return [float(average_folds(np.array(one), evidence.rows)[0]) for one in each]

    cut = walk_down(fits, visit, ended)
    if cut and len(each) > RISEN:
        errors = average_folds(np.array(each).T, evidence.rows)[0]
        cut = bool(np.argmin(errors) >= len(each) - RISEN)
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
        missed = [
            rows for rows, p in zip(evidence.splits, points, strict=True) if not p.arrived(tol)
        ]
        if any(evidence.parts[rows].stalled for rows in missed):
            # Smaller penalties are out of reach, whatever the uploads.
            return
        yield lam, None if missed else points
        starts = [point.coefficients for point in points]


def judge_lasso(evidence: SplitEvidence, reserve: float = 0.0) -> tuple[CandidateErrors, bool]:
    """Judge the Lasso, or the form of the evidence's penalty, down a path."""
    parts = evidence.parts.values()
    largest = max(part.largest_penalty for part in parts)
    count = evidence.path_penalties
    step = GRID_RATIO ** (1 / (count - 1))
    penalties = step_down(largest, step, SMALLEST_RATIO)
    forms = [part.form for part in parts]
    fits = fit_down(evidence, penalties, forms, int(reserve * evidence.each))
    # With few rows errors may rise and fall again. After as many gradients as rows everything is
    # known, so the rest of the grid is nearly free.
    whole = evidence.rows.sum() < FEW_ROWS and all(isinstance(p, SecantEvidence) for p in parts)
    return judge_by_gradients(
        evidence, LASSO, fits, lambda errors: has_risen(errors) and len(errors) >= count * whole
    )


@dataclass(frozen=True)
class AdaptivePath:
    """A goal's adaptive path: power of the weights, penalties, and ratio of last to first."""

    power: float
    count: int
    ratio: float

    def forms(self, fits: Sequence[PathPoint]) -> list[L1]:
        """Return the adaptive Lasso's penalties, with weights from a Lasso on every split."""
        return [L1(1.0, adaptive_weights(fit.coefficients, self.power, ACTIVE)) for fit in fits]


def judge_adaptive(
    evidence: SplitEvidence,
    lasso: Sequence[PathPoint],
    path: AdaptivePath,
    penalties: Callable[[float], Iterable[float]],
    reserve: int,
) -> list[CandidateErrors]:
    """Judge the adaptive Lasso, with weights from a Lasso on every split, and its refits.

    `penalties` returns the path below the smallest strength at which all fits are empty.
    """
    forms = path.forms(lasso)
    parts = zip(forms, evidence.parts.values(), strict=True)
    largest = max(form.largest(part.first_slopes) for form, part in parts)
    fits = fit_down(evidence, penalties(largest), forms, reserve)
    adaptive, _ = judge_by_gradients(evidence, ADAPTIVE, fits, has_long_risen)
    refits, _ = judge_by_gradients(evidence, REFITTED, _refit(evidence, adaptive), has_long_risen)
    return [adaptive, refits]


def _refit(evidence: SplitEvidence, adaptive: CandidateErrors) -> Fits:
    """Refit every support of a path once by least squares, while uploads last."""
    seen: set[tuple[bytes, ...]] = set()
    for lam, fits in zip(adaptive.penalties.tolist(), adaptive.fits, strict=True):
        models = [fit.coefficients for fit in fits]
        supports = tuple((b != 0).tobytes() for b in models)
        if supports in seen or not any(fit.active for fit in fits):
            continue
        seen.add(supports)
        wanted = [
            Wanted(refit_penalty(b, part.largest_penalty), REFIT_TOL, rows, b)
            for (rows, part), b in zip(evidence.parts.items(), models, strict=True)
        ]
        points = evidence.fit_many(wanted)
        if all(point.arrived(REFIT_TOL) for point in points):
            yield lam, points


def curve_of(lasso: CandidateErrors, at: int, cut: bool) -> Curve:
    """Return the Lasso's errors along its penalties, and its fits on the first split."""
    coefficients = np.column_stack([fits[0].coefficients for fits in lasso.fits])
    return Curve(lasso.penalties, coefficients, lasso.validation, at, cut)


def search_penalty_curve(evidence: SplitEvidence, rule: Rule) -> Curve:
    """Choose the strength of a penalty by the held-out error on one or more splits."""
    first = next(iter(evidence.parts.values()))
    if first.form.free(first.problem.p).all():
        raise CannotFit(
            "no column is penalised, so held-out rows cannot choose a penalty; give any penalty, "
            "which changes nothing"
        )
    lasso, cut = judge_lasso(evidence)
    if not lasso.penalties.size:
        raise CannotFit("no penalty of the path was reached; give more uploads, or a penalty")
    at = lasso.validation.select(rule)
    return replace(curve_of(lasso, at, cut), fold_models=evidence.fold_models(lasso.fits[at]))


def search_by_newton(
    context: Context, splits: Sequence[str], budget: Budget, before: Curve
) -> Curve:
    """Choose the penalty anew where a search on all splits at once hardly came closer.

    Newton's steps on every split take more round trips, and their working sets cope with very rare
    or nearly collinear columns. The search `before` is used if it has found a smaller error.
    """
    if budget.left < 2 * count_gradients(len(splits)):
        return before
    context.notify("the search hardly came closer, so every fold is fitted down a path by Newton")
    try:
        evidence = SplitEvidence.open(context.standardiser, splits, budget, context.form)
        curve = search_penalty_curve(evidence, context.settings.rule_in_force)
    except (CannotFit, Refused):
        return before
    return min(curve, before, key=lambda one: float(one.validation.error.min()))


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
        active = [float(other.validation.active[place]) for other, place in places]
        near = [i for i, error in enumerate(errors) if error <= limit]
        return places[min(near, key=lambda i: (active[i], errors[i]))]
    lasso, place = plain
    sure_by = SURE_BY if lasso.rows.sum() >= FEW_ROWS else SURE_BY_FEW_ROWS
    better = lasso.surely_better(one.each[:, 0, at], lasso.each[:, 0, place], sure_by)
    return (one, at) if better else plain
