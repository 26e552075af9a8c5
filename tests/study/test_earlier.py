"""The earlier experiment: site-specific penalties."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers.study.small import SMALL

from fedlasso import InProcess, Ledger
from fedlasso.fitting import Run, after_rounds, choose_penalty, local_search
from fedlasso.numerics import solve_reference
from fedlasso.procedures import Average
from fedlasso.study import STUDIES
from fedlasso.study.earlier import EarlierStudy, OwnAveraging, _converge

STUDY = EarlierStudy(seed=3, epochs=(1, 5))
K, P = 3, 30


@pytest.fixture(scope="module")
def outcomes() -> pd.DataFrame:
    frame = pd.DataFrame(STUDY.replicate(SMALL, 0))
    return frame[frame["record"] == "outcome"]


def test_the_designs_are_those_of_the_experiment() -> None:
    assert STUDIES["earlier"] is EarlierStudy
    assert EarlierStudy().epochs == (1, 2, 3, 5, 8, 10, 15, 20)
    assert [s.sizes for s in EarlierStudy.scenarios.values()] == [(400, 240, 160)] * 3
    assert list(EarlierStudy.scenarios) == ["independent", "correlated", "heterogeneous"]


def test_seven_methods_and_what_each_cost(outcomes: pd.DataFrame) -> None:
    assert outcomes["method"].value_counts().to_dict() == {
        "pooled": 1, "largest site": 1, "one-shot": 1, "ADMM": 1,
        "averaging": 2, "averaging + ST": 2, "averaging + P": 2,
    }  # fmt: skip
    by = outcomes.set_index(["method", "epochs"])
    assert (
        outcomes[outcomes["method"].isin(["pooled", "largest site"])]["upload_bytes"].isna().all()
    )
    for E in (1, 5):
        averaging, st, p = (by.loc[(f"averaging{s}", E)] for s in ("", " + ST", " + P"))
        path = 8 * K * P
        assert averaging.upload_bytes == path * averaging.rounds + 8 * K * 2
        assert st.upload_bytes == averaging.upload_bytes + 8 * K * 3 * 40
        assert p.upload_bytes == path * p.rounds + 8 * K * (2 + 3 * 5)
        assert p.local_steps == p.rounds * E
    one_shot = outcomes[outcomes["method"] == "one-shot"].iloc[0]
    assert one_shot.upload_bytes == 8 * K * (P + 2)


def test_every_site_keeps_its_own_penalty() -> None:
    draw = SMALL.draw(SMALL.generator(3, 0))
    sites = replace(draw, candidate_validation=draw.penalty_validation).sites()
    ledger = Ledger(InProcess(sites))
    problem = choose_penalty(ledger)
    b, rounds, _ = _converge(ledger, OwnAveraging(epochs=200), problem)
    own = [solve_reference(s.least_squares, local_search(s).lam).coefficients for s in sites]
    # With local convergence in every round the average is that of the exact local fits.
    np.testing.assert_allclose(b, np.average(own, axis=0, weights=problem.sizes), atol=1e-4)
    assert rounds < 500
    assert len({local_search(s).lam for s in sites}) == 3


def test_averaging_stops_when_it_stands_still() -> None:
    draw = SMALL.draw(SMALL.generator(3, 0))
    ledger = Ledger(InProcess(draw.sites()))
    problem = choose_penalty(ledger)
    procedure = OwnAveraging(epochs=5, threshold=0.25)
    b, _, _ = _converge(ledger, procedure, problem)
    run = Run(ledger, procedure, problem, state=Average(b[:, None], np.zeros(1)))
    again = run.until(after_rounds(1)).values[:, 0]
    assert np.linalg.norm(again - b) < 1e-5
