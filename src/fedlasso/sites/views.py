"""Views: the same records, split and standardised, without pooling any.

Sites send sums, the server agrees on means and scales, and every site answers from then on about
its records centred and scaled by them. A view has a name, the hash of all that defines it; a
question asked ``on`` that name depends on the name and on the site's records only. What defines
it is kept in the site's memory, so it outlives a restart wherever that memory has a folder.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Around, Disclosure, Federation, Reply, Request, encode
from fedlasso.federation.messages import Point, R, Shapes, Signed, Split
from fedlasso.numerics import Array
from fedlasso.sites.rows import PURPOSES
from fedlasso.sites.site import Site


class Totals(Reply):
    """Sums over the training rows of a split, and how many values are missing, if asked for."""

    row_counts = ("rows", "missing")
    rows: int
    sums: Array
    y_sum: float
    missing: Array | None = None


class ColumnSums(Request[Totals]):
    """What do the columns and the response add up to?

    `missing` says whether values may be missing, so that they must be counted.
    """

    kind = "scaling"
    discloses = Disclosure(
        "sums of every column and of the response, the number of rows and of missing values"
    )
    split: Split = ""
    missing: int = 0

    def expects(self, p: int) -> Shapes:
        return {"sums": (p,), "missing": (p,) if self.missing else None}

    def answer(self, site: Site) -> Totals:
        weights = site.weights(self.split)
        missing = site.table.missing(weights)
        if missing.any() and not self.missing:
            raise FedLassoError(
                "values are missing here; fill them, or say of the federation that values may be "
                "missing"
            )
        return Totals(
            int(weights.sum()),
            site.table.inner(weights),
            float(site.training.y[weights > 0].sum()),
            missing if self.missing else None,
            steps=1,
            operations=site.operations(1) // 2,
        )


class Spread(Reply):
    """Sums of squares about given means."""

    positive = ("squares",)
    squares: Array


class CentredSquares(Request[Spread]):
    """How much do the columns spread about these means?"""

    kind = "scaling"
    discloses = Disclosure("the sum of squares of every column about a mean")
    means: Point
    split: Split = ""

    def expects(self, p: int) -> Shapes:
        return {"squares": (p,)}

    def answer(self, site: Site) -> Spread:
        squares = site.table.squares(self.means, site.weights(self.split))
        return Spread(squares, steps=1, operations=site.operations(1))


class Sizes(Reply):
    """Training rows of a view, and rows held out for each purpose."""

    row_counts = ("rows", "penalty", "candidate")
    rows: int
    penalty: int
    candidate: int


class Standardise(Request[Sizes]):
    """Keep a view: (x - means) * factors and y - y_mean, on the rows of a split."""

    kind = "scaling"
    discloses = Disclosure(
        "the numbers of training and held-out rows", single="sites are listed by their rows"
    )
    means: Point
    factors: Point
    y_mean: Signed
    split: Split = ""

    @property
    def name(self) -> str:
        """The name that questions are asked on."""
        return hashlib.sha256(encode(self)).hexdigest()[:16]

    def answer(self, site: Site) -> Sizes:
        site.keep_view(self.name, self)
        view = site.view(self.name)
        held = (view.held_out[p].m if p in view.held_out else 0 for p in PURPOSES)
        return Sizes(view.rows, *held)


class Viewed(Around):
    """A federation whose sites answer from one view."""

    def __init__(self, federation: Federation, name: str) -> None:
        super().__init__(federation)
        self.name = name

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        """Ask on the view."""
        return self.inner.replies(replace(request, on=self.name))


@dataclass(frozen=True, eq=False)
class Scaling:
    """What a view was centred and scaled by, and its rows.

    Attributes
    ----------
    means, factors : arrays (p,); a factor of zero marks a constant column
    y_mean : mean response
    sizes : training rows of every site
    held_out : held-out rows of all sites, for the penalty and for the candidates
    vectors : vectors of p numbers that each site sent for it
    """

    means: Array
    factors: Array
    y_mean: float
    sizes: tuple[int, ...]
    held_out: tuple[int, int]
    vectors: int

    @property
    def rows(self) -> int:
        """Training rows of all sites."""
        return sum(self.sizes)

    def original(self, b: Array) -> tuple[Array, float]:
        """Coefficients and intercept for records as they are."""
        coefficients = b * self.factors
        return coefficients, self.y_mean - float(self.means @ coefficients)


def standardise(
    federation: Federation, split: str = "", *, centre: bool = True, scale: bool = True
) -> tuple[Viewed, Scaling]:
    """Agree on means and scales by sums alone, and return the federation seen through them.

    Each site sends two vectors of p numbers (a third if values may be missing) and a few scalars.
    Centring makes an intercept that no penalty touches; a constant column then gets factor zero.
    """
    totals = federation.total(ColumnSums(split, int(federation.missing)))
    m = totals.rows
    p = len(federation.columns)
    if m == 0:
        raise FedLassoError("no training rows are left; hold out less, or give more rows")
    present = np.full(p, float(m))
    if totals.missing is not None:
        present -= totals.missing
    means = totals.sums / np.maximum(present, 1.0)
    squares = federation.total(CentredSquares(means, split)).squares
    # A column varies when its standard deviation is above this share of its mean.
    varies = squares > m * (1e-12 * means) ** 2
    spread = np.sqrt(squares / m) if scale else np.ones(p)
    factors = np.divide(1.0, spread, out=np.ones(p), where=varies)
    if centre:
        factors[~varies] = 0.0
    else:
        means = np.zeros(p)
    y_mean = totals.y_sum / m if centre else 0.0
    request = Standardise(means, factors, y_mean, split)
    sizes = federation.ask(request)
    rows = tuple(s.rows for s in sizes)
    held_out = (sum(s.penalty for s in sizes), sum(s.candidate for s in sizes))
    vectors = 2 if totals.missing is None else 3
    scaling = Scaling(means, factors, y_mean, rows, held_out, vectors)
    return Viewed(federation, request.name), scaling
