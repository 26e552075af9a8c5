"""Families of responses. A new one is one file: a `Family`, with its loss, and `register`."""

from fedlasso.errors import FedLassoError
from fedlasso.families.binomial import Binomial
from fedlasso.families.cox import Cox
from fedlasso.families.family import Family as Family
from fedlasso.families.family import MeasureName as MeasureName
from fedlasso.families.linear import Linear
from fedlasso.families.linear import warn_binary as warn_binary
from fedlasso.families.poisson import Poisson
from fedlasso.numerics import LOSSES

FAMILIES: dict[str, Family] = {
    family.name: family for family in (Linear(), Binomial(), Poisson(), Cox())
}
# The default family of a fit.
DEFAULT = Linear.name


def register(family: Family) -> None:
    """Make a family available, and its losses to the sites."""
    FAMILIES[family.name] = family
    for loss in (family.loss, *family.variants):
        LOSSES[loss.name] = loss


def find_family(name: str) -> Family:
    """Return the family of that name."""
    if name not in FAMILIES:
        raise FedLassoError(f"no family is called {name!r}; use one of {', '.join(FAMILIES)}")
    return FAMILIES[name]


def family_of(loss: str) -> Family:
    """Return the family that has a loss of this name."""
    for family in FAMILIES.values():
        if loss in (own.name for own in (family.loss, *family.variants)):
            return family
    raise FedLassoError(f"no family has the {loss} loss; register one")


def family_with(name: str) -> Family:
    """Return the family that has a column role or an option of this name."""
    return next(own for own in FAMILIES.values() if name in own.roles or name in own.options)
