"""Views in which sites differ: weights for their rows, or an intercept for each."""

from collections.abc import Mapping

from fedlasso.errors import FedLassoError
from fedlasso.federation.federation import Federation, Forwarding


def read_site_weight(site_weights: tuple[str, ...], site: str) -> float:
    """Return the weight of a site's rows; one if no weights are given."""
    if not site_weights:
        return 1.0
    for text in site_weights:
        number, _, name = text.partition(" ")
        if name == site:
            try:
                value = float.fromhex(number)
            except (ValueError, OverflowError):
                break
            if 0.0 < value <= 1.0:
                return value
    raise FedLassoError(f"site {site!r}: a view must have a weight for this site, in (0, 1]")


class SiteWeighted(Forwarding):
    """A federation whose views weight each site's rows, in scales, losses and certificates."""

    def __init__(self, federation: Federation, weights: Mapping[str, float]) -> None:
        super().__init__(federation)
        # The maximum is one: no row counts more than its site has it.
        scaled = {site: each / max(weights.values()) for site, each in sorted(weights.items())}
        self.site_weights = tuple(f"{float(w).hex()} {site}" for site, w in scaled.items())


class WithSiteEffects(Forwarding):
    """A federation whose views give every site an intercept of its own, which stays there."""

    def __init__(self, federation: Federation) -> None:
        super().__init__(federation)
        self.site_effects = True
