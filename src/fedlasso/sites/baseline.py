"""Questions about what is a site's own: its baseline hazard, and its intercept."""

import numpy as np

from fedlasso.federation import Disclosure, Reply, Request
from fedlasso.federation.magnitudes import COARSE, Bound, Magnitudes
from fedlasso.federation.messages import ModelVector, Positive, Shapes, Times
from fedlasso.numerics import Array, LeastSquares
from fedlasso.sites.site import View

# A power of two that intercepts stay below, but for least squares. Beyond it the rows of a site do
# not tell its intercept: all of them have the same response, and it is as good as infinite.
LARGEST_EFFECT = 6


class Hazard(Reply):
    """The cumulative baseline hazard of a site at some times."""

    hazard: Positive[Array]


class BaselineAt(Request[Hazard]):
    """How many events would a row of linear predictor zero have had by these times?

    Breslow's estimator: at each time of an event, the weight of the events over the risk of all
    rows that are still there.
    """

    kind = "baseline"
    discloses = Disclosure(
        "the site's own baseline hazard at some times: when its events were, roughly",
        allowed=False,
        single="every site has a baseline of its own",
    )
    b: ModelVector
    times: Times

    def expects(self, p: int) -> Shapes:
        return {"hazard": self.times.shape}

    def answer(self, site: View) -> Hazard:
        f = site.training
        sets = f.response.risk_sets
        logs = np.log(f.response.weights) + f.predictor(self.b)
        log_risk = np.logaddexp.accumulate(logs[sets.order][::-1])[::-1][sets.start]
        steps = np.append(0.0, np.cumsum(sets.masses * np.exp(-log_risk)))
        passed = np.searchsorted(sets.moments, self.times, side="right")
        return Hazard(steps[passed], steps=1, operations=site.operations(1) // 2)


class EffectSums(Reply):
    """A site's own intercept times the weight of its rows, and that weight."""

    effects: float
    weight: Positive[float]


class EffectAt(Request[EffectSums]):
    """What is the best intercept of the site's own at b? Where its rows do not tell, none."""

    kind = "certificate"
    discloses = Disclosure("the mean over all rows of the sites' own intercepts, and their weight")
    b: ModelVector

    def answer(self, site: View) -> EffectSums:
        f = site.training
        effect = f.effect_at(self.b)
        if isinstance(f, LeastSquares):
            weight = f.given[1].weight if f.given is not None else 0.0
        else:
            weight = f.response.weight if abs(effect) < 2.0**LARGEST_EFFECT else 0.0
        return EffectSums(weight * effect, weight, steps=1, operations=site.operations(1) // 2)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        rows = 2 * magnitudes.rows
        most = max(rows + LARGEST_EFFECT, magnitudes.rows + magnitudes.reach)
        return {"effects": Bound(most, coarse=COARSE), "weight": Bound(rows)}
