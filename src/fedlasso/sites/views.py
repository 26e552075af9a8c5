"""Views: the same records, split and standardised, without pooling any.

Sites send sums, the server agrees on means and scales, and every site answers from then on about
its records centred and scaled by them. A view has a name, the hash of all that defines it; a
question asked ``on`` that name depends on the name and on the site's records only. What defines
it is kept in the site's memory, so it outlives a restart wherever that memory has a folder.
"""

import hashlib
import math
import string
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import CannotFit, FedLassoError
from fedlasso.federation import Around, Disclosure, Federation, Positive, Reply, Request, Shapes
from fedlasso.federation.codec import encode
from fedlasso.federation.fixed_point import reaching, total_in_words
from fedlasso.federation.magnitudes import Bound, Magnitudes, power_above, powers_above
from fedlasso.federation.messages import Centre, Count, Factors, R, ResponseCentre, Split, reply_to
from fedlasso.numerics import Array, find_loss
from fedlasso.sites.rows import PURPOSES
from fedlasso.sites.site import INTERCEPT, Site
from fedlasso.sites.site_weights import read_worth

# Powers of two from one letter to the next: sizes are told to a factor of about a million.
STEP = 20
LETTERS = string.ascii_uppercase + string.ascii_lowercase


class Orders(Reply):
    """Rows, whether values are missing, and a letter per column, for the response and the weights.

    A letter is the order of the largest number.
    """

    rows: int
    missing: bool
    letters: str


class ColumnSizes(Request[Orders]):
    """How large are the numbers of the columns, to a factor of about a million?"""

    kind = "scaling"
    discloses = Disclosure(
        "the number of rows, whether values are missing, and the order of the largest number of "
        "every column, to a factor of a million",
        single="a maximum is not a sum",
    )

    def answer(self, site: Site) -> Orders:
        largest = np.append(site.table.largest, np.abs(site.told).max(initial=0.0))
        heaviest = math.ceil(math.log2(site.response.weights.max(initial=0.0)))
        powers = np.append(powers_above(largest), heaviest)
        orders = -(-powers // STEP) + len(LETTERS) // 2
        letters = "".join(LETTERS[order] for order in orders)
        return Orders(site.table.n, site.table.holes is not None, letters)


def _powers(letters: str) -> NDArray[np.int64]:
    """Powers of two that the numbers of columns stay below, by their letters."""
    orders = np.array([LETTERS.index(letter) for letter in letters], np.int64)
    return STEP * (orders - len(LETTERS) // 2)


class Totals(Reply):
    """Sums over the training rows of a split, by weight, and of missing values if that is asked."""

    rows: Count[int]
    weight: Positive[float]
    sums: Array
    y_sum: float
    missing: Positive[Array | None] = None


class ColumnSums(Request[Totals]):
    """What do the columns and the response add up to?

    `letters` bound the numbers as `ColumnSizes` has them; `missing` asks to count missing values.
    """

    kind = "scaling"
    discloses = Disclosure(
        "sums of every column and of the response, the number of rows and of missing values"
    )
    split: Split = ""
    letters: str = ""
    missing: bool = False
    worth: tuple[str, ...] = ()

    def answer(self, site: Site) -> Totals:
        weights = read_worth(self.worth, site.name) * site.weights(self.split)
        missing = site.table.missing(weights)
        if missing.any() and not self.missing:
            raise FedLassoError("values are missing here, and the question does not count them")
        rows = int((weights > 0).sum())
        sums = (site.table.inner(weights), float((weights * site.told).sum()))
        counted = missing if self.missing else None
        work = site.operations(1) // 2
        return Totals(rows, float(weights.sum()), *sums, counted, steps=1, operations=work)

    def expects(self, p: int) -> Shapes:
        return {"sums": (p,), "missing": (p,) if self.missing else None}

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        # Before there is a view, the reach is that of the number of rows.
        rows = magnitudes.reach
        *powers, weight = _powers(self.letters)
        heavy = rows + int(weight)
        return {
            "rows": Bound(rows),
            "weight": Bound(heavy),
            "sums": Bound(np.array(powers[:-1]) + heavy, words=1 if weight <= 0 else 2),
            "y_sum": Bound(int(powers[-1]) + heavy),
            "missing": Bound(heavy, words=1 if weight <= 0 else 2),
        }


class Spread(Reply):
    """Sums of squares about given means, of every column and of the response."""

    squares: Positive[Array]
    y_squares: Positive[float]


class CentredSquares(Request[Spread]):
    """How much do the columns and the response spread about these means?"""

    kind = "scaling"
    discloses = Disclosure("the sum of squares of every column and of the response about a mean")
    means: Centre
    split: Split = ""
    y_mean: ResponseCentre = 0.0
    letters: str = ""
    worth: tuple[str, ...] = ()

    def answer(self, site: Site) -> Spread:
        weights = read_worth(self.worth, site.name) * site.weights(self.split)
        squares = site.table.squares(self.means, weights)
        deviations = site.told - self.y_mean
        y_squares = float((weights * deviations * deviations).sum())
        return Spread(squares, y_squares, steps=1, operations=site.operations(1))

    def expects(self, p: int) -> Shapes:
        return {"squares": (p,)}

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        # No deviation from a mean is more than twice the largest number.
        *powers, weight = _powers(self.letters)
        squares = 2 * (np.array(powers) + 1) + magnitudes.reach + int(weight)
        return {"squares": Bound(squares[:-1]), "y_squares": Bound(int(squares[-1]))}


class Sizes(Reply):
    """Training rows of a view, and rows held out for each purpose."""

    rows: Count[int]
    penalty: Count[int]
    candidate: Count[int]


class Standardise(Request[Sizes]):
    """Keep a view: (x - means) * factors and y - y_mean, on the rows of a split.

    Rows count as their weights times `share`, so that they weigh one on average over all sites, and
    times what a row of their site is worth, where `worth` says so.
    `powers` are those of the view's `Magnitudes`, of (1, x, y), and `terms` those of its columns
    before they are centred, as decimal numbers.
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
    share: float = 1.0
    worth: tuple[str, ...] = ()

    @property
    def magnitudes(self) -> Magnitudes:
        """How large sums over the view can be."""
        try:
            rows, *columns, response = map(int, self.powers)
            terms = np.array([int(power) for power in self.terms], np.int64)
            if len(terms) != len(columns):
                raise ValueError("as many terms as columns")
        except (ValueError, OverflowError):
            raise FedLassoError(
                "a view must say how large its numbers are; update fedlasso"
            ) from None
        return Magnitudes(rows, np.array(columns, np.int64), response, response, terms)

    @property
    def name(self) -> str:
        """The name that questions are asked on."""
        return hashlib.sha256(encode(self)).hexdigest()

    def answer(self, site: Site) -> Sizes:
        site.keep_view(self.name, self)
        view = site.view(self.name)
        held = (view.held_out[p].m if p in view.held_out else 0 for p in PURPOSES)
        return Sizes(view.rows, *held)


class Viewed(Around):
    """A federation whose sites answer from one view; they add up whole numbers."""

    def __init__(self, federation: Federation, view: Standardise) -> None:
        super().__init__(federation)
        self.view = view
        self.name = view.name
        self._magnitudes = view.magnitudes.of_loss(federation.loss)

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        """Ask on the view."""
        return self.inner.replies(replace(request, on=self.name))

    def total(self, request: Request[R]) -> R:
        """Ask on the view, and add up; the largest of several numbers is no sum."""
        asked = replace(request, on=self.name)
        if reply_to(type(request)).adds == "max":
            return self.inner.total(asked)
        return total_in_words(self.inner, asked, reaching(self._magnitudes, request))


@dataclass(frozen=True, eq=False)
class Scaling:
    """What a view was centred and scaled by, and its rows.

    Attributes
    ----------
    means, factors : arrays (p,); a factor of zero marks a constant column
    sizes : training rows of every site
    held_out : held-out rows of all sites, for the penalty and for the candidates
    vectors : vectors of p numbers that each site sent for it
    intercept : whether the last column is the intercept's
    """

    means: Array
    factors: Array
    y_mean: float
    sizes: tuple[int, ...]
    held_out: tuple[int, int]
    vectors: int
    intercept: bool = False

    @property
    def rows(self) -> int:
        """Training rows of all sites."""
        return sum(self.sizes)

    def original(self, b: Array) -> tuple[Array, float]:
        """Coefficients and intercept for records as they are."""
        coefficients = b * self.factors
        moved = self.y_mean - float(self.means @ coefficients)
        if not self.intercept:
            return coefficients, moved
        return coefficients[:-1], moved + float(coefficients[-1])


def standardise(
    federation: Federation, split: str = "", *, centre: bool = True, scale: bool = True
) -> tuple[Viewed, Scaling]:
    """Agree on means and scales by sums alone, and return the federation seen through them.

    Each site sends three vectors of p numbers (a fourth where missing values are counted) and a few
    scalars. Centring makes an intercept that no penalty touches; a constant column then gets
    factor zero.
    """
    loss = find_loss(federation.loss)
    orders = federation.ask(ColumnSizes())
    letters = "".join(
        max(told, key=LETTERS.index) for told in zip(*(o.letters for o in orders), strict=True)
    )
    p = len(federation.columns)
    sizes = Magnitudes.unknown(p, power_above(sum(o.rows for o in orders)))
    missing = any(o.missing for o in orders)
    worth = federation.worth
    totals = total_in_words(federation, ColumnSums(split, letters, missing, worth), sizes)
    m = totals.rows
    if m == 0:
        raise CannotFit("no training rows are left; hold out less, or give more rows")
    if not loss.varies(totals.y_sum, totals.weight):
        raise CannotFit(
            f"the response is the same in all rows{' that train' * bool(split)} of all sites, so "
            f"there is nothing to fit; give {loss.wants}, not all alike"
        )
    # Weights that are all one add up to the number of rows, to the last digit.
    share = m / totals.weight
    present = np.full(p, totals.weight)
    if totals.missing is not None:
        present -= totals.missing
    means = totals.sums / np.where(present > 0, present, 1.0)
    y_mean = totals.y_sum / totals.weight if loss.centres else 0.0
    asked = CentredSquares(means, split, y_mean, letters, worth)
    spread = total_in_words(federation, asked, sizes)
    squares = share * spread.squares
    y_squares = share * spread.y_squares
    # A column varies when its standard deviation is above this share of its mean.
    varies = squares > m * (1e-12 * means) ** 2
    deviations = np.sqrt(squares / m) if scale else np.ones(p)
    factors = np.divide(1.0, deviations, out=np.ones(p), where=varies)
    about_zero = squares + m * means**2
    if centre:
        factors[~varies] = 0.0
    else:
        squares = about_zero
        y_squares += m * y_mean**2
        means = np.zeros(p)
        y_mean = 0.0
    ends_in_ones = federation.columns[-1] == INTERCEPT
    if ends_in_ones:
        # The column of ones stays what it is.
        means[-1] = 0.0
        factors[-1] = 1.0
        squares[-1] = about_zero[-1]
    norms = np.sqrt(squares) * factors
    # A column as it is, and its mean in every row, are no larger than twice the column as it is.
    terms = 2 * np.sqrt(about_zero) * factors
    rows_power = power_above(math.sqrt(m))
    y_power = power_above(loss.slope_size(m, math.sqrt(y_squares)))
    sizes = Magnitudes(rows_power, powers_above(norms), y_power, 0, powers_above(terms))
    powers = tuple(map(str, sizes.products))
    terms_told = tuple(map(str, sizes.terms))
    request = Standardise(means, factors, y_mean, split, powers, terms_told, share, worth)
    replies = federation.ask(request)
    rows = tuple(s.rows for s in replies)
    held_out = (sum(s.penalty for s in replies), sum(s.candidate for s in replies))
    vectors = 3 if totals.missing is None else 4
    scaling = Scaling(means, factors, y_mean, rows, held_out, vectors, ends_in_ones)
    return Viewed(federation, request), scaling
