"""Weights of sites by their noise, or how much noisier than average rows are taken to be."""

import numpy as np

from fedlasso.errors import Refused
from fedlasso.federation import Federation, Ledger, metered
from fedlasso.numerics import Array
from fedlasso.sites import CLEARLY, LEVELS, ErrorAt, NoiseAbove, Scaling, SiteWeighted

# Rows of the common variance that a site's own is taken together with: few rows say little.
PRIOR = 10.0


def find_site_weights(
    view: Federation, scaling: Scaling, b: Array, *, always: bool
) -> dict[str, float] | None:
    """Return the inverse of each site's noise variance, or None where they hardly differ.

    The Lasso's residuals show it, one number per site. Variances of few rows are taken together
    with the common one.
    """
    sizes = np.array(scaling.sizes, dtype=np.float64)
    errors = np.array([reply.value for reply in view.ask(ErrorAt(b))])
    free = 1 - np.count_nonzero(b) / sizes.sum()
    if len(sizes) < 2 or free <= 0 or not errors.sum() > 0:
        return None
    common = errors.sum() / (free * sizes.sum())
    variances = (errors + PRIOR * common) / (free * sizes + PRIOR)
    differ = np.abs(np.log(variances / common)) > CLEARLY * np.sqrt(2 / (sizes + PRIOR))
    if not (always or differ.any()):
        return None
    return dict(zip(view.sites, (variances.min() / variances).tolist(), strict=True))


def find_noise_inflation(view: Federation, scaling: Scaling, b: Array) -> float:
    """Return how many times as noisy as the average row those of the noisiest site may be.

    Sites send only a total: how many of them are above some levels. No site's squares are more than
    all sites' together, which holds where even that is refused.
    """
    rows = sum(scaling.sizes)
    most = rows / min(scaling.sizes)
    if len(scaling.sizes) < 2:
        return 1.0
    try:
        variance = view.total(ErrorAt(b)).value / rows
        above = view.total(NoiseAbove(b, variance)).above > 0
    except Refused:
        return most
    if above.all():
        return most
    # The noisiest site lies between the last level that it is above and the next.
    return float(min(LEVELS[int(above.argmin())], most))


def weight_sites(ledger: Ledger, weights: dict[str, float]) -> Ledger:
    """Return the sites with rows that count by these weights."""
    return metered(SiteWeighted(ledger, weights))
