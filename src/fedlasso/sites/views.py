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
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import CannotFit, FedLassoError, SameResponse
from fedlasso.federation import Around, Disclosure, Federation, Positive, Reply, Request, Shapes
from fedlasso.federation.codec import encode
from fedlasso.federation.federation import Prepared
from fedlasso.federation.fixed_point import prepare_words, reaching, total_in_words
from fedlasso.federation.magnitudes import Bound, Magnitudes, power_above, powers_above
from fedlasso.federation.messages import Centre, Count, Factors, R, ResponseCentre, Split, reply_to
from fedlasso.numerics import Array, find_loss
from fedlasso.numerics.table import find_far
from fedlasso.sites.rows import PURPOSES
from fedlasso.sites.site import INTERCEPT, Site
from fedlasso.sites.site_weights import read_site_weight

# Powers of two from one letter to the next: sizes are sent to a factor of about a million.
STEP = 20
LETTERS = string.ascii_uppercase + string.ascii_lowercase


class Orders(Reply):
    """Rows, whether values are missing, and letters for the columns, the response, the weights."""

    rows: int
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
        words: Literal[1, 2] = 1 if weight <= 0 else 2
        return {
            "rows": Bound(rows),
            "weight": Bound(heavy),
            "sums": Bound(np.array(powers[:-1]) + heavy, words),
            "y_sum": Bound(int(powers[-1]) + heavy),
            "missing": Bound(heavy, words),
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


def share_intercept(view: Viewed) -> Viewed:
    """Return a view with one intercept for all sites in place of their own, as new rows have."""
    own = view.view
    if not own.effects:
        return view
    shared = replace(own, effects=False)
    if view.columns[-1] == INTERCEPT:
        # The column of ones takes part again; its norm is that of the rows.
        factors = np.append(own.factors[:-1], 1.0)
        ones = int(own.powers[0])
        powers = (*own.powers[:-2], str(ones), own.powers[-1])
        shared = replace(
            shared, factors=factors, powers=powers, terms=(*own.terms[:-1], str(ones + 1))
        )
    view.inner.ask(shared)
    return Viewed(view.inner, shared)


@dataclass(frozen=True, eq=False)
class Scaling:
    """Means and factors of a view, and its rows.

    Attributes
    ----------
    means, factors : arrays (p,); a factor of zero marks a constant column
    sizes : training rows of every site
    held_out : held-out rows of all sites, for the penalty and for the candidates
    vectors : vectors of p numbers that each site sent for it
    intercept : whether the last column is the intercept
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
        return sum(self.sizes)

    def original(self, b: Array) -> tuple[Array, float]:
        """Return coefficients and intercept on the original scale."""
        coefficients = b * self.factors
        shift = self.y_mean - float(self.means @ coefficients)
        if not self.intercept:
            return coefficients, shift
        return coefficients[:-1], shift + float(coefficients[-1])


def ask_sizes(federation: Federation) -> tuple[str, Magnitudes, bool]:
    """Return letters for the sizes of all sites, a bound of the rows, and if values are missing."""
    orders = federation.ask(ColumnSizes())
    columns = zip(*(o.letters for o in orders), strict=True)
    letters = "".join(max(each, key=LETTERS.index) for each in columns)
    rows = power_above(sum(o.rows for o in orders))
    sizes = Magnitudes.unknown(len(federation.columns), rows)
    return letters, sizes, any(o.missing for o in orders)


def standardise(
    federation: Federation, split: str = "", *, centre: bool = True, scale: bool = True
) -> tuple[Viewed, Scaling]:
    """Compute means and scales from sums over sites, and return the federation's view with them.

    Each site sends three vectors of p numbers (a fourth if missing values are counted) and a few
    scalars. Centring gives an unpenalised intercept; a constant column then has factor zero.
    """
    loss = find_loss(federation.loss)
    letters, sizes, missing = ask_sizes(federation)
    p = len(federation.columns)
    weights = federation.site_weights
    totals = total_in_words(federation, ColumnSums(split, letters, missing, weights), sizes)
    m = totals.rows
    if m == 0:
        raise CannotFit("no training rows are left; hold out less, or give more rows")
    if not loss.varies(totals.y_sum, totals.weight):
        raise SameResponse(
            f"the response is the same in all {'training ' * bool(split)}rows of all sites, so "
            f"there is nothing to fit; give {loss.wants}, not all alike"
        )
    # Exactly one where all weights are one.
    weight_scale = m / totals.weight
    present = np.full(p, totals.weight)
    if totals.missing is not None:
        present -= totals.missing
    means = totals.sums / np.where(present > 0, present, 1.0)
    y_mean = totals.y_sum / totals.weight if loss.centres else 0.0
    centred = CentredSquares(means, split, y_mean, letters, weights)
    spread = total_in_words(federation, centred, sizes)
    squares = weight_scale * spread.squares
    y_squares = weight_scale * spread.y_squares
    # A column varies if its standard deviation is above this fraction of its mean.
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
        # The column of ones is not standardised.
        means[-1] = 0.0
        # Sites' own intercepts take its place.
        factors[-1] = 0.0 if federation.site_effects else 1.0
        squares[-1] = about_zero[-1]
    norms = np.sqrt(squares) * factors
    # The norm of a column plus that of its mean in every row is at most twice the column's norm. A
    # column with a mean far from zero is centred value by value.
    terms = 2 * np.where(find_far(means, factors), norms, np.sqrt(about_zero) * factors)
    rows_power = power_above(math.sqrt(m))
    y_power = power_above(loss.slope_size(m, math.sqrt(y_squares)))
    sizes = Magnitudes(rows_power, powers_above(norms), y_power, 0, powers_above(terms))
    exponents = (tuple(map(str, sizes.products)), tuple(map(str, sizes.terms)))
    effects = federation.site_effects
    request = Standardise(means, factors, y_mean, split, *exponents, weight_scale, weights, effects)
    replies = federation.ask(request)
    rows = tuple(s.rows for s in replies)
    held_out = (sum(s.penalty for s in replies), sum(s.candidate for s in replies))
    vectors = 3 if totals.missing is None else 4
    scaling = Scaling(means, factors, y_mean, rows, held_out, vectors, ends_in_ones)
    return Viewed(federation, request), scaling
