"""Questions about a site's own penalty: what the earlier experiment asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedlasso.federation import Disclosure, Models, Request, Steps
from fedlasso.fitting.tuning import local_search
from fedlasso.numerics import local_sweeps
from fedlasso.procedures import Coefficients
from fedlasso.sites import View


@dataclass(frozen=True, eq=False)
class OwnSweeps(Request[Coefficients]):
    """T_j^E at the site's own penalty."""

    discloses: ClassVar[Disclosure] = Disclosure(
        "a site's own model at its own penalty, weighted by its rows", allowed=False
    )
    start: Models
    epochs: Steps

    def answer(self, site: View) -> Coefficients:
        lam = local_search(site).lam
        values = site.rows * local_sweeps(site.least_squares, self.start, lam, self.epochs)
        return Coefficients(values, steps=self.epochs, operations=site.operations(self.epochs))


@dataclass(frozen=True, eq=False)
class OwnFit(Request[Coefficients]):
    """The site's exact Lasso at its own penalty, a by-product of its search."""

    discloses: ClassVar[Disclosure] = Disclosure(
        "a site's own Lasso at its own penalty, weighted by its rows", allowed=False
    )

    def answer(self, site: View) -> Coefficients:
        search = local_search(site)
        return Coefficients(site.rows * search.path.coefficients[:, [search.chosen]])
