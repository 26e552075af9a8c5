"""Round trips as a limit: fits stay within it, refuse early, or state that they were cut."""

from typing import Any

import numpy as np
import pytest
from helpers.draws import draw_federation

from fedlasso.errors import FedLassoError
from fedlasso.estimators import FederatedLasso, FederatedLogisticLasso
from fedlasso.federation import Ledger
from fedlasso.fitting import Settings, fit_model
from fedlasso.fitting.result import Status


def draw_classes() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 5))
    y = (X[:, 0] + rng.standard_normal(150) > 0).astype(float)
    return X, y, np.arange(150) % 3


def fit_classes(**options: Any) -> FederatedLogisticLasso:
    X, y, sites = draw_classes()
    return FederatedLogisticLasso(**options).fit(X, y, sites=sites)


def test_a_fit_within_its_round_trips_is_the_same_as_without_a_limit() -> None:
    free = fit_classes(penalty=0.05)
    trips = free.ledger_.trips
    limited = fit_classes(penalty=0.05, round_trips=trips + 3)
    assert limited.ledger_.trips == trips
    np.testing.assert_array_equal(limited.coef_, free.coef_)


@pytest.mark.filterwarnings("ignore::fedlasso.FedLassoWarning")
def test_a_fit_that_runs_out_of_round_trips_ends_short_within_them() -> None:
    short = fit_classes(penalty=0.001, round_trips=6)
    assert short.ledger_.trips <= 6
    assert short.model_.status is Status.SHORT


@pytest.mark.filterwarnings("ignore::fedlasso.FedLassoWarning")
def test_a_search_that_runs_out_of_round_trips_is_cut_within_them() -> None:
    cut = fit_classes(round_trips=12)
    assert cut.ledger_.trips <= 12
    assert cut.model_.status is Status.CUT


def test_fewer_round_trips_than_any_fit_takes_are_refused_at_once() -> None:
    ledger = Ledger(draw_federation())
    with pytest.raises(FedLassoError, match="`round_trips` leaves 2, and any fit takes 3 or more"):
        fit_model(ledger, Settings(round_trips=2))
    assert ledger.costs.trips == 0


@pytest.mark.parametrize("count", [0, -1, 2.5])
def test_round_trips_are_a_positive_whole_number(count: float) -> None:
    with pytest.raises(FedLassoError, match=r"`round_trips` is .*; give a whole number, 1 or more"):
        Settings(round_trips=count)  # type: ignore[arg-type]


def test_a_linear_fit_with_discoveries_takes_at_most_ten_round_trips() -> None:
    rng = np.random.default_rng(3)
    effects = np.array([0.5, 0.5, 0.5, 0.5] + [0.0] * 16)
    for _ in range(3):
        X = rng.standard_normal((400, 20))
        y = X @ effects + rng.standard_normal(400)
        sites = np.arange(400) % 3
        model = FederatedLasso("discoveries", fdr=0.1).fit(X, y, sites=sites)
        trust = model.model_.trust
        assert trust is not None
        assert trust.found is not None
        # A second fit follows where sites differ in mean or noise; these do not.
        assert model.ledger_.trips <= 10
        assert trust.found.site_values is not None
