"""Questions about the errors of models on held-out rows."""

import numpy as np

from fedlasso.federation import Disclosure, Models, Positive, Purpose, Reply, Request
from fedlasso.federation.magnitudes import COARSE, Bound, Magnitudes
from fedlasso.federation.messages import ERRORS, Count, R, Shapes, layout, reply_to
from fedlasso.numerics import Array, Loss
from fedlasso.sites.questions import SCHWARZ_TOLERANCE, bound_of_squares
from fedlasso.sites.site import View

# Powers of two by which held-out rows may be farther away than training rows.
FURTHER = 10
# Errors of a curved loss have so many bits below their standard error at a site: enough to choose
# and to assess models, too few to obtain a row from the sums at neighbouring models.
ERROR_BITS = 6


def rows_power(magnitudes: Magnitudes) -> int:
    """Return the exponent of a power of two that no number of held-out rows exceeds."""
    return 2 * magnitudes.rows + FURTHER


def sum_errors(loss: Loss, errors: Array) -> float:
    """Return the sum of rows' errors; that of a curved loss is rounded to its standard error.

    Sums of squares disclose second moments and no rows, however many models are asked about.
    """
    total = float(errors.sum())
    largest = float(np.abs(errors).max(initial=0.0))
    if loss.quadratic or largest == 0.0 or not np.isfinite(largest):
        return total
    spread = float(np.std(errors / largest)) * largest * np.sqrt(errors.size)
    return _round_to(total, spread)


def round_spread(loss: Loss, spread: float) -> float:
    """Return the standard error of a sum of errors; that of a curved loss has few bits."""
    return spread if loss.quadratic else _round_to(spread, spread)


def _round_to(number: float, spread: float) -> float:
    """Round a number to a fraction of a standard error, up to a power of two."""
    if spread == 0.0:
        return number
    step = np.ldexp(1.0, np.frexp(spread)[1] - ERROR_BITS)
    return float(np.rint(number / step) * step)


class AboutErrors(Request[R]):
    """A question about the errors of candidate models (columns) on held-out rows."""

    kind = "validation"
    candidates: Models
    purpose: Purpose = "candidate"

    def errors(self, site: View) -> tuple[list[Array], Array, Array]:
        """Return each candidate's errors by row, their sums, and the numbers of rows."""
        held_out = site.validation(self.purpose)
        errors = [held_out.errors(b) for b in self.candidates.T]
        sums = np.array([sum_errors(held_out.loss, e) for e in errors])
        return errors, sums, np.full(len(errors), float(held_out.m))

    def expects(self, p: int) -> Shapes:
        arrays = [name for name, kind in layout(reply_to(type(self))) if kind == "array"]
        return dict.fromkeys(arrays, self.candidates.shape[1:])


class HeldOutSums(Reply):
    """Per candidate: sum of errors and number of rows; and one number on their spread.

    `tail` is the number of rows times the kurtosis of the residuals of the candidate that fits
    these rows best, rounded to a quarter power of two.
    """

    errors: Positive[Array]
    counts: Count[Array]
    tail: Positive[float]


class HeldOutErrors(AboutErrors[HeldOutSums]):
    """Sums of squared errors of candidate models (columns) on the site's held-out rows."""

    discloses = Disclosure(
        f"errors of models on held-out rows: sums of {ERRORS}, and roughly how far the largest "
        "stand out",
        held_out=True,
    )

    def answer(self, site: View) -> HeldOutSums:
        errors, sums, counts = self.errors(site)
        return HeldOutSums(sums, counts, counts[0] * _rough_kurtosis(errors[int(sums.argmin())]))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        rows = rows_power(magnitudes)
        squares = bound_of_squares(magnitudes, 2 * FURTHER)
        # A kurtosis is at most the number of rows.
        return {"errors": squares, "counts": Bound(rows), "tail": Bound(2 * rows)}


def _rough_kurtosis(squares: Array) -> float:
    """Return the kurtosis of residuals from their squares, rounded: fourth powers disclose rows."""
    largest = squares.max(initial=0.0)
    if largest == 0.0:
        return 1.0
    scaled = squares / largest
    kurtosis = scaled.size * float((scaled**2).sum()) / float(scaled.sum()) ** 2
    return round_roughly(kurtosis)


def round_roughly(number: float) -> float:
    """Return a number of at least zero rounded to a quarter power of two."""
    return float(2.0 ** (round(4 * np.log2(number)) / 4)) if number > 0 else 0.0


class ErrorSums(Reply):
    """Per candidate: sum of errors, sum of their squares, number of rows."""

    errors: Positive[Array]
    squares: Positive[Array]
    counts: Count[Array]

    def find_contradiction(self, rows: int) -> str:
        most = np.sqrt(self.squares) * np.sqrt(self.counts)
        fits = (self.errors <= most * (1 + SCHWARZ_TOLERANCE)).all()
        return "" if fits else "errors that are more than their squares allow"


class ValidationErrors(AboutErrors[ErrorSums]):
    """The same with exact fourth powers, for studies in one process: many of them disclose rows."""

    discloses = Disclosure(
        f"errors of models on held-out rows: sums of {ERRORS} and of their squares",
        allowed=False,
        held_out=True,
    )

    def answer(self, site: View) -> ErrorSums:
        errors, _, counts = self.errors(site)
        sums = np.array([e.sum() for e in errors])
        return ErrorSums(sums, np.array([(e**2).sum() for e in errors]), counts)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        squares = bound_of_squares(magnitudes, 2 * FURTHER)
        fourth = Bound(4 * (magnitudes.reach + FURTHER), coarse=COARSE + 4 * FURTHER)
        return {"errors": squares, "squares": fourth, "counts": Bound(rows_power(magnitudes))}
