"""Attacks of our own: numbers so large or small that sums over rounded records count rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.governance.victims import Victim, draw_records

from fedlasso.governance import policy, record_checks
from fedlasso.governance.door_messages import Refusal
from fedlasso.governance.refusals import SILENCE
from fedlasso.numerics import Array
from fedlasso.sites import GradientAt
from fedlasso.sites.views import CentredSquares, Standardise

N, P = 80, 3


# Beside this number others are rounded to multiples of 128.
FAR = 2.0**59 + 2.0**58
GRID = 128.0


def above(victim: Victim) -> Array | None:
    """Sums over the rows whose response is above 64 or below -64.

    The response is moved so far that it is rounded to a multiple of the grid, and a column that is
    zero here moves it back.
    """
    means = np.zeros(P)
    means[-1] = FAR
    view = Standardise(means, np.ones(P), -FAR)
    if isinstance(victim.ask(view), Refusal):
        return None
    b = np.zeros(P)
    b[-1] = -1.0
    reply: Any = victim.ask(GradientAt(b, on=view.name))
    return np.asarray(-reply.gradient / GRID)


def records() -> tuple[Array, Array]:
    """One patient has a large response."""
    X, y = draw_records(N, P, 1)
    X[:, -1] = 0.0
    y = np.clip(y, -60.0, 60.0)
    y[17] = 70.0
    return X, y


def test_means_far_from_the_records_turn_sums_into_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = records()
    after = Victim(tmp_path / "after", X, y).opened()
    assert above(after) is None
    assert after.ask(Standardise(np.full(P, 1e12), np.ones(P), 0.0)).text == SILENCE
    monkeypatch.setattr(record_checks, "MAX_MEAN", 1e300)
    before = above(Victim(tmp_path / "before", X, y).opened())
    assert before is not None
    np.testing.assert_allclose(before[:-1], X[17, :-1], rtol=1e-12)


def test_means_of_honest_fits_are_near_enough(tmp_path: Path) -> None:
    """The mean over all sites may lie outside the records of this one."""
    X, y = records()
    victim = Victim(tmp_path, X, y).opened()
    means = np.array([300.0, -300.0, 0.4])
    for request in (
        Standardise(means, np.array([0.1, 0.1, 2.0]), 500.0),
        CentredSquares(means),
        CentredSquares(np.array([0.0, 0.0, 1e6])),
    ):
        assert not isinstance(victim.ask(request), Refusal)


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-200, 1e51, 1e308])
def test_numbers_beyond_all_use_are_refused_by_the_question_alone(
    size: float, tmp_path: Path
) -> None:
    X, y = records()
    victim = Victim(tmp_path, X, y).opened()
    ones = np.ones(P)
    for request in (
        GradientAt(size * ones),
        Standardise(0 * ones, size * ones, 0.0),
        Standardise(0 * ones, ones, -size),
    ):
        refused = victim.ask(request)
        assert isinstance(refused, Refusal)
        assert "does not fit" in refused.text
    assert victim.door.lifetime.used("refusals") == 0
    assert np.finfo(float).tiny < policy.SMALLEST_FLOAT**2
