"""What a site must keep between rounds, for the procedures that need it (ADMM's u_j)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from fedlasso.errors import FedLassoError
from fedlasso.lasso import Array

_FITS = 4


class Memory:
    """Named arrays per fit and round, so that asking a round again gives the same answer.

    A fit's key names everything its rounds depend on (procedure, hyperparameters, penalty), so two
    fits that share a key share their values. The last two rounds of the last few fits are kept.
    """

    def __init__(self) -> None:
        self._fits: OrderedDict[str, dict[int, Mapping[str, Array]]] = OrderedDict()

    def recall(self, fit: str, round: int) -> Mapping[str, Array]:
        """What was stored for a round; nothing before the first."""
        if round == 0:
            return {}
        try:
            return self._fits[fit][round]
        except KeyError:
            raise FedLassoError(
                f"nothing is remembered of round {round} of this fit; start the fit again"
            ) from None

    def store(self, fit: str, round: int, values: Mapping[str, Array]) -> None:
        """Keep values for a round, and those of the round before."""
        rounds = self._fits.setdefault(fit, {})
        self._fits.move_to_end(fit)
        rounds[round] = values
        for old in [r for r in rounds if not round - 1 <= r <= round]:
            del rounds[old]
        while len(self._fits) > _FITS:
            self._fits.popitem(last=False)
