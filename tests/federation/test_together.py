"""Several questions in one round trip have the same replies as one after another."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.draws import draw_federation

from fedlasso import FedLassoError
from fedlasso.federation import (
    Around,
    Exchange,
    Federation,
    Journal,
    Ledger,
    Reply,
    Request,
    ask_together,
    encode,
    metered,
    total_together,
)
from fedlasso.federation.messages import R
from fedlasso.fitting.budget import Budget
from fedlasso.fitting.evidence.evidence import Wanted
from fedlasso.fitting.evidence.split_evidence import SplitEvidence
from fedlasso.numerics import L1
from fedlasso.sites import GradientAt, Rows, Standardiser, Viewed, folds, standardise


class Cut(Around):
    """A federation whose line carries so many round trips, and records their questions."""

    def __init__(self, inner: Federation, trips: int) -> None:
        super().__init__(inner)
        self.left = trips
        self.trips: list[list[str]] = []

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        self._carry([request])
        return self.inner.replies(request)

    def replies_together(self, requests: Sequence[Request[Any]]) -> tuple[tuple[Reply, ...], ...]:
        self._carry(requests)
        return self.inner.replies_together(requests)

    def _carry(self, requests: Sequence[Request[Any]]) -> None:
        if self.left == 0:
            raise FedLassoError("the line is cut")
        self.left -= 1
        self.trips.append([type(request).__name__ for request in requests])


def questions(p: int) -> list[GradientAt]:
    return [GradientAt(np.full(p, float(k))) for k in range(3)]


def test_together_as_one_after_another() -> None:
    federation = draw_federation()
    asked = questions(len(federation.columns))
    together = federation.replies_together(asked)
    alone = [federation.replies(request) for request in asked]
    for some, others in zip(together, alone, strict=True):
        assert list(map(encode, some)) == list(map(encode, others))


def test_a_round_trip_may_define_the_views_it_asks_on() -> None:
    view, _ = standardise(draw_federation())
    b = np.ones(len(view.columns))
    alone = view.total(GradientAt(b))
    federation = metered(draw_federation())
    later = Viewed(federation, view.view)
    sizes, total, rows = ask_together(
        [
            federation.prepare(view.view, own=True),
            later.prepare(GradientAt(b)),
            federation.prepare(Rows(), own=True),
        ]
    )
    assert [size.rows for size in sizes] == [row.rows for row in rows]
    assert encode(total) == encode(alone)
    assert federation.costs.trips == 1
    with pytest.raises(TypeError, match="answered by a total"):
        federation.prepare(GradientAt(b), own=True)


def test_costs_are_those_of_every_question_in_one_trip() -> None:
    heard: list[Exchange] = []
    ledger = Ledger(draw_federation(), heard.append)
    view, _ = standardise(ledger)
    before, earlier = ledger.costs, len(heard)
    asked = [(view, request) for request in questions(len(ledger.columns))]
    totals = total_together(asked)
    together = ledger.costs - before
    assert (together.trips, len(heard) - earlier) == (1, 1)
    assert len(heard[-1].requests) == 3
    before = ledger.costs
    alone = [federation.total(request) for federation, request in asked]
    assert (ledger.costs - before).entries == together.entries
    assert (ledger.costs - before).trips == 3
    assert list(map(encode, totals)) == list(map(encode, alone))
    assert (together + together).trips == 2


def test_a_round_trip_is_one_journal_entry_and_resumes(tmp_path: Path) -> None:
    def run(federation: Federation) -> list[bytes]:
        view, _ = standardise(federation)
        first = total_together([(view, request) for request in questions(len(view.columns))])
        points = [total.gradient for total in first]
        second = total_together([(view, GradientAt(b)) for b in points])
        return list(map(encode, second))

    federation = draw_federation()
    whole = run(Ledger(federation))
    last: list[bytes] = []
    trips = 0
    for _ in range(20):
        line = Cut(federation, 2)
        try:
            last = run(Journal(line, tmp_path))
        except FedLassoError:
            trips += len(line.trips)
            continue
        trips += len(line.trips)
        break
    assert last == whole
    assert trips == len(list(tmp_path.glob("*.entry")))
    journal = Journal(federation, tmp_path)
    with pytest.raises(FedLassoError, match="belongs to another fit"):
        journal.replies_together([Rows(), Rows()])


def test_fits_side_by_side_share_their_round_trips() -> None:
    line = Cut(draw_federation(), -1)
    ledger = Ledger(line)
    splits = folds(3, 0)
    evidence = SplitEvidence.open(Standardiser(ledger), splits, Budget(ledger, 500))
    parts = evidence.parts.values()
    before = ledger.costs
    spent = sum(part.budget.spent for part in parts)
    line.trips.clear()
    penalty = L1(0.3 * min(part.largest_penalty for part in parts))
    evidence.fit_many([Wanted(penalty, 0.01, split) for split in splits])
    assert max(map(len, line.trips)) == 3
    costs = ledger.costs - before
    vector = 8 * len(ledger.columns) * len(ledger.sites)
    assert costs.trips == len(line.trips)
    assert costs.total().messages == sum(map(len, line.trips)) * len(ledger.sites)
    # Secants count a vector per round; with it every site sends its loss.
    more = sum(part.budget.spent for part in parts) - spent
    assert more == int(costs.total("training").upload / vector)
