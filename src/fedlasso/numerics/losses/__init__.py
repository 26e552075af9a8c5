"""Losses by name. A new loss is one file and one line in `LOSSES`."""

from fedlasso.errors import FedLassoError
from fedlasso.numerics.losses.cox import CoxLoss
from fedlasso.numerics.losses.loss import Loss as Loss
from fedlasso.numerics.losses.loss import RowLoss as RowLoss
from fedlasso.numerics.losses.row_losses import BinomialLoss, PoissonLoss, Quadratic

LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (Quadratic(), BinomialLoss(), PoissonLoss(), CoxLoss(), CoxLoss(ties="breslow"))
}
# The loss of sites that do not specify one.
DEFAULT_LOSS = Quadratic.name


def find_loss(name: str) -> Loss:
    if name not in LOSSES:
        raise FedLassoError(f"no loss is called {name!r}; known: {', '.join(LOSSES)}")
    return LOSSES[name]
