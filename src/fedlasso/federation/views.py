"""Views: the same records, split and standardised, without pooling any.

Sites send sums, the server agrees on means and scales, and every site answers from then on about
its records centred and scaled by them. A view has a name, the hash of all that defines it; a
question asked ``on`` that name depends on the name and on the site's records only. What defines
it is kept in the site's memory, so it outlives a restart wherever that memory has a folder.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation.codec import encode
from fedlasso.federation.federation import Federation
from fedlasso.federation.messages import Reply, Request
from fedlasso.federation.site import Site
from fedlasso.lasso import Array
from fedlasso.lasso.least_squares import one_thread

R = TypeVar("R", bound=Reply)
# A column varies when its standard deviation is above this share of its mean.
CONSTANT = 1e-12


@dataclass(frozen=True, eq=False)
class Totals(Reply):
    """Sums over the training rows of a split; `missing` is empty when no value is."""

    rows: int
    sums: Array
    missing: Array
    y_sum: float


@dataclass(frozen=True, eq=False)
class ColumnSums(Request[Totals]):
    """What do the columns and the response add up to?"""

    kind: ClassVar[str] = "scaling"
    split: str = ""

    def answer(self, site: Site) -> Totals:
        w = site.weights(self.split)
        missing = site.table.missing(w)
        return Totals(
            int(w.sum()),
            site.table.inner(w),
            missing if missing.any() else np.empty(0),
            float(site.response[w > 0].sum()),
            steps=1,
            operations=2 * site.table.n * site.table.p,
        )


@dataclass(frozen=True, eq=False)
class Spread(Reply):
    """Sums of squares about given means."""

    squares: Array


@dataclass(frozen=True, eq=False)
class CentredSquares(Request[Spread]):
    """How much do the columns spread about these means?"""

    kind: ClassVar[str] = "scaling"
    means: Array
    split: str = ""

    def answer(self, site: Site) -> Spread:
        squares = site.table.squares(self.means, site.weights(self.split))
        return Spread(squares, steps=1, operations=4 * site.table.n * site.table.p)


@dataclass(frozen=True, eq=False)
class Sizes(Reply):
    """Training rows of a view, and rows held out for each purpose."""

    rows: int
    penalty: int
    candidate: int


@dataclass(frozen=True, eq=False)
class Standardise(Request[Sizes]):
    """Keep a view: (x - means) * factors and y - y_mean, on the rows of a split."""

    kind: ClassVar[str] = "scaling"
    means: Array
    factors: Array
    y_mean: float
    split: str = ""

    @property
    def name(self) -> str:
        """The name that questions are asked on."""
        return hashlib.sha256(encode(self)).hexdigest()[:16]

    def answer(self, site: Site) -> Sizes:
        site.keep_view(self.name, self.split, self.means, self.factors, self.y_mean)
        return Sizes(*site.view(self.name).sizes)


class Viewed:
    """A federation whose sites answer from one view."""

    def __init__(self, federation: Federation, name: str) -> None:
        self._federation = federation
        self.sites, self.columns = federation.sites, federation.columns
        self.name = name

    def ask(self, request: Request[R]) -> tuple[R, ...]:
        """Ask on the view."""
        return self._federation.ask(replace(request, on=self.name))


@dataclass(frozen=True, eq=False)
class Scaling:
    """What a view was centred and scaled by, and its rows.

    Attributes
    ----------
    means, factors : arrays (p,); a factor of zero marks a constant column
    y_mean : mean response
    rows, held_out : training rows and held-out rows (penalty, candidate) of all sites
    vectors : vectors of p numbers that each site sent for it
    """

    means: Array
    factors: Array
    y_mean: float
    rows: int
    held_out: tuple[int, int]
    vectors: int

    @one_thread()
    def original(self, b: Array) -> tuple[Array, float]:
        """Coefficients and intercept for records as they are."""
        coefficients = b * self.factors
        return coefficients, self.y_mean - float(self.means @ coefficients)


def standardise(
    federation: Federation, split: str = "", *, centre: bool = True, scale: bool = True
) -> tuple[Viewed, Scaling]:
    """Agree on means and scales by sums alone, and return the federation seen through them.

    Each site sends two vectors of p numbers (a third where values are missing) and a few scalars.
    Centring makes an intercept that no penalty touches; a constant column then gets factor zero.
    """
    totals = federation.ask(ColumnSums(split))
    m = sum(t.rows for t in totals)
    p = len(federation.columns)
    if m == 0:
        raise FedLassoError("no training rows are left; hold out less, or give more rows")
    present = np.full(p, float(m))
    for t in totals:
        present -= t.missing if t.missing.size else 0.0
    with np.errstate(invalid="ignore"):
        means = np.sum([t.sums for t in totals], axis=0) / np.maximum(present, 1.0)
    squares = np.sum([s.squares for s in federation.ask(CentredSquares(means, split))], axis=0)
    varies = squares > m * (CONSTANT * means) ** 2
    spread = np.sqrt(squares / m) if scale else np.ones(p)
    factors = np.divide(1.0, spread, out=np.ones(p), where=varies)
    if centre:
        factors[~varies] = 0.0
    else:
        means = np.zeros(p)
    y_mean = sum(t.y_sum for t in totals) / m if centre else 0.0
    request = Standardise(means, factors, y_mean, split)
    sizes = federation.ask(request)
    held_out = sum(s.penalty for s in sizes), sum(s.candidate for s in sizes)
    vectors = 2 + any(t.missing.size for t in totals)
    scaling = Scaling(means, factors, y_mean, m, held_out, vectors)
    return Viewed(federation, request.name), scaling
