"""Fits to parts of the rows at one penalty, side by side: random halves, or all but a fold.

They start from the model, whose second derivatives they share; gradients correct them. The views
have means and scales of all rows, so nothing is asked before the first gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedlasso.federation import metered
from fedlasso.fitting.context import penalty_of
from fedlasso.fitting.dialogue import Dialogue
from fedlasso.fitting.fold_models import FoldModels
from fedlasso.fitting.model import Model
from fedlasso.fitting.points import PointSet
from fedlasso.fitting.split_points import Asked, SplitPoints
from fedlasso.numerics import Array, Penalty
from fedlasso.procedures import Problem
from fedlasso.sites import EffectAt, Scaling, Viewed, folds, halves

# Relative gap of these fits, and round trips after the first, within which most arrive.
CLOSE = 1e-3
MOST_TRIPS = 6
# Random halves of the rows, and folds of models that are fitted for the card alone.
SUBSAMPLES = 10
FOLDS = 5


def fit_subsamples(
    view: Viewed, scaling: Scaling, model: Model, splits: Sequence[str], strength: float
) -> Dialogue[SplitPoints]:
    """Fit the training rows of splits at a penalty, from the model on.

    `view` is that of all rows, with its `scaling`.
    """
    views = [*(view.on_split(split) for split in splits), view]
    form = penalty_of(model.settings, view.columns).scaled(scaling.factors)
    problem = Problem(form, view.sites, scaling.sizes, len(view.columns), view.loss)
    sets = [PointSet(metered(one), problem) for one in views]
    points = SplitPoints([], sets[-1], form, sets[:-1])
    b = np.ascontiguousarray(model.fit.coefficients)
    asked = [Asked(own, b[:, None]) for own in sets]
    columns = points.choose_columns(None)
    if columns.size < b.size:
        columns = np.flatnonzero((b != 0) | form.free(b.size))[: points.most_columns]
    asked[-1] = replace(asked[-1], blocks={0: columns if columns.size else np.arange(1)})
    definitions = [one.inner.prepare(one.view, own=True) for one in views]
    steps = points.ask(asked)
    questions = next(steps)
    answers = yield [*definitions, *questions]
    for own, sent in zip(sets, answers, strict=False):
        own.problem = replace(problem, sizes=tuple(reply.rows for reply in sent))
    try:
        steps.send(answers[len(definitions) :])
    except StopIteration as end:
        for own, found in zip(sets, end.value, strict=True):
            own.known += found
    penalty = form.at(strength)
    for _ in range(MOST_TRIPS):
        wanted = {k: [penalty] for k, own in enumerate(points.others) if _is_far(own, penalty)}
        if not wanted:
            break
        yield from points.try_at(wanted, (), all_columns=False)
    return points


def _is_far(points: PointSet, penalty: Penalty) -> bool:
    enough = CLOSE * points.best(penalty).objective(penalty)
    return points.gap(penalty, enough) > enough


@dataclass(frozen=True, eq=False)
class PartFits:
    """How many random halves of the rows select each column, and models of folds if requested."""

    counts: Array
    models: FoldModels | None = None


def fit_parts(view: Viewed, scaling: Scaling, model: Model, with_folds: bool) -> Dialogue[PartFits]:
    """Fit random halves of the rows at the model's penalty and, if wanted, all but each fold."""
    strength = model.path_penalty
    seed = model.settings.seed
    halved = halves(SUBSAMPLES, seed)
    folded = folds(FOLDS, seed) if with_folds else ()
    points = yield from fit_subsamples(view, scaling, model, (*halved, *folded), strength)
    penalty = points.form.at(strength)
    best = [own.best(penalty).b for own in points.others]
    p = len(model.columns)
    counts = np.count_nonzero([b[:p] for b in best[: len(halved)]], axis=0)
    if not folded:
        return PartFits(counts)
    best = best[len(halved) :]
    effects = [0.0] * len(folded)
    if view.site_effects:
        # New rows have the mean of the sites' own intercepts.
        ledgers = [own.ledger for own in points.others[len(halved) :]]
        asked = zip(ledgers, best, strict=True)
        answers = yield [ledger.prepare(EffectAt(b.copy())) for ledger, b in asked]
        effects = [sent.effects / sent.weight if sent.weight else 0.0 for sent in answers]
    models = [
        (coefficients, intercept + float(effect))
        for (coefficients, intercept), effect in zip(
            map(scaling.original, best), effects, strict=True
        )
    ]
    return PartFits(counts, FoldModels.of_splits(folded, models))
