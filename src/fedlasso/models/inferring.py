"""After the Lasso: how sure its columns are, and what a row of each site is worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError, Stopped
from fedlasso.federation import Federation, Ledger, metered
from fedlasso.fitting import Fit, GoalFit
from fedlasso.fitting.estimates import Effects, Estimates
from fedlasso.fitting.inference import Start, count_curvature
from fedlasso.models.settings import Settings
from fedlasso.numerics import L1, Array, Penalty
from fedlasso.numerics.spike_slab import find_likely
from fedlasso.sites import CLEARLY, LEVELS, ErrorAt, NoiseAbove, Scaling, Viewed, Weighed

# Vectors of p numbers beside second derivatives: slopes along directions, and further fits, of
# least squares and of other losses.
SLOPES = 15
REFITS = 10
CURVED_REFITS = 80
# Rows of the common variance that a site's own is taken together with: few rows say little.
PRIOR = 10.0
# What columns that were found still pay, as a share of the penalty: without any, nothing certifies.
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
    selected : the columns of the model, where their intervals were asked for
    named : columns whose intervals were asked for by name
    worth : what a row of each site is worth, where that was chosen
    notes : what could not be done, and why
    """

    found: Estimates | None = None
    selected: Estimates | None = None
    named: Estimates | None = None
    worth: dict[str, float] | None = None
    notes: tuple[str, ...] = ()


def count_vectors(settings: Settings, p: int) -> int:
    """Return how many vectors of p numbers inference takes."""
    if not settings.infers:
        return 0
    looks = 1 if settings.family == "linear" else 2
    return looks * (-(-count_curvature(p) // p) + SLOPES) + count_refitting(settings)


def count_refitting(settings: Settings) -> int:
    """Return how many vectors of p numbers a further fit may take."""
    return REFITS if settings.family == "linear" else CURVED_REFITS


def find_worth(
    view: Federation, scaling: Scaling, b: Array, *, always: bool
) -> dict[str, float] | None:
    """Return the inverse of each site's noise variance, or nothing where they hardly differ.

    The Lasso's residuals tell it, one number per site. Variances of few rows are taken together
    with the common one.
    """
    sizes = np.array(scaling.sizes, dtype=np.float64)
    errors = np.array([reply.value for reply in view.ask(ErrorAt(b))])
    free = 1 - np.count_nonzero(b) / sizes.sum()
    if len(sizes) < 2 or free <= 0 or not errors.sum() > 0:
        return None
    common = errors.sum() / (free * sizes.sum())
    variances = (errors + PRIOR * common) / (free * sizes + PRIOR)
    differ = np.abs(np.log(variances / common)) > CLEARLY * np.sqrt(2 / (sizes + PRIOR))
    if not (always or differ.any()):
        return None
    return dict(zip(view.sites, (variances.min() / variances).tolist(), strict=True))


def find_caution(view: Federation, scaling: Scaling, b: Array) -> float:
    """Return how many times as noisy as the average row those of the noisiest site may be.

    Only the number of sites above some levels is told, a total. No site's squares are more than all
    sites' together, which holds where even that is refused.
    """
    rows = sum(scaling.sizes)
    most = rows / min(scaling.sizes)
    if len(scaling.sizes) < 2:
        return 1.0
    try:
        variance = view.total(ErrorAt(b)).value / rows
        above = view.total(NoiseAbove(b, variance)).above > 0
    except Stopped:
        raise
    except FedLassoError:
        return most
    if above.all():
        return most
    # The noisiest site lies between the last level that it is above and the next.
    return float(min(LEVELS[int(above.argmin())], most))


@dataclass(frozen=True, eq=False)
class Inferring:
    """Inference for the Lasso that was fitted on a view.

    Attributes
    ----------
    ledger, view, scaling : the sites, and how their rows are seen
    settings : what is asked for
    fit : the Lasso
    columns : names of the columns, as the sites have them
    caution : how many times as much noise rows are taken to have as they have on average
    """

    ledger: Ledger
    view: Viewed
    scaling: Scaling
    settings: Settings
    fit: Fit | GoalFit
    columns: tuple[str, ...]
    caution: float = 1.0

    def trust(
        self,
        worth: dict[str, float] | None,
        notes: tuple[str, ...],
    ) -> Trust:
        """Estimate the columns of the Lasso, and those that are named.

        What the Lasso shrinks changes the second derivatives of a curved loss, so one step does not
        undo it. There two further steps lead to where effects are to be expected, and second
        derivatives are asked for there. Estimates are halfway between those from there and those
        from the Lasso.
        """
        named = self._places()
        told = list(notes)
        lasso = self.fit.coefficients
        seed = self.settings.seed
        start = Start.at(self.view, self._penalty, lasso, self.caution)
        effects = start.find_effects(seed)
        other: Array | None = start.expect(effects)
        factor = 1.0
        if self.view.loss != "quadratic":
            near = start.move(effects)
            sized = near.find_effects(seed)
            if sized.variance < UNKNOWN:
                start = near.move(sized).renew()
                other = lasso
            else:
                start = Start.at(self.view, self._penalty, np.zeros(lasso.size))
                other = None
                told.append(SEPARATED)
            effects = start.find_effects(seed)
            factor = start.attenuation(effects)
        found = selected = asked = None
        if self.settings.goal == "discoveries":
            likely = find_likely(effects.chances, self.settings.fdr)
            found = self._judge(start, likely, effects, other, told).stretch(factor)
        if self.settings.judges_selected:
            used = (lasso != 0) & self._pays
            selected = self._judge(start, used, effects, other, told).stretch(factor)
        if named.size:
            asked = self._by_site(start, start.look(named, other=other), told).stretch(factor)
        return Trust(found, selected, asked, worth, tuple(dict.fromkeys(told)))

    def _judge(
        self,
        start: Start,
        which: NDArray[np.bool_],
        effects: Effects,
        other: Array | None,
        notes: list[str],
    ) -> Estimates:
        """Estimate columns that the rows themselves have picked, by what they are thought to do."""
        estimates = start.look(np.flatnonzero(which), self._tests, other=other)
        return self._by_site(start, replace(estimates, effects=effects.take(which)), notes)

    @property
    def _penalty(self) -> Penalty:
        """What tells which columns pay: goals may have weights of their own."""
        return L1(1.0) if self.settings.plain else self.fit.penalty

    @property
    def _pays(self) -> NDArray[np.bool_]:
        """Which columns pay a penalty."""
        return ~self._penalty.free(len(self.columns))

    @property
    def _tests(self) -> int:
        """How many columns can be found: those that pay a penalty and vary."""
        return int((self._pays & (self.scaling.factors != 0)).sum())

    def _by_site(self, start: Start, estimates: Estimates, notes: list[str]) -> Estimates:
        """The same with every site's own estimates, where the sites tell them."""
        if not estimates.columns.size or len(self.view.sites) < 2:
            return estimates
        try:
            own = start.look(estimates.columns, estimates.tests, by_site=True)
        except Stopped:
            raise
        except FedLassoError as error:
            notes.append(f"sites' own estimates are not shown: {error}")
            return estimates
        return replace(estimates, site_values=own.site_values, site_variances=own.site_variances)

    def _places(self) -> NDArray[np.int64]:
        """Where the columns stand whose intervals are asked for."""
        places = [self.columns.index(name) for name in self.settings.named]
        for place in places:
            if self.scaling.factors[place] == 0:
                raise FedLassoError(
                    f"column {self.columns[place]!r} is the same in every row of all sites, so it "
                    "has no interval; leave it out of --interval"
                )
        return np.unique(np.array(places, dtype=np.int64))

    def refit(self, found: Estimates, fit: Callable[[Viewed, L1], Fit]) -> Fit:
        """Fit the discoveries and the columns that are never penalised, and nothing else."""
        p = len(self.columns)
        weights = np.where(self.fit.penalty.free(p), 0.0, np.inf)
        weights[found.columns] = 1.0
        lam = NEXT_TO_NOTHING * self.fit.penalty.lam
        return fit(self.view, L1(lam, weights))


def weigh(ledger: Ledger, worth: dict[str, float]) -> Ledger:
    """Return the sites with rows that are worth what their noise leaves of them."""
    return metered(Weighed(ledger, worth))
