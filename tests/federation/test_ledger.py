"""Ledgers: every question is counted once, whatever is around the one that counts."""

import numpy as np
from helpers.draws import draw_federation

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
