"""How sure columns are, as a model's document tells it: in names, units and words."""

from dataclasses import dataclass

import numpy as np

from fedlasso.fitting.inference.estimates import Estimates
from fedlasso.fitting.model import Model
from fedlasso.models.numbers import p_value
from fedlasso.numerics import Array


@dataclass(frozen=True)
class SiteEstimate:
    """What the rows of one site alone say about a coefficient, with its interval."""

    site: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ColumnEstimate:
    """A coefficient without the Lasso's bias, or the effect of a column found, per unit.

    Attributes
    ----------
    scale : standard deviation of the column
    value, error, low, high : the estimate, its standard error and its interval; of a column found
        the expected effect if there is one, its standard deviation, and an interval that holds the
        effect or zero
    p_value, adjusted : of the debiased coefficient being zero, alone and among all that were looked
        at
    chance : how likely a column found is to have an effect
    unlike, share_unlike : Cochran's test that sites differ, and I^2; missing where sites do not
        tell
    sites : sites' own estimates, where they tell them
    """

    name: str
    scale: float
    value: float
    error: float
    low: float
    high: float
    p_value: float
    adjusted: float
    chance: float | None = None
    unlike: float | None = None
    share_unlike: float | None = None
    sites: tuple[SiteEstimate, ...] = ()

    @property
    def sureness(self) -> str:
        """How sure it is that the column has an effect, in words."""
        if self.chance is None:
            return f"adjusted p {p_value(self.adjusted)}"
        return f"chance of an effect {tell_chance(self.chance)}"


def tell_chance(chance: float) -> str:
    """Return a chance in percent, never as certainty."""
    return "over 99.9%" if chance > 0.999 else f"{chance:.1%}"


@dataclass(frozen=True)
class TrustDocument:
    """How sure the columns of a model are.

    Attributes
    ----------
    level : how often intervals are to cover
    rate : of false discoveries, where some were looked for
    tests : columns that might have been found
    found, selected, named : discoveries, the columns of the model, and columns that were named,
        where their intervals were asked for
    worth : what a row of each site is worth, where that differs
    notes : what could not be done, and why
    """

    level: float
    rate: float | None = None
    tests: int = 0
    found: tuple[ColumnEstimate, ...] = ()
    selected: tuple[ColumnEstimate, ...] = ()
    named: tuple[ColumnEstimate, ...] = ()
    worth: dict[str, float] | None = None
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What was found, in one sentence."""
        if self.rate is None:
            return ""
        count = len(self.found)
        if not count:
            return (
                f"No column could be found at a false discovery rate of {self.rate:g}: the rows do "
                "not tell any of them from chance."
            )
        return (
            f"{count} column{'s' * (count > 1)} found; on average at most {self.rate:.0%} of such "
            "a list are false."
        )


def tell_trust(model: Model) -> TrustDocument | None:
    """Return how sure the columns of a model are, where that is known."""
    trust = model.trust
    if trust is None:
        return None
    found = trust.found
    return TrustDocument(
        level=model.settings.level,
        rate=None if found is None else model.settings.fdr,
        tests=0 if found is None else found.tests,
        found=_tell(model, found, "bh"),
        selected=_tell(model, trust.selected, "bh"),
        named=_tell(model, trust.named, "holm"),
        worth=trust.site_weights,
        notes=trust.notes,
    )


def _tell(model: Model, estimates: Estimates | None, how: str) -> tuple[ColumnEstimate, ...]:
    """Estimates by name and per unit, the surest first; none where they were not asked for."""
    if estimates is None:
        return ()
    effects = estimates.effects
    values = estimates.values if effects is None else effects.means
    errors = estimates.errors if effects is None else effects.spreads
    unsure = estimates.p_values if effects is None else 1 - effects.probabilities
    factors = model.scaling.factors[estimates.columns]
    intervals = estimates.intervals(model.settings.level) * factors[:, None]
    unlike, share = estimates.heterogeneity()
    adjusted = estimates.adjusted(how)
    own = _tell_sites(model, estimates, factors)
    return tuple(
        ColumnEstimate(
            name=model.columns[estimates.columns[i]],
            scale=float(1 / factors[i]),
            value=float(values[i] * factors[i]),
            error=float(errors[i] * factors[i]),
            low=float(intervals[i, 0]),
            high=float(intervals[i, 1]),
            p_value=float(estimates.p_values[i]),
            adjusted=float(adjusted[i]),
            chance=None if effects is None else float(effects.probabilities[i]),
            unlike=number_or_none(unlike[i]),
            share_unlike=number_or_none(share[i]),
            sites=own[i],
        )
        for i in np.argsort(unsure, kind="stable")
    )


def _tell_sites(
    model: Model, estimates: Estimates, factors: Array
) -> list[tuple[SiteEstimate, ...]]:
    """Sites' own estimates and intervals, per column; what a site cannot tell is left out."""
    values = estimates.site_values
    variances = estimates.site_variances
    if values is None or variances is None:
        return [()] * estimates.columns.size
    told: list[list[SiteEstimate]] = [[] for _ in estimates.columns]
    for name, own, variance in zip(model.costs.sites, values, variances, strict=True):
        alone = Estimates(estimates.columns, own, np.sqrt(variance), 1)
        ends = alone.intervals(model.settings.level)
        numbers = np.column_stack([own, ends]) * factors[:, None]
        for i in np.flatnonzero(variance > 0):
            told[i].append(SiteEstimate(name, *numbers[i].tolist()))
    return [tuple(rows) for rows in told]


def number_or_none(value: float) -> float | None:
    """A number, or none where it is not known."""
    return None if np.isnan(value) else float(value)
