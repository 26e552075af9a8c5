"""Round trips and numbers of tuned fits to real records, over divisions among three sites."""

from typing import Any

import numpy as np
import pytest
from helpers.deploy.default_data import gbsg2
from sklearn.datasets import load_breast_cancer

from fedlasso import InProcess, Ledger, Site
from fedlasso.fitting import Settings, fit_model
from fedlasso.fitting.result import Status
from fedlasso.numerics import Array

MOST_TRIPS = 15
# Errors of models with intercepts per site are complete one round trip later.
LATER = 1
# Rounding of another processor may take a round trip or two more in a division.
SLACK = 2


def connect(X: Array, y: Array, family: str, seed: int) -> Ledger:
    """Rows in random order at three sites."""
    at = np.random.default_rng(seed).permutation(np.arange(len(y)) % 3)
    return Ledger(
        InProcess(
            [
                Site("abc"[k], X[at == k], y[at == k], loss=family, intercept=True, raw=True)
                for k in range(3)
            ]
        )
    )


@pytest.mark.full
@pytest.mark.parametrize("options", [{}, {"site_effects": True}, {"l1_ratio": 0.5}], ids=str)
def test_fits_of_nearly_separable_classes_take_few_round_trips_and_numbers(
    options: dict[str, Any],
) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    trips = []
    for seed in range(4):
        ledger = connect(X, y.astype(np.float64), "binomial", seed)
        model = fit_model(ledger, Settings(family="binomial", seed=seed, **options))
        assert model.status is Status.OPTIMAL
        assert ledger.costs.most_sent / 8 <= 0.75 * X.size
        trips.append(ledger.costs.trips)
    most = MOST_TRIPS + LATER * ("site_effects" in options)
    assert np.median(trips) <= most
    assert max(trips) <= most + SLACK


@pytest.mark.full
def test_fits_of_survival_times_send_at_most_half_as_many_numbers_as_entries() -> None:
    frame = gbsg2().frame
    X = frame.drop(columns=["time", "cens"]).to_numpy(np.float64)
    y = np.where(frame["cens"] > 0, frame["time"], -frame["time"]).astype(np.float64)
    for seed in range(4):
        ledger = connect(X, y, "cox", seed)
        model = fit_model(ledger, Settings(family="cox", seed=seed))
        assert model.status is Status.OPTIMAL
        assert ledger.costs.trips <= MOST_TRIPS
        assert ledger.costs.most_sent / 8 <= 0.5 * X.size
