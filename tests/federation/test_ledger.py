"""Ledgers: every question is counted once, whatever is around the one that counts."""

import numpy as np
import pytest
from helpers.draws import draw_federation

from fedlasso.errors import FedLassoError
from fedlasso.federation import Exchange, Ledger, metered
from fedlasso.sites import GradientAt, Rows, standardise


def test_a_ledger_above_another_reads_its_books() -> None:
    ledger = Ledger(draw_federation())
    view, _ = standardise(ledger)
    above = metered(view)
    assert metered(above) is above
    before = ledger.costs
    above.total(GradientAt(np.zeros(len(ledger.columns))))
    asked = (above.costs - before).total("training")
    assert asked == (ledger.costs - before).total("training")
    assert asked.messages == len(ledger.sites)


def test_a_listener_is_told_of_every_question() -> None:
    reported: list[Exchange] = []
    ledger = Ledger(draw_federation(), reported.append)
    ledger.ask(Rows())
    above = metered(standardise(ledger)[0])
    above.total(GradientAt(np.zeros(len(ledger.columns))))
    assert [e.number for e in reported] == list(range(1, len(reported) + 1))
    assert [type(r) for r in reported[0].requests] == [Rows]
    assert [type(r) for r in reported[-1].requests] == [GradientAt]
    assert reported[0].costs.total().upload == 8 * len(ledger.sites)
    assert reported[-1].costs.entries == ledger.costs.entries


def test_a_limit_of_round_trips_holds_for_every_question_inside() -> None:
    ledger = Ledger(draw_federation())
    above = metered(standardise(ledger)[0])
    with above.limit_trips(2):
        above.ask(Rows())
        assert above.trips_left == ledger.trips_left == 1
        ledger.ask(Rows())
        with pytest.raises(FedLassoError, match="`round_trips` is 2, and this fit takes more"):
            above.ask(Rows())
    assert ledger.trips_left == np.inf
    ledger.ask(Rows())


def test_progress_has_an_estimate_while_there_is_one() -> None:
    reported: list[Exchange] = []
    ledger = Ledger(draw_federation(), reported.append)
    ledger.ask(Rows())
    with ledger.limit_trips(None):
        metered(ledger).expect(2)
        for _ in range(3):
            ledger.ask(Rows())
        ledger.expect(5)
    ledger.ask(Rows())
    assert [e.progress for e in reported] == [
        "round 1",
        "round 2 of about 3",
        "round 3 of about 3",
        "round 4",
        "round 5",
    ]
