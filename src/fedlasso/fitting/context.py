"""What a goal works with: the sites, the settings and their penalty, and the budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError, SameResponse
from fedlasso.federation import Ledger
from fedlasso.federation.ledger import Notify
from fedlasso.fitting.budget import Budget
from fedlasso.fitting.settings import Settings
from fedlasso.numerics import L1, Bounds, ElasticNet, GroupL1, Penalty
from fedlasso.sites import INTERCEPT, Scaling, Standardiser, Viewed


@dataclass(eq=False)
class Context:
    """One fit under way.

    Attributes
    ----------
    ledger : the sites
    settings : what to fit
    notify : is called with the plan before much is sent
    budget : what each site may send, and has sent
    form : the penalty at strength one, in the units of the sites' columns
    """

    ledger: Ledger
    settings: Settings
    notify: Notify = lambda text: None
    budget: Budget = field(init=False)
    form: Penalty = field(init=False)

    def __post_init__(self) -> None:
        settings = self.settings
        if self.ledger.loss != settings.loss:
            raise FedLassoError(
                f"the sites have the {self.ledger.loss} loss, and the family {settings.family!r} "
                f"has the {settings.loss} loss; give the sites' family"
            )
        self.budget = Budget(self.ledger, settings.uploads)
        self.form = penalty_of(settings, self.ledger.columns)

    @property
    def p(self) -> int:
        """Number of columns, an intercept included."""
        return len(self.ledger.columns)

    @cached_property
    def standardiser(self) -> Standardiser:
        """Standardises rows of the sites, each split once."""
        return Standardiser(self.ledger, **self.settings.scaling)

    def standardise(self, split: str = "") -> tuple[Viewed, Scaling]:
        """Agree on means and scales of the training rows of a split, within the budget."""
        view = self.measure(split)
        self.standardiser.define([view])
        return view, self.standardiser.scaling(view)

    def measure(self, split: str = "") -> Viewed:
        """Return the standardised view of a split, which the sites are yet to define."""
        before = self.standardiser.vectors
        (view,) = self.standardiser.measure([split]).values()
        self.budget.spend(self.standardiser.vectors - before)
        if isinstance(view, SameResponse):
            raise view
        return view

    def again(self, ledger: Ledger, **changes: Any) -> Context:
        """Return the context of another fit, of other sites or with other settings."""
        context = Context(ledger, replace(self.settings, **changes), self.notify)
        context.standardiser.take_orders(self.standardiser)
        return context


def penalty_of(settings: Settings, columns: Sequence[str]) -> Penalty:
    """Return the penalty that settings specify over the sites' columns, at strength one."""
    _check_names("keep", settings.keep, columns)
    _check_names("penalise by a factor", settings.penalty_factors, columns)
    _check_names("bound", settings.bounds, columns)
    for group in settings.groups:
        _check_names("group", group, columns)
    _check_names("give an interval to", settings.named, columns)
    # With an intercept per site the common one is a column of zeros.
    free = (*settings.keep, *([] if settings.site_effects else [INTERCEPT]))
    factors = settings.penalty_factors | dict.fromkeys(free, 0.0)
    weights = np.array([factors.get(name, 1.0) for name in columns])
    bounds = None
    if settings.bounds:
        ends = [settings.bounds.get(name, (None, None)) for name in columns]
        lower = np.array([-np.inf if low is None else low for low, _ in ends], np.float64)
        upper = np.array([np.inf if high is None else high for _, high in ends], np.float64)
        bounds = Bounds(lower, upper)
    own = None if (weights == 1).all() else weights
    if settings.groups:
        places = {name: place for place, name in enumerate(columns)}
        groups = np.arange(len(columns), dtype=np.float64)
        for group in settings.groups:
            groups[[places[name] for name in group]] = places[group[0]]
        return GroupL1(1.0, own, groups=groups)
    if settings.l1_ratio == 1.0:
        return L1(1.0, own, bounds=bounds)
    return ElasticNet(1.0, own, settings.l1_ratio, bounds=bounds)


def _check_names(what: str, names: Iterable[str], columns: Sequence[str]) -> None:
    known = [column for column in columns if column != INTERCEPT]
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "name a column of the sites"
            raise FedLassoError(f"no column to {what} is called {name!r}; {hint}")
