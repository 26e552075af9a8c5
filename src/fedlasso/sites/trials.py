"""Questions about many models at once: how well they fit, and how they predict held-out rows."""

import numpy as np

from fedlasso.federation import Disclosure, Models, Positive, Reply, Request, Shapes
from fedlasso.federation.magnitudes import COARSE, Bound, Magnitudes
from fedlasso.federation.messages import ERRORS, Vectors
from fedlasso.numerics import Array
from fedlasso.sites.held_out import FURTHER, AboutErrors
from fedlasso.sites.questions import bound_of_gradient, bound_of_squares
from fedlasso.sites.site import View

# Factors of the slopes whose dual values are sent.
SCALES = (0.5, 0.9)


class TrialSums(Reply):
    """Per model (columns), m_j times the gradient and the loss, and dual values, one per scale."""

    gradient: Vectors
    losses: Array
    duals: Array


class TrialsAt(Request[TrialSums]):
    """Gradient and loss at models (columns), and dual values of their slopes times `SCALES`."""

    discloses = Disclosure("gradients, losses and dual values of models: sums over rows")
    models: Models

    def expects(self, p: int) -> Shapes:
        count = self.models.shape[1]
        return {
            "gradient": self.models.shape,
            "losses": (count,),
            "duals": (len(SCALES), count),
        }

    def answer(self, site: View) -> TrialSums:
        f = site.training
        found = [f.value_and_gradient(b) for b in self.models.T]
        duals = np.array([[f.dual(b, scale) for b in self.models.T] for scale in SCALES])
        losses = np.array([f.m * value for value, _ in found])
        gradient = np.column_stack([f.m * slopes for _, slopes in found])
        steps = len(found)
        return TrialSums(gradient, losses, duals, steps=steps, operations=site.operations(steps))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        sums = Bound(magnitudes.slopes + magnitudes.reach, words=1, coarse=COARSE)
        return {"gradient": bound_of_gradient(magnitudes), "losses": sums, "duals": sums}


class DevianceSums(Reply):
    """Per model, the sum of errors on held-out rows."""

    errors: Positive[Array]


class DeviancesAt(AboutErrors[DevianceSums]):
    """Errors of models (columns) on the site's held-out rows."""

    discloses = Disclosure(f"errors of models on held-out rows: sums of {ERRORS}", held_out=True)

    def answer(self, site: View) -> DevianceSums:
        _, sums, _ = self.errors(site)
        return DevianceSums(sums)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        return {"errors": bound_of_squares(magnitudes, 2 * FURTHER)}
