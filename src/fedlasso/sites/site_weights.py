"""Sites whose rows are worth more or less than those of other sites, as their noise leaves them."""

from collections.abc import Mapping

from fedlasso.errors import FedLassoError
from fedlasso.federation.federation import Federation, PassedOn


def read_worth(worth: tuple[str, ...], site: str) -> float:
    """Return what a row of a site is worth: one, where nothing is said."""
    if not worth:
        return 1.0
    for told in worth:
        number, _, name = told.partition(" ")
        if name == site:
            try:
                value = float.fromhex(number)
            except (ValueError, OverflowError):
                break
            if 0.0 < value <= 1.0:
                return value
    raise FedLassoError(
        f"site {site!r}: a view must say what a row here is worth, above zero and at most one"
    )


class Weighed(PassedOn):
    """A federation in which rows of some sites are worth less than those of others.

    Every view that is made through it weighs rows so: means, scales, losses and certificates are
    those of weighted rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, Site
    >>> from fedlasso.sites import Weighed, standardise
    >>> X = np.array([[1.0], [3.0]])
    >>> sites = InProcess([Site("a", X, [1.0, 2.0]), Site("b", 3 * X, [1.0, 4.0])])
    >>> _, scaling = standardise(Weighed(sites, {"a": 1.0, "b": 0.5}))
    >>> scaling.means.round(3)
    array([3.333])
    """

    def __init__(self, federation: Federation, worth: Mapping[str, float]) -> None:
        super().__init__(federation)
        # The largest is one: rows never weigh more than their sites say.
        shares = {site: each / max(worth.values()) for site, each in sorted(worth.items())}
        self.worth = tuple(f"{float(share).hex()} {site}" for site, share in shares.items())
