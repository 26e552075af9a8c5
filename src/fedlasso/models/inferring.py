"""After the Lasso: how sure its columns are, and what a row of each site is worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError, Stopped
from fedlasso.federation import Federation, Ledger, metered
from fedlasso.fitting import Fit, GoalFit
from fedlasso.fitting.inference import Estimates, Start, count_curvature
from fedlasso.models.settings import Settings
from fedlasso.numerics import L1, Array
from fedlasso.numerics.spike_slab import find_likely
from fedlasso.sites import CLEARLY, LEVELS, ErrorAt, NoiseAbove, Scaling, Viewed, Weighed

# Vectors of p numbers beside second derivatives: slopes along directions, and further fits, of
# least squares and of other losses.
SLOPES = 15
REFITS = 10
CURVED_REFITS = 80
# Rows of the common variance that a site's own is taken together with: few rows say little.
PRIOR = 10.0
# Columns of curved losses that are found at this rate are in the fit that estimates start from,
# whatever rate is asked for.
REFITTED = 0.1
# What columns that were found still pay, as a share of the penalty: without any, nothing certifies.
NEXT_TO_NOTHING = 1e-4
# Where second derivatives fall to this share without a penalty, a few columns explain all rows.
FLAT = 0.25
SEPARATED = (
    "the columns that were found explain nearly all rows, so that their best coefficients are "
    "without bound: estimates start from the Lasso's own, and are rather too small"
)


@dataclass(frozen=True, eq=False)
class Trust:
    """How sure the columns of a model are.

    Attributes
    ----------
    found : the discoveries, where the goal was to make some
    named : columns whose intervals were asked for
    worth : what a row of each site is worth, where that was chosen
    notes : what could not be done, and why
    """

    found: Estimates | None = None
    named: Estimates | None = None
    worth: dict[str, float] | None = None
    notes: tuple[str, ...] = ()


def count_vectors(settings: Settings, p: int) -> int:
    """Return how many vectors of p numbers inference takes."""
    if not settings.infers:
        return 0
    looks = 1 if settings.family == "linear" else 2
    return looks * (-(-count_curvature(p) // p) + SLOPES + count_refitting(settings))


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
        fit: Callable[[Viewed, L1], Fit],
    ) -> Trust:
        """Estimate the columns of the Lasso, and those that are named.

        What the Lasso shrinks changes the second derivatives of a curved loss, so one step does not
        undo it. There columns that are likely to have an effect are fitted alone, nearly without a
        penalty, and estimates start from that fit.
        """
        named = self._places()
        told = list(notes)
        start = Start.at(self.view, self.fit.penalty, self.fit.coefficients, self.caution)
        effects = start.find_effects(self.settings.seed)
        other = None
        if self.view.loss == "quadratic":
            other = effects.expected
        else:
            likely = find_likely(effects.chances, REFITTED)
            start = self._start_again(start, likely, told, fit)
            sizes = start.find_effects(self.settings.seed, likely)
            effects = replace(sizes, chances=effects.chances)
        discovered = None
        if self.settings.goal == "discoveries":
            likely = find_likely(effects.chances, self.settings.fdr)
            found = start.look(np.flatnonzero(likely), self._tests, other=other)
            found = replace(found, effects=effects.take(likely))
            discovered = self._by_site(start, found, told)
        asked = None
        if named.size:
            asked = self._by_site(start, start.look(named, other=other), told)
        return Trust(discovered, asked, worth, tuple(dict.fromkeys(told)))

    def _start_again(
        self,
        start: Start,
        likely: NDArray[np.bool_],
        notes: list[str],
        fit: Callable[[Viewed, L1], Fit],
    ) -> Start:
        """Start from a fit of the columns that are likely to have an effect, and of no others."""
        penalty = start.problem.l1
        others = np.where(penalty.free(start.problem.p), 0.0, np.inf)
        weights = np.where(likely, NEXT_TO_NOTHING, others)
        refit = fit(self.view, replace(penalty, weights=weights))
        second = Start.at(self.view, refit.penalty, refit.coefficients)
        if np.trace(second.H) > FLAT * np.trace(start.H):
            return second
        notes.append(SEPARATED)
        return start

    @property
    def _pays(self) -> NDArray[np.bool_]:
        """Which columns pay a penalty."""
        return ~self.fit.penalty.free(len(self.columns))

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
        places = [self.columns.index(name) for name in self.settings.intervals]
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
