r"""C-FedDA: Fast-FedDA whose model sums stay at the server (Bao et al. 2022).

The server's own models, each counted E times, take the place of the sites' sums:

.. math:: x_{t+1} = x_t + E\, w_t, \qquad g_{t+1} = \sum_j w_j g_{j,t,E},

so only g travels. The update itself is Fast-FedDA's; see `fedlasso.procedures.fedda`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedlasso.procedures.fedda import FastFedDA


@dataclass(frozen=True)
class CFedDA(FastFedDA):
    """C-FedDA: a round uploads p numbers for each rate."""

    name: ClassVar[str] = "C-FedDA"
    shared: ClassVar[bool] = False
