"""Penalties by name. A new penalty is one file and one line here; messages carry its fields."""

from typing import Any

from fedlasso.errors import FedLassoError
from fedlasso.numerics.machine import Array
from fedlasso.numerics.penalties.elastic_net import ElasticNet as ElasticNet
from fedlasso.numerics.penalties.group_l1 import GroupL1 as GroupL1
from fedlasso.numerics.penalties.l1 import L1 as L1
from fedlasso.numerics.penalties.penalty import Capability as Capability
from fedlasso.numerics.penalties.penalty import Penalty as Penalty
from fedlasso.numerics.penalties.penalty import soft_threshold as soft_threshold

PENALTIES: dict[str, type[Penalty]] = {
    penalty.name: penalty for penalty in (L1, ElasticNet, GroupL1)
}


def find_penalty(name: str) -> type[Penalty]:
    if name not in PENALTIES:
        raise FedLassoError(f"no penalty is called {name!r}; known: {', '.join(PENALTIES)}")
    return PENALTIES[name]


def penalty_fields(penalty: Penalty) -> dict[str, Any]:
    """Return the fields of a penalty in messages, from which `rebuild_penalty` restores it.

    Bounds are not sent: they are often infinite on one side, and messages carry finite numbers.
    """
    if not penalty.unbounded:
        raise FedLassoError("bounds on coefficients are not sent to sites; use Newton or FISTA")
    return {
        "form": "" if penalty.name == L1.name else penalty.name,
        "strength": penalty.strength,
        "weights": penalty.weights,
        "shape": getattr(penalty, penalty.shape) if penalty.shape else 0.0,
        "vector": getattr(penalty, penalty.vector) if penalty.vector else None,
    }


def rebuild_penalty(
    form: str, strength: float, weights: Array | None, shape: float, vector: Array | None
) -> Penalty:
    """Return the penalty with these fields; an empty name means the Lasso."""
    penalty = find_penalty(form or L1.name)
    own = {penalty.shape: shape, penalty.vector: vector}
    own.pop("", None)
    return penalty(strength, weights, **own)
