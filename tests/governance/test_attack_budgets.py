"""Attack 6: budgets are got round by opening the same data again."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.governance.victims import Victim, draw_records

from fedlasso import FedLassoError
from fedlasso.federation import Request
from fedlasso.governance import GuardedSite, Lifetime, Policy
from fedlasso.governance.door_messages import Refusal
from fedlasso.governance.guard import RANKED
from fedlasso.governance.lifetime import BUDGETS
from fedlasso.numerics import Array
from fedlasso.sites import CLEARLY, FoldMoments, GradientAt, HeldOutErrors, NoiseAbove, Rows
from fedlasso.sites.assessing import PredictionErrors, RecalibrationAt, ScoreRanges
from fedlasso.sites.views import ColumnSums

P = 6


def rotate(victim: Victim, fits: list[str]) -> list[Array]:
    """Ask the same two bytes about columns in ever another order."""
    found = []
    for turn, fit in enumerate(fits):
        names = victim.columns[turn:] + victim.columns[:turn]
        if isinstance(victim.open(names, fit), Refusal):
            continue
        both: list[Any] = [victim.ask(GradientAt(b)) for b in (np.zeros(P), np.eye(P)[0])]
        if not any(isinstance(reply, Refusal) for reply in both):
            found.append(np.roll(both[1].gradient - both[0].gradient, turn))
    return found


@pytest.mark.parametrize("fits", [["ab" * 8] * P, [f"{k:02d}" * 8 for k in range(P)]])
def test_rotated_columns_and_new_fits_count_like_any_other(
    fits: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = draw_records(100, P, 1)
    policy = Policy(max_numbers=2 / 100)
    assert len(rotate(Victim(tmp_path / "after", X, y, policy), fits)) == 1
    # As it was: the bytes of the question alone said whether it had been asked before.
    monkeypatch.setattr(GuardedSite, "_key", lambda self, asked, answer: asked)
    gram = np.array(rotate(Victim(tmp_path / "before", X, y, policy), fits))
    np.testing.assert_allclose(gram, X.T @ X, rtol=1e-10)


def busy(folder: Path, policy: Policy | None = None) -> Victim:
    """A site that has used up something of every budget."""
    X, y = draw_records(150, P, 2)
    victim = Victim(folder, X, y, policy).opened()
    view = victim.view("holdout 0.2 0")
    victim.ask(ColumnSums("half 1 0"))
    victim.ask(FoldMoments("folds 2 0", on=victim.view()))
    victim.ask(HeldOutErrors(np.eye(P)[:, :3], "penalty", on=view))
    victim.ask(HeldOutErrors(np.eye(P)[:, 1:4], "penalty", on=view))
    victim.ask(NoiseAbove(np.zeros(P), 1.0, on=view))
    victim.view("", np.full(P, 1e9))
    return victim


def test_the_ledger_agrees_with_the_audit(tmp_path: Path) -> None:
    victim = busy(tmp_path)
    lifetime = victim.door.lifetime
    audit = victim.door.audit
    for budget in BUDGETS:
        spent = sum(entry.spent.get(budget, 0.0) for entry in audit.entries())
        used = sum(amount for (of, _), amount in lifetime._used.items() if of == budget)
        assert used == pytest.approx(spent)
        assert spent > 0
    assert lifetime.busiest("splits") == 1
    assert lifetime.busiest("moments") == pytest.approx(2 * P / 21)
    assert lifetime.busiest("candidates") == 4
    assert lifetime.busiest("refusals") == 1
    assert lifetime.busiest("fit_refusals") == 1
    # Another process reads the same.
    again = Lifetime.of(audit, victim.door.records.fingerprint)
    assert [again.busiest(b) for b in BUDGETS] == [lifetime.busiest(b) for b in BUDGETS]


def test_a_ledger_that_was_deleted_is_missed_and_a_torn_line_is_taken_back(tmp_path: Path) -> None:
    victim = busy(tmp_path)
    path = victim.door.lifetime.path
    whole = path.read_bytes()
    path.write_bytes(whole + b'["numbers","ab')
    Lifetime.of(victim.door.audit, victim.door.records.fingerprint).charge([], {})
    assert path.read_bytes() == whole
    path.unlink()
    with pytest.raises(FedLassoError, match="the ledger of this data file is missing"):
        Lifetime.of(victim.door.audit, victim.door.records.fingerprint)
    path.write_bytes(b"nonsense\n")
    with pytest.raises(FedLassoError, match="the ledger of this data file is damaged"):
        Lifetime.of(victim.door.audit, victim.door.records.fingerprint).used("numbers")


def search_variance(victim: Victim, times: int) -> tuple[float, float]:
    """Close in on the variance of the site's own residuals by comparing it with numbers."""
    view = victim.view()
    low, high = 1e-6, 1e6
    for _ in range(times):
        middle = np.sqrt(low * high)
        reply = victim.ask(NoiseAbove(np.zeros(P), middle, on=view))
        if isinstance(reply, Refusal):
            break
        low, high = (middle, high) if reply.above[0] else (low, middle)
    return low, high


def test_comparisons_end_before_they_tell_a_number_of_the_site(tmp_path: Path) -> None:
    """With all other sites in league, the number of noisy sites tells about this one."""
    X, y = draw_records(100, P, 5)
    own = float(y @ y) / 100 / (1 + CLEARLY * np.sqrt(2 / 100))
    low, high = search_variance(Victim(tmp_path / "after", X, y).opened(), 200)
    assert low <= own <= high
    assert np.log(high / low) == pytest.approx(np.log(1e12) / 2 ** Policy().max_comparisons)
    endless = Policy(max_comparisons=10**6, max_numbers=1e6)
    low, high = search_variance(Victim(tmp_path / "before", X, y, endless).opened(), 200)
    assert low == pytest.approx(own, rel=1e-12)


def test_a_budget_is_renewed_by_a_larger_number_in_the_policy(tmp_path: Path) -> None:
    policy = Policy(max_candidates=4)
    victim = busy(tmp_path, policy)
    view = victim.view("holdout 0.2 0")
    one_more = HeldOutErrors(np.ones((P, 1)), "penalty", on=view)
    assert "4 models have been evaluated on these held-out rows" in victim.ask(one_more).text
    X, y = victim.X, victim.y
    renewed = Victim(tmp_path, X, y, Policy(max_candidates=5)).opened()
    assert not isinstance(renewed.ask(one_more), Refusal)


def test_the_same_model_with_other_numbers_is_another_candidate(tmp_path: Path) -> None:
    """Its predictions are others, and so are the sums over them."""
    victim = Victim(tmp_path, *draw_records(100, P, 5)).opened()
    b = np.eye(P)[:, :1]
    zero, one = np.zeros(1), np.ones(1)
    questions: tuple[Request[Any], ...] = (
        PredictionErrors(b, zero),
        PredictionErrors(b, one),
        PredictionErrors(b, zero, empty=1.0),
        RecalibrationAt(b, zero),
        RecalibrationAt(b, zero, slope=2.0),
        RecalibrationAt(b, zero, intercept=2.0),
    )
    ranks: tuple[Request[Any], ...] = (ScoreRanges(b, zero), ScoreRanges(b, zero, ratio=2.0))
    for within, asked, each in (("given penalty", questions, 1), ("ranks", ranks, RANKED)):
        for counted, request in enumerate(asked, start=1):
            for _ in range(2):
                assert not isinstance(victim.ask(request), Refusal)
                assert victim.door.lifetime.used("candidates", within) == counted * each


def test_a_file_is_closed_after_many_refusals(tmp_path: Path) -> None:
    X, y = draw_records(100, P, 3)
    victim = Victim(tmp_path, X, y, Policy(max_refusals=3)).opened()
    for k in range(3):
        victim.view("", np.full(P, 1e9 + k))
    for request in (Rows(), ColumnSums()):
        closed = victim.ask(request)
        assert isinstance(closed, Refusal)
        assert closed.text.startswith("this data file is closed after 3 refused")
    assert victim.open().text.startswith("this data file is closed")
    assert not isinstance(Victim(tmp_path, X, y, Policy(max_refusals=4)).open(), Refusal)


def test_a_fit_is_closed_after_fewer_refusals_than_a_file(tmp_path: Path) -> None:
    X, y = draw_records(100, P, 3)
    policy = Policy()
    victim = Victim(tmp_path, X, y).opened()
    far = iter(range(100))
    for _ in range(policy.max_fit_refusals):
        victim.view("", np.full(P, 1e9 + next(far)))
    closed = victim.ask(Rows())
    assert isinstance(closed, Refusal)
    assert closed.text == "this fit is closed after 10 refused questions; start another"
    assert victim.open().text.startswith("this fit is closed")
    # Other fits go on, until the file is closed for good.
    victim.opened(fit="cd" * 8)
    for _ in range(policy.max_refusals - policy.max_fit_refusals):
        victim.view("", np.full(P, 1e9 + next(far)))
    assert victim.open(fit="ef" * 8).text.startswith("this data file is closed after 20 refused")


def test_views_that_did_not_leave_are_not_kept(tmp_path: Path) -> None:
    X, y = draw_records(100, P, 4)
    victim = Victim(tmp_path, X, y).opened()
    for means, kept in ((np.full(P, 1e9), False), (np.full(P, 50.0), True)):
        name = victim.view("", means)
        reply = victim.ask(Rows(on=name))
        assert isinstance(reply, Refusal) is not kept
