"""Questions about rows that were held out: how well do models predict them?"""

import numpy as np

from fedlasso.federation import Disclosure, Reply, Request
from fedlasso.federation.magnitudes import COARSE, Bound, Magnitudes
from fedlasso.federation.messages import Count, Models, Positive, Purpose, Shapes
from fedlasso.numerics import Array
from fedlasso.sites.questions import ROUNDING, bound_of_squares
from fedlasso.sites.site import View

# Powers of two that held-out rows may lie further away than the rows that train.
FURTHER = 10


class HeldOutSums(Reply):
    """Per candidate: sum of errors and number of rows; and one number on their spread.

    `tail` is the number of rows times the kurtosis of the residuals of the candidate that fits
    these rows best, told to a quarter power of two.
    """

    errors: Positive[Array]
    counts: Count[Array]
    tail: Positive[float]


class HeldOutErrors(Request[HeldOutSums]):
    """How well do candidate models (columns) predict the site's held-out rows?"""

    kind = "validation"
    discloses = Disclosure(
        "errors of models on held-out rows: sums of squares, and how far the largest stand out, "
        "roughly",
        held_out=True,
    )
    candidates: Models
    purpose: Purpose = "candidate"

    def answer(self, site: View) -> HeldOutSums:
        held_out = site.validation(self.purpose)
        errors = [held_out.errors(b) for b in self.candidates.T]
        sums = np.array([e.sum() for e in errors])
        counts = np.full(len(errors), float(held_out.m))
        return HeldOutSums(sums, counts, held_out.m * _rough_kurtosis(errors[int(sums.argmin())]))

    def expects(self, p: int) -> Shapes:
        return dict.fromkeys(("errors", "counts"), self.candidates.shape[1:])

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        rows = 2 * magnitudes.rows + FURTHER
        # A kurtosis is at most the number of rows.
        return {
            "errors": bound_of_squares(magnitudes, 2 * FURTHER),
            "counts": Bound(rows),
            "tail": Bound(2 * rows),
        }


def _rough_kurtosis(squares: Array) -> float:
    """Return the kurtosis of residuals by their squares, rounded: fourth powers tell of rows."""
    largest = squares.max(initial=0.0)
    if largest == 0.0:
        return 1.0
    share = squares / largest
    kurtosis = share.size * float((share**2).sum()) / float(share.sum()) ** 2
    return float(2.0 ** (round(4 * np.log2(kurtosis)) / 4))


class ErrorSums(Reply):
    """Per candidate: sum of errors, sum of their squares, number of rows."""

    errors: Positive[Array]
    squares: Positive[Array]
    counts: Count[Array]

    def find_contradiction(self, rows: int) -> str:
        most = np.sqrt(self.squares) * np.sqrt(self.counts)
        fits = (self.errors <= most * (1 + ROUNDING)).all()
        return "" if fits else "errors that are more than their squares allow"


class ValidationErrors(Request[ErrorSums]):
    """The same with exact fourth powers, for studies in one process: enough of them tell rows."""

    kind = "validation"
    discloses = Disclosure(
        "errors of models on held-out rows: sums of squares and of fourth powers",
        allowed=False,
        held_out=True,
    )
    candidates: Models
    purpose: Purpose = "candidate"

    def expects(self, p: int) -> Shapes:
        return dict.fromkeys(("errors", "squares", "counts"), self.candidates.shape[1:])

    def answer(self, site: View) -> ErrorSums:
        held_out = site.validation(self.purpose)
        errors = [held_out.errors(b) for b in self.candidates.T]
        sums = np.array([e.sum() for e in errors])
        squares = np.array([(e**2).sum() for e in errors])
        return ErrorSums(sums, squares, np.full(len(errors), float(held_out.m)))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        # Rows that did not train may lie far from those that did.
        fourth = 4 * (magnitudes.reach + FURTHER)
        return {
            "errors": bound_of_squares(magnitudes, 2 * FURTHER),
            "squares": Bound(fourth, coarse=COARSE + 4 * FURTHER),
            "counts": Bound(2 * magnitudes.rows + FURTHER),
        }
