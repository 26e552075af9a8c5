"""Discoveries: columns at a given false discovery rate."""

from dataclasses import replace

from fedlasso.fitting.context import Context
from fedlasso.fitting.goals.objective import Objective
from fedlasso.fitting.inference.infer import refit_columns
from fedlasso.fitting.result import Discovered, Fit


class Discoveries(Objective):
    """The columns that are probable enough to have an effect, from the pooled Lasso, refitted."""

    name = "discoveries"
    help = "columns at a false discovery rate: at most a fraction --fdr of them is false on average"
    infers = True

    def conclude(self, context: Context, fit: Fit) -> Fit:
        """Fit only the discoveries and the columns that are never penalised."""
        assert fit.trust is not None
        found = fit.trust.found
        if found is None:
            return fit
        rate = context.settings.fdr
        reason = Discovered(self.name, found.columns.size, found.tests, rate)
        return replace(refit_columns(context, fit, found.columns), reason=reason)
