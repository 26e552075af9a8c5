"""Views: the records split and standardised, without pooling any.

Sites send sums, the server computes means and scales, and from then on every site answers about
its records centred and scaled by them. A view's name is the hash of its definition; the reply to a
question asked ``on`` that name depends on the name and on the site's records only. The definition
is kept in the site's memory, so it outlives a restart if that memory has a folder.
"""

import hashlib
import math
import string
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError
from fedlasso.federation import Around, Disclosure, Federation, Positive, Reply, Request, Shapes
from fedlasso.federation.codec import encode
from fedlasso.federation.federation import Prepared
from fedlasso.federation.fixed_point import prepare_words, reaching
from fedlasso.federation.magnitudes import Bound, Magnitudes, powers_above
from fedlasso.federation.messages import Centre, Count, Factors, R, ResponseCentre, Split, reply_to
from fedlasso.numerics import Array
from fedlasso.sites.rows import PURPOSES
from fedlasso.sites.site import Site
from fedlasso.sites.site_weights import read_site_weight

# Powers of two from one letter to the next: sizes are sent to a factor of about a million.
STEP = 20
LETTERS = string.ascii_uppercase + string.ascii_lowercase


class Orders(Reply):
    """Rows, whether values are missing, and letters for the columns, the response, the weights."""

    rows: Count[int]
    missing: bool
    letters: str


class ColumnSizes(Request[Orders]):
    """Order of magnitude of the columns, the response and the weights."""

    kind = "scaling"
    discloses = Disclosure(
        "the number of rows, whether values are missing, and the order of the largest number of "
        "every column, to a factor of a million",
        single="a maximum is not a sum",
    )

    def answer(self, site: Site) -> Orders:
        largest = np.append(site.table.largest, np.abs(site.disclosed).max(initial=0.0))
        heaviest = math.ceil(math.log2(site.response.weights.max(initial=0.0)))
        powers = np.append(powers_above(largest), heaviest)
        orders = -(-powers // STEP) + len(LETTERS) // 2
        letters = "".join(LETTERS[order] for order in orders)
        return Orders(site.table.n, site.table.holes is not None, letters)


def read_powers(letters: str) -> NDArray[np.int64]:
    """Return the exponents of powers of two that letters stand for."""
    orders = np.array([LETTERS.index(letter) for letter in letters], np.int64)
    return STEP * (orders - len(LETTERS) // 2)


class Totals(Reply):
    """Weighted sums over the training rows of a split, and of missing values if requested."""

    rows: Count[int]
    weight: Positive[float]
    sums: Array
    y_sum: float
    missing: Positive[Array | None] = None


class ColumnSums(Request[Totals]):
    """Sums of the columns and the response, bounded by `letters`, and counts of missing values."""

    kind = "scaling"
    discloses = Disclosure(
        "sums of every column and of the response, the number of rows and of missing values"
    )
    split: Split = ""
    letters: str = ""
    missing: bool = False
    site_weights: tuple[str, ...] = ()

    def answer(self, site: Site) -> Totals:
        weights = read_site_weight(self.site_weights, site.name) * site.weights(self.split)
        missing = site.table.missing(weights)
        if missing.any() and not self.missing:
            raise FedLassoError("values are missing here, and the question does not count them")
        rows = int((weights > 0).sum())
        sums = (site.table.inner(weights), float((weights * site.disclosed).sum()))
        counted = missing if self.missing else None
        work = site.operations(1) // 2
        return Totals(rows, float(weights.sum()), *sums, counted, steps=1, operations=work)

    def expects(self, p: int) -> Shapes:
        return {"sums": (p,), "missing": (p,) if self.missing else None}

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        # Before there is a view, the reach is that of the number of rows.
        rows = magnitudes.reach
        *powers, weight = read_powers(self.letters)
        heavy = rows + int(weight)
        # Without weights they are counts.
        words: Literal[1, 2] = 1 if weight <= 0 else 2
        return {
            "rows": Bound(rows),
            "weight": Bound(heavy),
            # Squares about a mean are computed from these.
            "sums": Bound(np.array(powers[:-1]) + heavy),
            "y_sum": Bound(int(powers[-1]) + heavy),
            "missing": Bound(heavy, words),
        }


class ResponseTotals(Reply):
    """Training rows of a split, their weight, and the weighted sum of the response."""

    rows: Count[int]
    weight: Positive[float]
    y_sum: float


class ResponseSums(Request[ResponseTotals]):
    """The sum of the response over the training rows of a split, bounded by `letters`."""

    kind = "scaling"
    discloses = Disclosure("the sum of the response and the number of rows")
    split: Split = ""
    letters: str = ""
    site_weights: tuple[str, ...] = ()

    def answer(self, site: Site) -> ResponseTotals:
        weights = read_site_weight(self.site_weights, site.name) * site.weights(self.split)
        y_sum = float((weights * site.disclosed).sum())
        return ResponseTotals(int((weights > 0).sum()), float(weights.sum()), y_sum)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        *_, response, weight = map(int, read_powers(self.letters))
        heavy = magnitudes.reach + weight
        return {
            "rows": Bound(magnitudes.reach),
            "weight": Bound(heavy),
            "y_sum": Bound(response + heavy),
        }


class Spread(Reply):
    squares: Positive[Array]
    y_squares: Positive[float]


class CentredSquares(Request[Spread]):
    """Sums of squared deviations of the columns and the response from given means."""

    kind = "scaling"
    discloses = Disclosure("the sum of squares of every column and of the response about a mean")
    means: Centre
    split: Split = ""
    y_mean: ResponseCentre = 0.0
    letters: str = ""
    site_weights: tuple[str, ...] = ()

    def answer(self, site: Site) -> Spread:
        weights = read_site_weight(self.site_weights, site.name) * site.weights(self.split)
        squares = site.table.squares(self.means, weights)
        deviations = site.disclosed - self.y_mean
        y_squares = float((weights * deviations * deviations).sum())
        return Spread(squares, y_squares, steps=1, operations=site.operations(1))

    def expects(self, p: int) -> Shapes:
        return {"squares": (p,)}

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        # No deviation from a mean is more than twice the largest number.
        *powers, weight = read_powers(self.letters)
        squares = 2 * (np.array(powers) + 1) + magnitudes.reach + int(weight)
        return {"squares": Bound(squares[:-1]), "y_squares": Bound(int(squares[-1]))}


class Sizes(Reply):
    """Training rows of a view, and rows held out for each purpose."""

    rows: Count[int]
    penalty: Count[int]
    candidate: Count[int]


class Standardise(Request[Sizes]):
    """Define a view: (x - means) * factors and y - y_mean, on the rows of a split.

    Row weights are multiplied by `weight_scale`, so that they are one on average over all sites,
    and by their site's weight. With `effects` every site has its own intercept. `powers` are the
    exponents of the view's `Magnitudes` for (1, x, y), and `terms` those of the numbers that its
    columns are computed from, as decimal texts.
    """

    kind = "scaling"
    discloses = Disclosure(
        "the numbers of training and held-out rows", single="sites are listed by their rows"
    )
    means: Centre
    factors: Factors
    y_mean: ResponseCentre
    split: Split = ""
    powers: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    weight_scale: float = 1.0
    site_weights: tuple[str, ...] = ()
    effects: bool = False

    @property
    def magnitudes(self) -> Magnitudes:
        """Bounds on sums over the view."""
        try:
            rows, *columns, response = map(int, self.powers)
            terms = np.array([int(power) for power in self.terms], np.int64)
            if len(terms) != len(columns):
                raise ValueError("as many terms as columns")
        except (ValueError, OverflowError):
            raise FedLassoError("a view must bound its numbers; update fedlasso") from None
        return Magnitudes(rows, np.array(columns, np.int64), response, response, terms)

    @property
    def name(self) -> str:
        """The view's name, for `Request.on`."""
        return hashlib.sha256(encode(self)).hexdigest()

    def answer(self, site: Site) -> Sizes:
        site.keep_view(self.name, self)
        view = site.view(self.name)
        held = (view.held_out[p].m if p in view.held_out else 0 for p in PURPOSES)
        return Sizes(view.rows, *held)


class Viewed(Around):
    """A federation whose sites answer from one view; totals are added up as integers."""

    def __init__(self, federation: Federation, view: Standardise) -> None:
        super().__init__(federation)
        self.view = view
        self.name = view.name
        self._magnitudes = view.magnitudes.of_loss(federation.loss)

    def on_split(self, split: str) -> "Viewed":
        """Return a view of other rows, with the same means and scales; sites are to define it.

        The bounds on sums over all rows hold for any of them.
        """
        return Viewed(self.inner, replace(self.view, split=split))

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        return self.inner.replies(replace(request, on=self.name))

    def replies_together(self, requests: Sequence[Request[Any]]) -> tuple[tuple[Reply, ...], ...]:
        return self.inner.replies_together([replace(r, on=self.name) for r in requests])

    def prepare(self, request: Request[Any], own: bool = False) -> Prepared:
        """Ask on the view, and add up in words; a maximum and own replies are sent as they are."""
        on_view = replace(request, on=self.name)
        if own or reply_to(type(request)).adds == "max":
            return self.inner.prepare(on_view, own)
        return prepare_words(self.inner, on_view, reaching(self._magnitudes, request))
