"""The plan of a fit: how uploads will be spent, and what the sites send by it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from fedlasso.errors import CannotFit, FedLassoError, RefusalCode, Refused
from fedlasso.fitting.budget import GRADIENTS, MOST_BYTES
from fedlasso.fitting.context import Context
from fedlasso.fitting.evidence.moment_evidence import Folded, vectors_of
from fedlasso.fitting.evidence.split_evidence import SCALING, count_gradients
from fedlasso.fitting.result import Fit
from fedlasso.numerics import L1
from fedlasso.procedures import Problem
from fedlasso.sites import Scaling, Viewed
from fedlasso.sites.atoms import fills_folds

# Folds, tried in this order; more of them if rows are few or the goal needs them.
FOLD_COUNTS = (10, 5, 3, 2)
MORE_FOLDS = 20
FEW_ROWS = 200
# Folds by gradients, more of them if rows are few, and gradients that a path of one split should
# have: with few rows, at most so many more than rows.
GRADIENT_FOLDS = 5
MORE_GRADIENT_FOLDS = 10
PER_SPLIT = 100
BEYOND_ROWS = 30
EMPTY_FOLDS = "sites cut their rows into few parts, which would leave folds empty"
# Fewer rows than this cannot be both fitted and judged.
FEWEST_ROWS = 4


@dataclass(frozen=True)
class Plan:
    """How a penalty and a candidate are chosen: by moments, or by gradients on folds or a holdout.

    `uploads` are vectors of p numbers that a site may send in all; `words` describe the plan, its
    reason, its costs and what more uploads would buy.
    """

    how: Literal["moments", "folds", "holdout"]
    folds: int
    uploads: int
    words: str


def make_plan(
    p: int,
    rows: int,
    *,
    more_folds: bool = False,
    uploads: int | None = None,
    cv: int | None = None,
    refused: Mapping[int, str] | None = None,
    keep: bool = False,
) -> Plan:
    """Plan how to choose a penalty for p columns and so many rows at all sites together.

    Parameters
    ----------
    more_folds : whether the goal needs many folds
    uploads : vectors of p numbers that each site may send; by default what the plan needs, within
        64 MiB of second moments or 300 gradients, or more for folds by gradients if rows are few
    cv : the requested number of folds
    refused : numbers of folds whose second moments a site does not send, and why
    keep : whether half of the uploads are kept for a procedure that comes afterwards
    """
    refused = refused or {}
    careful = cv is None and (more_folds or rows < FEW_ROWS)
    wanted = (cv,) if cv is not None else (MORE_FOLDS, *FOLD_COUNTS) if careful else FOLD_COUNTS
    # Where rows are few, folds of one row each are refused as such.
    counts = [count for count in (min(each, rows) for each in wanted) if count not in refused]
    allowed = MOST_BYTES // (8 * p) if uploads is None else uploads // (2 if keep else 1)
    for count in counts:
        need = SCALING + vectors_of(p, count)
        if need <= allowed:
            words = (
                f"second moments of {count} folds: {need - SCALING} vectors of {p} numbers per "
                f"site ({8 * p * (need - SCALING) / 1e6:.2g} MB), and then every penalty, "
                "candidate and refit is free"
            )
            if count != counts[0] and uploads is not None:
                needed = SCALING + vectors_of(p, counts[0])
                words += f"; {counts[0]} folds would take {needed} uploads"
            return Plan("moments", count, need, words)
    few = rows < FEW_ROWS
    per_split = min(PER_SPLIT, rows + BEYOND_ROWS) if few else PER_SPLIT
    fold_counts = [min(GRADIENT_FOLDS, rows)]
    if few:
        fold_counts.insert(0, min(MORE_GRADIENT_FOLDS, rows))
    fold_counts = [count for count in fold_counts if refused.get(count) != EMPTY_FOLDS]
    enough = {count: max((count + 1) * per_split, fewest_uploads(count)) for count in fold_counts}
    given = uploads or (max(GRADIENTS, *enough.values()) if few and enough else GRADIENTS)
    possible = [*enough.values(), *(SCALING + vectors_of(p, count) for count in counts)]
    why = next((why for why in refused.values() if why != EMPTY_FOLDS), "")
    if not counts:
        why = why or EMPTY_FOLDS
    elif not why:
        need = SCALING + vectors_of(p, min(counts))
        megabytes = f"be {8e-6 * p * need:.3g} MB per site"
        size = megabytes if uploads is None else f"take {need} uploads"
        why = f"second moments of {min(counts)} folds would {size}"
    if cv is not None and given < fewest_uploads(cv):
        raise FedLassoError(
            f"{cv} folds take {min(possible)} uploads or more with {p} columns, and `uploads` is "
            f"{given}; give more `uploads`, fewer folds (`cv`), or a `penalty`"
        )
    affordable = [count for count in fold_counts if enough[count] <= given]
    if cv is None and not affordable:
        words = f"gradients, and a holdout that chooses: at most {given} vectors of {p} numbers"
        more = f"cross-validation would take {min(possible)} uploads" if possible else EMPTY_FOLDS
        return Plan("holdout", 1, given, f"{words} per site, because {why}; {more}")
    count = cv or affordable[0]
    words = f"gradients on {count} folds: at most {given} vectors of {p} numbers per site"
    return Plan("folds", count, given, f"{words}, because {why}")


def fewest_uploads(folds: int) -> int:
    """Return the minimum of vectors for a path on every fold and a fit to all rows."""
    return SCALING + count_gradients(folds) * 3 // 2


def fit_as_planned(
    context: Context, plan: Plan, on_folds: Callable[[Plan], Fit], hold_out: Callable[[Plan], Fit]
) -> Fit:
    """Fit by gradients on the folds of a plan, on fewer if a site refuses those, or on a holdout.

    A requested number of folds stays as it is.
    """
    counts = [plan.folds] if plan.how == "folds" else []
    counts += [count for count in (GRADIENT_FOLDS, FOLD_COUNTS[-1]) if count < plan.folds]
    instead = plan
    for count in counts:
        words = plan.words.replace(f"{plan.folds} folds", f"{count} folds", 1)
        try:
            return on_folds(replace(plan, folds=count, words=words))
        except Refused as refusal:
            if context.settings.cv is not None:
                raise
            context.notify(f"plan: fewer folds, or a holdout, because {refusal}")
            words = f"gradients, and a holdout that chooses, because {refusal}"
            instead = replace(plan, how="holdout", words=words)
    return hold_out(instead)


@dataclass(frozen=True, eq=False)
class Gathered:
    """A plan, all rows standardised, and their second moments if the plan is by moments."""

    plan: Plan
    view: Viewed
    scaling: Scaling
    folded: Folded | None = None

    @property
    def problem(self) -> Problem:
        """The pooled problem of all rows, without a penalty."""
        view = self.view
        return Problem(L1(0.0), view.sites, self.scaling.sizes, len(view.columns), view.loss)

    @property
    def described(self) -> dict[str, Any]:
        """Plan, view and scaling, as fields of a fit."""
        return {"plan": self.plan.words, "view": self.view.view, "scaling": self.scaling}


def gather_as_planned(context: Context, more_folds: bool) -> Gathered:
    """Make a plan and ask for what it needs; a site's refusal leads to another plan."""
    settings = context.settings
    standardiser = context.standardiser
    rows = standardiser.rows
    if rows < FEWEST_ROWS:
        raise CannotFit(
            f"{rows} rows (n_samples) are too few to hold any out; give a penalty, or more rows"
        )
    view = context.measure()
    uploads = settings.uploads
    if uploads is not None:
        # Means far from zero take more than a plan expects.
        uploads = max(uploads - max(standardiser.vectors - SCALING, 0), 1)
    # Sites that cut their rows into few parts leave folds empty.
    refused = {
        count: EMPTY_FOLDS
        for count in (MORE_FOLDS, *FOLD_COUNTS)
        if settings.cv is None and not fills_folds(context.ledger.atoms, count)
    }
    while True:
        plan = make_plan(
            context.p,
            rows,
            more_folds=more_folds,
            uploads=uploads,
            cv=settings.cv,
            refused=refused,
            keep=settings.procedure is not None,
        )
        context.notify(f"plan: {plan.words}")
        if plan.how != "moments":
            context.budget.limit(plan.uploads)
            standardiser.define([view])
            return Gathered(plan, view, standardiser.scaling(view))
        try:
            # The view is defined in the same round trip.
            define = partial(standardiser.define, [view])
            folded = Folded.ask(view, plan.folds, settings.seed, define, **settings.scaling)
        except Refused as refusal:
            refused[plan.folds] = str(refusal)
            if refusal.code is not RefusalCode.FEWER_FOLDS:
                refused |= dict.fromkeys(range(plan.folds), str(refusal))
            continue
        context.budget.spend(vectors_of(context.p, plan.folds))
        return Gathered(plan, view, standardiser.scaling(view), folded)
