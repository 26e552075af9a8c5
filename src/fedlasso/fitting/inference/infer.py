"""Inference after the Lasso: discoveries, and intervals of columns that are named or selected."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError, Refused
from fedlasso.fitting.at_penalty import fit_curved
from fedlasso.fitting.context import Context
from fedlasso.fitting.inference.debiased import Start, count_curvature
from fedlasso.fitting.inference.estimates import Effects, Estimates
from fedlasso.fitting.result import Fit
from fedlasso.fitting.settings import Settings
from fedlasso.numerics import L1, Array, Penalty
from fedlasso.numerics.spike_slab import select_by_fdr
from fedlasso.sites import Viewed

# Vectors of p numbers beside second derivatives: slopes along directions, and further fits, of
# least squares and of other losses.
SLOPES = 15
REFITS = 10
CURVED_REFITS = 80
# What discoveries still pay, as a fraction of the penalty: without any, nothing certifies.
NEXT_TO_NOTHING = 1e-4
# Where more of the variance of a linear predictor is not known, a few columns explain nearly all
# rows: odds, rates and hazards are known to a factor of 16 at best.
UNKNOWN = 8.0
SEPARATED = (
    "a few columns explain nearly all rows, so that their best coefficients are without bound: "
    "estimates are one step from a model without effects, and rather too small"
)


@dataclass(frozen=True, eq=False)
class Trust:
    """How sure the columns of a model are.

    Attributes
    ----------
    found : the discoveries, where the goal was to make some
    selected : the columns of the model, where their intervals were requested
    named : columns whose intervals were requested by name
    site_weights : what a row of each site counts, where that was chosen
    notes : what could not be done, and why
    """

    found: Estimates | None = None
    selected: Estimates | None = None
    named: Estimates | None = None
    site_weights: dict[str, float] | None = None
    notes: tuple[str, ...] = ()


def count_vectors(settings: Settings, p: int) -> int:
    """Return how many vectors of p numbers inference takes."""
    if not settings.infers:
        return 0
    looks = 1 if settings.response_family.quadratic else 2
    return looks * (-(-count_curvature(p) // p) + SLOPES) + count_refitting(settings)


def count_refitting(settings: Settings) -> int:
    """Return how many vectors of p numbers a further fit may take."""
    return REFITS if settings.response_family.quadratic else CURVED_REFITS


def infer(context: Context, fit: Fit, noise_inflation: float = 1.0) -> Trust:
    """Estimate the columns that the settings ask about, from the Lasso that was fitted.

    What the Lasso shrinks changes the second derivatives of a curved loss, so one step does not
    undo it. There two further steps lead to where effects are to be expected, and second
    derivatives are asked for there. Estimates are halfway between those from there and those from
    the Lasso.
    """
    inference = _Inference(context, fit)
    named = inference.named()
    settings = context.settings
    lasso = fit.coefficients
    seed = settings.seed
    start = Start.at(inference.view, inference.penalty, lasso, noise_inflation)
    effects = start.find_effects(seed)
    other: Array | None = start.expect(effects)
    factor = 1.0
    if not settings.response_family.quadratic:
        near = start.move(effects)
        sized = near.find_effects(seed)
        if sized.variance < UNKNOWN:
            start = near.move(sized).renew()
            other = lasso
        else:
            start = Start.at(inference.view, inference.penalty, np.zeros(lasso.size))
            other = None
            inference.notes.append(SEPARATED)
        effects = start.find_effects(seed)
        factor = start.attenuation(effects)
    found = selected = asked = None
    if settings.asked_goal.infers:
        likely = select_by_fdr(effects.chances, settings.fdr)
        found = inference.judge(start, likely, effects, other).stretch(factor)
    if settings.judges_selected:
        used = (lasso != 0) & inference.pays
        selected = inference.judge(start, used, effects, other).stretch(factor)
    if named.size:
        asked = inference.by_site(start, start.look(named, other=other)).stretch(factor)
    return Trust(found, selected, asked, notes=tuple(dict.fromkeys(inference.notes)))


class _Inference:
    """Inference for the Lasso that was fitted on a view: what its steps have in common."""

    def __init__(self, context: Context, fit: Fit) -> None:
        assert fit.view is not None
        assert fit.scaling is not None
        settings = context.settings
        self.view = Viewed(context.ledger, fit.view)
        self.columns = context.ledger.columns
        self.scaling = fit.scaling
        self.asked = settings.named
        # What tells which columns pay: goals may have weights of their own.
        self.penalty: Penalty = L1(1.0) if settings.plain else fit.penalty
        self.pays: NDArray[np.bool_] = ~self.penalty.free(len(self.columns))
        # How many columns can be found: those that pay a penalty and vary.
        self.tests = int((self.pays & (self.scaling.factors != 0)).sum())
        self.notes: list[str] = []

    def judge(
        self, start: Start, which: NDArray[np.bool_], effects: Effects, other: Array | None
    ) -> Estimates:
        """Estimate columns that the rows themselves have picked, by their likely effects."""
        estimates = start.look(np.flatnonzero(which), self.tests, other=other)
        return self.by_site(start, replace(estimates, effects=effects.take(which)))

    def by_site(self, start: Start, estimates: Estimates) -> Estimates:
        """The same with every site's own estimates, where the sites send them."""
        if not estimates.columns.size or len(self.view.sites) < 2:
            return estimates
        try:
            own = start.look(estimates.columns, estimates.tests, by_site=True)
        except Refused as refusal:
            self.notes.append(f"sites' own estimates are not shown: {refusal}")
            return estimates
        return replace(estimates, site_values=own.site_values, site_variances=own.site_variances)

    def named(self) -> NDArray[np.int64]:
        """Places of the columns whose intervals are requested by name."""
        places = [self.columns.index(name) for name in self.asked]
        for place in places:
            if self.scaling.factors[place] == 0:
                raise FedLassoError(
                    f"column {self.columns[place]!r} is the same in every row of all sites, so it "
                    "has no interval; leave it out of --interval"
                )
        return np.unique(np.array(places, dtype=np.int64))


def refit_columns(context: Context, fit: Fit, columns: NDArray[np.int64]) -> Fit:
    """Fit some columns and those that are never penalised, nearly without a penalty."""
    assert fit.view is not None
    settings = context.settings
    view = Viewed(context.ledger, fit.view)
    weights = np.where(fit.penalty.free(len(view.columns)), 0.0, np.inf)
    weights[columns] = 1.0
    penalty = L1(NEXT_TO_NOTHING * fit.penalty.lam, weights)
    found = fit_curved(view, penalty, count_refitting(settings), settings.tol)
    return replace(
        found,
        view=fit.view,
        scaling=fit.scaling,
        curve=fit.curve,
        plan=fit.plan,
        evidence=fit.evidence,
        trust=fit.trust,
    )
