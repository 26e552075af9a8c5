"""Losses by name. A new one is one file and one line in `LOSSES`."""

from typing import Literal

from fedlasso.errors import FedLassoError
from fedlasso.numerics.losses.binomial import Binomial
from fedlasso.numerics.losses.cox import Cox
from fedlasso.numerics.losses.loss import Loss, RowLoss
from fedlasso.numerics.losses.poisson import Poisson
from fedlasso.numerics.losses.quadratic import Quadratic

LOSSES: dict[str, Loss] = {
    "quadratic": Quadratic(),
    "binomial": Binomial(),
    "poisson": Poisson(),
    "cox": Cox(),
    "cox with Breslow ties": Cox(ties="breslow"),
}
# What users call kinds of response, and the loss of each.
Family = Literal["linear", "binomial", "poisson", "cox"]
FAMILIES: dict[Family, str] = {
    "linear": "quadratic",
    "binomial": "binomial",
    "poisson": "poisson",
    "cox": "cox",
}


def find_loss(name: str) -> Loss:
    """Return the loss of that name."""
    if name not in LOSSES:
        raise FedLassoError(f"no loss is called {name!r}; known: {', '.join(LOSSES)}")
    return LOSSES[name]


__all__ = ["FAMILIES", "LOSSES", "Family", "Loss", "RowLoss", "find_loss"]
