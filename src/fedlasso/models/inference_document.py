"""Inference about the columns of a model as its document holds it: by name, per unit."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fedlasso.fitting.inference.estimates import CANNOT_PROMISE, Estimates
from fedlasso.fitting.inference.groups import Group
from fedlasso.fitting.inference.infer import UNBOUNDED
from fedlasso.fitting.model import Model
from fedlasso.models.numbers import p_value, some_of
from fedlasso.numerics import Array

# Columns that are named of a combination.
COLUMNS_NAMED = 8


@dataclass(frozen=True)
class SiteEstimate:
    """The estimate of a coefficient from one site's rows alone, with its interval."""

    site: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ColumnEstimate:
    """The debiased coefficient of a column, or the posterior of its effect, per unit.

    `probability` is the posterior probability of an effect; `value` and `error` are then its
    mean and standard deviation if there is one. `heterogeneity` and `i_squared` are the p-value of
    Cochran's Q and I^2. docs/model.md describes every field.
    """

    name: str
    scale: float
    value: float
    error: float
    low: float
    high: float
    p_value: float
    adjusted: float
    probability: float | None = None
    heterogeneity: float | None = None
    i_squared: float | None = None
    sites: tuple[SiteEstimate, ...] = ()

    @property
    def statistic(self) -> float | None:
        """The estimate by its standard error, which the p-value is of; a posterior has none."""
        return None if self.probability is not None or not self.error else self.value / self.error

    @property
    def interval_name(self) -> str:
        return "confidence interval" if self.probability is None else "credible interval"

    @property
    def zero_alone(self) -> bool:
        """Whether an effect is so improbable that the credible interval is zero alone."""
        return self.probability is not None and self.low == self.high == 0

    @property
    def evidence(self) -> tuple[str, str]:
        """Name and value of its evidence for an effect: a p-value or a posterior probability."""
        if self.probability is None:
            return "adjusted p", p_value(self.adjusted)
        return "probability of an effect", _percent(self.probability)

    @property
    def evidence_name(self) -> str:
        """Head of the column of a table with `short_evidence`."""
        return "adjusted p" if self.probability is None else "P(effect)"

    @property
    def short_evidence(self) -> str:
        """Value of the evidence for a table."""
        return self.evidence[1].replace("over ", ">")


@dataclass(frozen=True)
class GroupEstimate:
    """Nearly collinear columns, of which one or more have an effect with a probability.

    `main` is the most probable one, which represents the group in the model.
    """

    names: tuple[str, ...]
    probability: float
    main: str

    @property
    def text(self) -> str:
        return f"one or more of {len(self.names)} nearly collinear columns: {some_of(self.names)}"

    @property
    def evidence(self) -> str:
        return _percent(self.probability)


def _percent(probability: float) -> str:
    """Return a posterior probability as a percentage, never as certainty."""
    return "over 99.9%" if probability > 0.999 else f"{probability:.1%}"


@dataclass(frozen=True)
class TrustDocument:
    """Inference about the columns of a model; docs/model.md describes every field.

    `found` and `groups` are discovered columns and groups of columns; `selected` and `named` are
    columns of the model and columns named by the analyst, if their intervals were requested. Of
    the latter, `not_identified` have none: each is nearly a combination of the columns listed with
    it, or few rows or none bound its effect, and no columns are listed. `site_weights` is the
    weight of a row by site, and `weighted_model` whether the model has them too, or inference only.
    `site_effects` is whether the fit has decided that every site has its own intercept.
    """

    level: float
    rate: float | None = None
    tests: int = 0
    found: tuple[ColumnEstimate, ...] = ()
    groups: tuple[GroupEstimate, ...] = ()
    selected: tuple[ColumnEstimate, ...] = ()
    named: tuple[ColumnEstimate, ...] = ()
    not_identified: dict[str, tuple[str, ...]] = field(default_factory=dict)
    site_weights: dict[str, float] | None = None
    weighted_model: bool = False
    site_effects: bool = False
    notes: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The discoveries in one sentence; empty where none were requested."""
        if self.rate is None:
            return ""
        rate = f"false discovery rate of {self.rate:g}"
        counts = ((self.found, "column"), (self.groups, "group"))
        parts = [f"{len(some)} {name}{'s' * (len(some) > 1)}" for some, name in counts if some]
        if not parts:
            return f"No discoveries at a {rate}: the data show no clear effect of any column."
        columns = " and ".join(parts) + " of nearly collinear columns" * bool(self.groups)
        if self.marks:
            return f"{columns} discovered, without a promise of the intended {rate}."
        expected = f"on average at most {self.rate:.0%} of such a list are false"
        how = "Bayesian FDR, calibrated by simulation"
        return f"{columns} discovered at a {rate}: {expected} ({how})."

    @property
    def marks(self) -> tuple[str, ...]:
        """The notes that rates and levels cannot be promised, because assumptions clearly fail."""
        return tuple(note for note in self.notes if note.startswith(CANNOT_PROMISE))

    @property
    def other_notes(self) -> tuple[str, ...]:
        """The other notes."""
        return tuple(note for note in self.notes if note not in self.marks)

    @property
    def without_interval(self) -> list[str]:
        """One sentence per requested column without an interval."""
        sentences = []
        for name, others in self.not_identified.items():
            if not others:
                sentences.append(f"{name} has no interval: {UNBOUNDED}")
                continue
            shown = ", ".join(others[:COLUMNS_NAMED])
            more = len(others) - COLUMNS_NAMED
            rest = f" and {more} more" if more > 0 else ""
            sentences.append(
                f"{name} is not identified by these data: it is nearly a combination of "
                f"{shown}{rest}, so it has no interval"
            )
        return sentences


def is_refitted(trust: TrustDocument | None) -> bool:
    """Return whether the model has discoveries, refitted from a Lasso."""
    return trust is not None and trust.rate is not None


def to_trust_document(model: Model) -> TrustDocument | None:
    """Return the inference about a model's columns, if there is any."""
    trust = model.trust
    if trust is None:
        return None
    found = trust.found
    named = trust.named
    lost = {} if named is None else named.combinations
    if named is not None:
        # Only columns with an interval are tests to adjust for.
        named = replace(named.take(named.identified), tests=named.tests - len(lost))
    return TrustDocument(
        level=model.settings.level,
        rate=None if found is None else model.settings.fdr,
        tests=0 if found is None else found.tests,
        found=_by_column(model, found, "bh"),
        groups=_by_group(model, trust.groups),
        selected=_by_column(model, trust.selected, "bh"),
        named=_by_column(model, named, "holm"),
        not_identified={
            model.columns[j]: tuple(model.columns[k] for k in lost[j]) for j in sorted(lost)
        },
        site_weights=trust.site_weights,
        weighted_model=bool(model.view.site_weights),
        site_effects=model.settings.site_effects != model.requested.site_effects,
        notes=trust.notes,
    )


def _by_group(model: Model, groups: Sequence[Group]) -> tuple[GroupEstimate, ...]:
    """Return discovered groups by name, the most probable first."""
    return tuple(
        GroupEstimate(
            tuple(model.columns[k] for k in group.columns),
            group.probability,
            model.columns[group.main],
        )
        for group in sorted(groups, key=lambda group: -group.probability)
    )


def _by_column(model: Model, estimates: Estimates | None, how: str) -> tuple[ColumnEstimate, ...]:
    """Return estimates per unit, those with the strongest evidence first."""
    if estimates is None:
        return ()
    effects = estimates.effects
    values = estimates.values if effects is None else effects.means
    errors = estimates.errors if effects is None else effects.spreads
    unsure = estimates.p_values if effects is None else 1 - effects.probabilities
    assert model.trust is not None
    assert model.trust.factors is not None
    factors = model.trust.factors[estimates.columns]
    scales = 1 / model.scaling.factors[estimates.columns]
    intervals = estimates.intervals(model.settings.level) * factors[:, None]
    heterogeneity, i_squared = estimates.heterogeneity()
    adjusted = estimates.adjusted(how)
    own = _by_site(model, estimates, factors)
    return tuple(
        ColumnEstimate(
            name=model.columns[estimates.columns[i]],
            scale=float(scales[i]),
            value=float(values[i] * factors[i]),
            error=float(errors[i] * factors[i]),
            low=float(intervals[i, 0]),
            high=float(intervals[i, 1]),
            p_value=float(estimates.p_values[i]),
            adjusted=float(adjusted[i]),
            probability=None if effects is None else float(effects.probabilities[i]),
            heterogeneity=number_or_none(heterogeneity[i]),
            i_squared=number_or_none(i_squared[i]),
            sites=own[i],
        )
        for i in np.argsort(unsure, kind="stable")
    )


def _by_site(model: Model, estimates: Estimates, factors: Array) -> list[tuple[SiteEstimate, ...]]:
    """Return sites' own estimates per column, without sites that cannot estimate it."""
    values = estimates.site_values
    variances = estimates.site_variances
    if values is None or variances is None:
        return [()] * estimates.columns.size
    found: list[list[SiteEstimate]] = [[] for _ in estimates.columns]
    for name, own, variance in zip(model.costs.sites, values, variances, strict=True):
        alone = Estimates(estimates.columns, own, np.sqrt(variance), 1)
        ends = alone.intervals(model.settings.level)
        numbers = np.column_stack([own, ends]) * factors[:, None]
        for i in np.flatnonzero(variance > 0):
            found[i].append(SiteEstimate(name, *numbers[i].tolist()))
    return [tuple(rows) for rows in found]


def number_or_none(value: float) -> float | None:
    """Return None where a number is unknown (NaN): JSON has no NaN."""
    return None if np.isnan(value) else float(value)
