"""How well models predict at one site alone, unless too few rows or events are behind a measure."""

from dataclasses import replace

import numpy as np

from fedlasso.federation import Disclosure, Positive, Reply, Shapes
from fedlasso.federation.messages import Count
from fedlasso.numerics import Array, Sample
from fedlasso.sites.assessing import AboutFolds
from fedlasso.sites.cells import CELL_ROWS
from fedlasso.sites.held_out import round_spread, sum_errors
from fedlasso.sites.ranks import spread_pairs
from fedlasso.sites.recalibration import BOTH, LARGE, derive, recalibrate
from fedlasso.sites.site import View

# Measures of one site, in the order of its reply.
SITE_MEASURES = ("error", "explained", "auroc", "concordance", "intercept", "slope")


class SiteSums(Reply):
    """One site's measures, their standard errors, and which are known (one) or withheld (zero)."""

    rows: Count[int]
    pairs: Positive[float]
    values: Array
    errors: Positive[Array]
    known: Positive[Array]


class SiteMeasures(AboutFolds[SiteSums]):
    """How well models predict at one site, unless too few rows or events are behind a measure."""

    discloses = Disclosure(
        "how well models predict at a site: its error, deviance explained, AUROC, concordance and "
        "calibration",
        held_out=True,
        ranks=True,
        single="the card shows how well the model predicts at each site",
    )

    def expects(self, p: int) -> Shapes:
        return dict.fromkeys(("values", "errors", "known"), (len(SITE_MEASURES),))

    def answer(self, site: View) -> SiteSums:
        found = self.predict(site)
        response = found.response
        loss = found.loss
        measured: dict[str, tuple[float, float]] = {}
        constant = response.offset
        if loss.intercept:
            whole = Sample(np.zeros((site.rows, 1)), response, loss)
            constant = constant + whole.find_effect(constant)
        errors, empty = replace(found, empty=constant).errors
        weight = response.weight
        if site.rows >= 2 * CELL_ROWS:
            own, total = (sum_errors(loss, each) for each in (errors, empty))
            spread = float(np.std(errors)) * np.sqrt(site.rows)
            measured["error"] = own / weight, round_spread(loss, spread) / weight
            if total > 0:
                ratio = own / total
                off = float(np.sqrt(((errors - ratio * empty) ** 2).sum()))
                measured["explained"] = 1 - ratio, round_spread(loss, off) / total
        pairs = 0.0
        classes = found.has_classes
        if (loss.survival or classes) and found.has_both:
            comparable, concordant = found.pairs()
            pairs = float(comparable.sum()) / 2
            if pairs > 0:
                value = float(concordant.sum()) / 2 / pairs
                name = "concordance" if loss.survival else "auroc"
                off = float(np.sqrt(spread_pairs(comparable, concordant, value)))
                measured[name] = value, off / pairs
        if loss.intercept and (found.has_both or not classes) and site.rows >= 2 * CELL_ROWS:
            fitted = recalibrate(
                lambda at: derive(loss, found.scores, response, at), loss.quadratic
            )
            if fitted.known[[BOTH, LARGE]].all():
                variances = fitted.variances
                if loss.quadratic:
                    # The noise is what recalibration leaves, without the site's shift.
                    shift, slope = fitted.at[BOTH]
                    left = loss.deviance(response.offset + shift + slope * found.scores, response)
                    variances = variances * float(left.sum()) / weight
                for name, fit, k in (("intercept", LARGE, 0), ("slope", BOTH, 1)):
                    measured[name] = float(fitted.at[fit, k]), float(variances[fit, k]) ** 0.5
        table = np.array([(*measured.get(n, (0.0, 0.0)), n in measured) for n in SITE_MEASURES])
        return SiteSums(site.rows, pairs, *(np.ascontiguousarray(each) for each in table.T))
