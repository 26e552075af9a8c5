"""Agree on means and scales of the sites' rows, for many splits in the same few round trips.

First the orders of magnitude, then sums and squares about zero, then the definition of the views.
Squares about a mean are asked only if a column's mean is so far from zero that those about zero do
not determine them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fedlasso.errors import CannotFit, SameResponse
from fedlasso.federation import Federation, Prepared, Request, ask_together
from fedlasso.federation.fixed_point import prepare_words
from fedlasso.federation.magnitudes import Magnitudes, power_above, powers_above
from fedlasso.numerics import Array, find_loss
from fedlasso.numerics.table import find_far
from fedlasso.sites.site import INTERCEPT
from fedlasso.sites.views import (
    LETTERS,
    CentredSquares,
    ColumnSizes,
    ColumnSums,
    Orders,
    ResponseSums,
    ResponseTotals,
    Spread,
    Standardise,
    Totals,
    Viewed,
)

# Squares about zero may be this many times those about the mean: 12 bits are lost.
MOST_TIMES = 2.0**12


def share_intercept(view: Viewed) -> Viewed:
    """Return a view with one intercept for all sites in place of their own, as new rows have."""
    shared = with_shared_intercept(view)
    if shared is not view:
        view.inner.ask(shared.view)
    return shared


def with_shared_intercept(view: Viewed) -> Viewed:
    """Return the view of `share_intercept`, which is yet to be defined at the sites."""
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


class ColumnOrders(NamedTuple):
    """Letters for the sizes of all sites, a bound of the rows, if values are missing, and rows."""

    letters: str
    bound: Magnitudes
    missing: bool
    rows: tuple[int, ...]


def ask_orders(federation: Federation) -> ColumnOrders:
    """Ask for the order of magnitude of every column."""
    return read_orders(federation.ask(ColumnSizes()), len(federation.columns))


def read_orders(orders: Sequence[Orders], p: int) -> ColumnOrders:
    """Return the largest order of magnitude of each of p columns over all sites."""
    columns = zip(*(o.letters for o in orders), strict=True)
    letters = "".join(max(each, key=LETTERS.index) for each in columns)
    rows = tuple(o.rows for o in orders)
    bound = Magnitudes.unknown(p, power_above(sum(rows)))
    return ColumnOrders(letters, bound, any(o.missing for o in orders), rows)


@dataclass(frozen=True, eq=False)
class _Summary:
    """Means and squares about them, of columns and response, and vectors sent for them."""

    means: Array
    y_mean: float
    squares: Array
    y_squares: float
    vectors: int


class Standardiser:
    """Standardises the rows of splits; whatever the sites have sent once is not asked again.

    Attributes
    ----------
    federation : the sites
    vectors : vectors of p numbers that each site has sent so far

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, Ledger, Site
    >>> from fedlasso.sites import Standardiser, folds
    >>> rng = np.random.default_rng(0)
    >>> ledger = Ledger(InProcess([Site("a", rng.normal(5, 2, (40, 2)), rng.normal(size=40))]))
    >>> found = Standardiser(ledger).standardise_splits(folds(4, seed=0))
    >>> [scaling.rows for _, scaling in found.values()], ledger.costs.trips
    ([30, 30, 30, 30], 3)
    """

    def __init__(self, federation: Federation, *, centre: bool = True, scale: bool = True) -> None:
        self.federation = federation
        self.vectors = 0
        self._centre = centre
        self._scale = scale
        self._loss = find_loss(federation.loss)
        self._ends_in_ones = federation.columns[-1] == INTERCEPT
        self._totals: dict[str, Totals | ResponseTotals] = {}
        self._summaries: dict[str, _Summary] = {}
        self._scalings: dict[str, Scaling] = {}

    @cached_property
    def _orders(self) -> ColumnOrders:
        return ask_orders(self.federation)

    def take_orders(self, other: "Standardiser") -> None:
        """Take over the orders of magnitude of the same sites' columns, if they are known."""
        if "_orders" in vars(other):
            self._orders = other._orders

    @property
    def rows(self) -> int:
        """All rows of all sites."""
        return sum(self._orders.rows)

    def has_measured(self, split: str) -> bool:
        """Return whether the sites have sent the sums that standardise a split."""
        return split in self._summaries

    @property
    def sizes(self) -> tuple[int, ...]:
        """All rows of each site."""
        return self._orders.rows

    def standardise(self, split: str = "") -> tuple[Viewed, Scaling]:
        """Return the view of a split's training rows, standardised by themselves."""
        found = self.standardise_splits([split])[split]
        if isinstance(found, SameResponse):
            raise found
        return found

    def standardise_splits(
        self, splits: Sequence[str], shared: bool = False
    ) -> dict[str, tuple[Viewed, Scaling] | SameResponse]:
        """Return the views of splits, or that the response is the same in all training rows."""
        measured = self.measure(splits, shared)
        views = [view for view in measured.values() if isinstance(view, Viewed)]
        self.define(views)
        return {
            split: (view, self.scaling(view)) if isinstance(view, Viewed) else view
            for split, view in measured.items()
        }

    def measure(
        self, splits: Sequence[str], shared: bool = False
    ) -> dict[str, Viewed | SameResponse]:
        """Return the views of splits, which `define` has yet to define.

        Training rows are standardised by themselves, or, if `shared`, by means and scales of all
        rows.
        """
        self._summarise([""] if shared else splits, splits if shared else ())
        views: dict[str, Viewed | SameResponse] = {}
        for split in splits:
            try:
                views[split] = Viewed(self.federation, self._view(split, shared))
            except SameResponse as same:
                # All rows of a rare class may be in one fold.
                views[split] = same
        return views

    def define(self, views: Sequence[Viewed], also: Sequence[Prepared] = ()) -> tuple[Any, ...]:
        """Define views at the sites, and ask other questions, on these views too, with it."""
        new = {view.name: view for view in views if view.name not in self._scalings}
        asked = [self.federation.prepare(view.view, own=True) for view in new.values()]
        answers = ask_together([*asked, *also])
        for name, replies in zip(new, answers, strict=False):
            view = new[name].view
            rows = tuple(s.rows for s in replies)
            held_out = (sum(s.penalty for s in replies), sum(s.candidate for s in replies))
            vectors = self._summaries[view.split if view.split in self._summaries else ""].vectors
            self._scalings[name] = Scaling(
                view.means, view.factors, view.y_mean, rows, held_out, vectors, self._ends_in_ones
            )
        return answers[len(new) :]

    def response_mean(self, split: str) -> float:
        """Return the mean response of a split's training rows."""
        totals = self._totals[split]
        return totals.y_sum / totals.weight

    def scaling(self, view: Viewed) -> Scaling:
        """Return means, factors and rows of a view that was defined here."""
        return self._scalings[view.name]

    def _summarise(self, splits: Sequence[str], responses: Sequence[str]) -> None:
        """Ask for sums and squares of splits, and for sums of the response only of others."""
        letters, _, missing, _ = self._orders
        weights = self.federation.site_weights
        zero = np.zeros(len(self.federation.columns))
        new = [split for split in dict.fromkeys(splits) if split not in self._summaries]
        others = [s for s in dict.fromkeys(responses) if s not in self._totals and s not in new]
        questions: list[Request[Any]] = []
        for split in new:
            questions.append(ColumnSums(split, letters, missing, weights))
            questions.append(CentredSquares(zero, split, 0.0, letters, weights))
        questions += [ResponseSums(split, letters, weights) for split in others]
        answers = self._ask(questions)
        self._totals |= dict(zip(others, answers[2 * len(new) :], strict=True))
        sums = {split: (answers[2 * k], answers[2 * k + 1]) for k, split in enumerate(new)}
        self._totals |= {split: totals for split, (totals, _) in sums.items()}
        found = {split: self._about_means(*own) for split, own in sums.items()}
        far = [split for split, (_, lost) in found.items() if lost]
        centred = [
            CentredSquares(s.means, split, s.y_mean, letters, weights)
            for split in far
            for s in (found[split][0],)
        ]
        spreads = dict(zip(far, self._ask(centred), strict=True))
        for split, (summary, _) in found.items():
            if split in spreads:
                spread = spreads[split]
                summary = replace(
                    summary,
                    squares=spread.squares,
                    y_squares=spread.y_squares,
                    vectors=summary.vectors + 2,
                )
            self._summaries[split] = summary
            self.vectors += summary.vectors

    def _ask(self, questions: Sequence[Request[Any]]) -> tuple[Any, ...]:
        bound = self._orders.bound
        return ask_together([prepare_words(self.federation, q, bound) for q in questions])

    def _about_means(self, totals: Totals, spread: Spread) -> tuple[_Summary, bool]:
        """Return squares about the means from those about zero, and whether digits are lost."""
        present = np.full(totals.sums.size, totals.weight)
        if totals.missing is not None:
            present -= totals.missing
        means = totals.sums / np.where(present > 0, present, 1.0)
        y_mean = totals.y_sum / totals.weight if self._loss.centres and totals.rows else 0.0
        squares = np.maximum(spread.squares - totals.sums * means, 0.0)
        y_squares = max(spread.y_squares - totals.y_sum * y_mean, 0.0)
        far = spread.squares > MOST_TIMES * squares
        if self._ends_in_ones:
            # The column of ones is not standardised.
            far[-1] = False
        lost = bool(far.any()) or spread.y_squares > MOST_TIMES * y_squares
        vectors = 4 if totals.missing is None else 5
        return _Summary(means, y_mean, squares, y_squares, vectors), lost

    def _view(self, split: str, shared: bool) -> Standardise:
        """Return the definition of a view; rows without any response to fit are an error."""
        totals = self._totals[split]
        m = totals.rows
        if m == 0:
            raise CannotFit("no training rows are left; hold out less, or give more rows")
        if not self._loss.varies(totals.y_sum, totals.weight):
            raise SameResponse(
                f"the response is the same in all {'training ' * bool(split)}rows of all sites, so "
                f"there is nothing to fit; give {self._loss.wants}, not all alike"
            )
        # Exactly one where all weights are one.
        weight_scale = m / totals.weight
        federation = self.federation
        p = len(federation.columns)
        base = "" if shared else split
        summary = self._summaries[base]
        whole = self._totals[base]
        # Bounds of all rows hold for those of a split, unless their weights grow.
        own_scale = whole.rows / whole.weight
        growth = max(weight_scale / own_scale, 1.0)
        n = whole.rows
        means = summary.means.copy()
        y_mean = summary.y_mean
        squares = own_scale * summary.squares
        y_squares = own_scale * summary.y_squares
        # A column varies if its standard deviation is above this fraction of its mean.
        varies = squares > n * (1e-12 * means) ** 2
        deviations = np.sqrt(squares / n) if self._scale else np.ones(p)
        factors = np.divide(1.0, deviations, out=np.ones(p), where=varies)
        about_zero = squares + n * means**2
        if self._centre:
            factors[~varies] = 0.0
        else:
            squares = about_zero
            y_squares += n * y_mean**2
            means = np.zeros(p)
            y_mean = 0.0
        if self._ends_in_ones:
            # The column of ones is not standardised.
            means[-1] = 0.0
            # Sites' own intercepts take its place.
            factors[-1] = 0.0 if federation.site_effects else 1.0
            squares[-1] = about_zero[-1]
        norms = np.sqrt(growth * squares) * factors
        # The norm of a column plus that of its mean in every row is at most twice the column's
        # norm. A column with a mean far from zero is centred value by value.
        uncentred = np.sqrt(growth * about_zero) * factors
        terms = 2 * np.where(find_far(means, factors), norms, uncentred)
        rows_power = power_above(math.sqrt(n))
        y_power = power_above(self._loss.slope_size(n, math.sqrt(growth * y_squares)))
        sizes = Magnitudes(rows_power, powers_above(norms), y_power, 0, powers_above(terms))
        return Standardise(
            means,
            factors,
            y_mean,
            split,
            tuple(map(str, sizes.products)),
            tuple(map(str, sizes.terms)),
            weight_scale,
            federation.site_weights,
            federation.site_effects,
        )


def standardise(
    federation: Federation, split: str = "", *, centre: bool = True, scale: bool = True
) -> tuple[Viewed, Scaling]:
    """Compute means and scales from sums over sites, and return the federation's view with them.

    Each site sends four vectors of p numbers (a fifth if missing values are counted, and two more
    if means are far from zero) and a few scalars. Centring gives an unpenalised intercept; a
    constant column then has factor zero.
    """
    return Standardiser(federation, centre=centre, scale=scale).standardise(split)
