"""Discoveries: columns at a given false discovery rate."""

from dataclasses import replace

from fedlasso.fitting.context import Context
from fedlasso.fitting.goals.objective import Objective
from fedlasso.fitting.result import Discovered, Fit


class Discoveries(Objective):
    """The columns that are probable enough to have an effect, from the pooled Lasso, refitted."""

    name = "discoveries"
    help = "columns at a Bayesian false discovery rate: on average, at most --fdr of them are false"
    infers = True

    def conclude(self, context: Context, fit: Fit) -> Fit:
        """Return the refitted discoveries in place of the Lasso."""
        trust = fit.trust
        assert trust is not None
        if trust.found is None or trust.refit is None:
            return fit
        counts = trust.found.columns.size, trust.found.tests
        reason = Discovered(self.name, *counts, context.settings.fdr, len(trust.groups))
        kept = {
            name: getattr(fit, name) for name in ("view", "scaling", "curve", "plan", "evidence")
        }
        return replace(trust.refit, **kept, reason=reason, trust=replace(trust, refit=None))
