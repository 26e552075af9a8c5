"""Discoveries: columns with a promise about how many of them are false."""

from dataclasses import replace

from fedlasso.fitting.context import Context
from fedlasso.fitting.goals.objective import Objective
from fedlasso.fitting.inference.infer import refit_columns
from fedlasso.fitting.result import Discovered, Fit


class Discoveries(Objective):
    """The columns whose effects are likely enough, refitted; it starts from the pooled Lasso."""

    name = "discoveries"
    help = "columns with a promise: at most a fraction --fdr of them is false on average"
    infers = True

    def conclude(self, context: Context, fit: Fit) -> Fit:
        """Fit the discoveries and the columns that are never penalised, and nothing else."""
        assert fit.trust is not None
        found = fit.trust.found
        if found is None:
            return fit
        rate = context.settings.fdr
        reason = Discovered(self.name, found.columns.size, found.tests, rate)
        return replace(refit_columns(context, fit, found.columns), reason=reason)
