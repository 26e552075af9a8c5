"""Second moments: which columns a question discloses them of, and where rows are too few for that.

Several matrices X'DX of the same columns determine the rows of X if these are fewer than the
columns. With at least twice as many rows as columns they do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fedlasso.errors import RefusalCode, Refused
from fedlasso.federation import Request
from fedlasso.federation.messages import roles
from fedlasso.numerics import find_loss
from fedlasso.numerics.response import Places
from fedlasso.sites.atoms import ROWS_PER_COLUMN, smallest
from fedlasso.sites.rows import INTERCEPT

if TYPE_CHECKING:
    from fedlasso.sites.site import Site


def moment_columns(request: Request[Any], site: Site) -> Places:
    """Return the columns whose second moments a reply discloses, without the intercept."""
    own = _along(request, site)
    if request.discloses.moments and not getattr(request, "alone", False):
        listed = [name for name, role in roles(type(request)).items() if role.kind == "columns"]
        own = [np.asarray(getattr(request, name)) for name in listed]
        own = own or [np.arange(len(site.columns))]
    if not own:
        return np.arange(0)
    columns = np.unique(np.concatenate(own)).astype(np.int64)
    return np.array([k for k in columns if site.columns[k] != INTERCEPT], np.int64)


def _along(request: Request[Any], site: Site) -> list[Places]:
    """Return the columns of directions: second derivatives along many are those of the columns.

    Those of least squares are the same at all models.
    """
    if find_loss(site.loss).quadratic:
        return []
    along = [name for name, role in roles(type(request)).items() if role.kind == "directions"]
    return [np.flatnonzero(getattr(request, name).any(axis=1)) for name in along]


def smallest_part(request: Request[Any], site: Site) -> int:
    """Return the rows of the smallest part summed over: an atom where rows are split."""
    if getattr(request, "split", "") or site.view(request.on).rows < site.table.n:
        return smallest(site.draw.atoms)
    return site.table.n


def check_moments(request: Request[Any], site: Site) -> None:
    """Refuse second moments of more columns than half of the rows of the smallest part."""
    count = len(moment_columns(request, site))
    if ROWS_PER_COLUMN * count > smallest_part(request, site):
        raise too_few_rows()


def too_few_rows() -> Refused:
    """Return the refusal of second moments; the fit goes on by gradients."""
    return Refused(
        "second moments are sent only over at least twice as many rows as all columns that they "
        "were ever sent of; request gradients",
        code=RefusalCode.NO_MOMENTS,
    )
