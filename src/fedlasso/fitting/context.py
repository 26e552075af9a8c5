"""What a goal works with: the sites, what was asked for, and what may still be sent."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fedlasso.errors import FedLassoError
from fedlasso.federation import Ledger
from fedlasso.federation.ledger import Notify
from fedlasso.fitting.at_penalty import penalty_of
from fedlasso.fitting.budget import Budget
from fedlasso.fitting.settings import Settings
from fedlasso.numerics import Penalty
from fedlasso.sites import Scaling, Viewed, standardise


@dataclass(eq=False)
class Context:
    """One fit under way.

    Attributes
    ----------
    ledger : the sites
    settings : what to fit
    say : is told the plan before much is sent
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

    def standardise(self, split: str = "") -> tuple[Viewed, Scaling]:
        """Agree on means and scales of the training rows of a split, within the budget."""
        view, scaling = standardise(self.ledger, split, **self.settings.scaling)
        self.budget.spend(scaling.vectors)
        return view, scaling

    def again(self, ledger: Ledger, **changes: object) -> Context:
        """Return the context of another fit, of other sites or with other settings."""
        return Context(ledger, replace(self.settings, **changes), self.notify)  # type: ignore[arg-type]
