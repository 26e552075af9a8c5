"""What the messages weigh equals what the paper says they weigh, for every cell of the study."""

from itertools import product

import pytest
from helpers.draws import draw_federation

from fedlasso import fit
from fedlasso.fitting import PANELS, Panel, rounds_within
from fedlasso.procedures import REGISTRY

K, P = 3, 40
PAPER = ("CD", "ST", "P", "DA")
CELLS = list(product(PAPER, (1, 5, 20), (30, 100), PANELS))


@pytest.mark.standard
@pytest.mark.parametrize(("method", "epochs", "budget", "panel"), CELLS)
def test_ledger_equals_the_formula(method: str, epochs: int, budget: int, panel: Panel) -> None:
    procedure = REGISTRY[method](epochs=epochs)
    q, candidates = procedure.paths, len(procedure.settings)
    rounds = rounds_within(budget, panel, q, epochs)
    costs = fit(draw_federation(), procedure, rounds=rounds, certified=False).costs
    scalars = 2 + (method == "DA") + 3 * candidates
    assert costs.total("training").upload == 8 * K * P * q * rounds
    assert costs.total("penalty").upload == 8 * K * 2
    assert costs.total("rate").upload == 8 * K * (method == "DA")
    assert costs.total("validation").upload == 8 * K * 3 * candidates
    assert costs.total("validation").download == 8 * K * P * candidates
    for site in "abc":
        kinds = ("penalty", "rate", "validation")
        assert sum(costs.total(kind, site).upload for kind in kinds) == 8 * scalars
    assert costs.total().upload <= 8 * K * P * budget + 144 * K
    assert costs.most_steps("training") == rounds * q * epochs
    if panel == "joint":
        assert costs.most_steps("training") <= 5 * budget
        assert costs.total("training").operations <= 4 * 75 * P * 5 * budget


def test_dual_averaging_sends_exactly_144_bytes_of_scalars_a_site() -> None:
    costs = fit(draw_federation(), "DA", rounds=2, certified=False).costs
    for site in "abc":
        assert costs.total(site=site).upload - costs.total("training", site).upload == 144


def test_the_certificate_costs_one_gradient_and_three_scalars_a_site() -> None:
    costs = fit(draw_federation(), "CD", rounds=2).costs
    assert costs.total("certificate").upload == 8 * K * (P + 3)
    assert costs.total("certificate").download == 8 * K * P


def test_rounds_of_the_paper() -> None:
    """Joint rounds at B = 100 and 30 and E = 1, 5, 20; upload rounds do not depend on E."""
    table = {
        (100, 1): (100, 100, 25),
        (100, 5): (20, 20, 5),
        (30, 1): (30, 30, 7),
        (30, 5): (6, 6, 1),
    }
    for (budget, paths), rounds in table.items():
        joint = tuple(rounds_within(budget, "joint", paths, E) for E in (1, 5, 20))
        assert joint == rounds
        assert rounds_within(budget, "upload", paths, 20) == budget // paths


def test_penalty_search_is_counted_apart_from_training() -> None:
    costs = fit(draw_federation(), "CD", rounds=2, certified=False).costs
    assert costs.total("penalty", "a").steps > 0
    assert costs.total("training", "a").steps == 2
    assert set(costs.seconds) == {"penalty", "training", "validation"}
