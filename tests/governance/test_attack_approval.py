"""Attack 8: replies leave that the operator has not agreed to, or not knowing what was asked."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.governance.victims import Victim, draw_records
from helpers.nets import FIT, numbers, opening

from fedlasso.federation import Request
from fedlasso.governance import Desk, Entry, Policy, consent, guard
from fedlasso.governance.door_messages import DescribeColumns, Described, Opened, Refusal
from fedlasso.governance.refusals import SILENCE
from fedlasso.sites import GradientAt
from fedlasso.sites.views import ColumnSums

P = 4
# Whoever asks chooses the identity of a fit, and so eight characters of it.
ALIKE = FIT[:8] + "cd" * 12
ZERO = GradientAt(np.zeros(P))
UNIT = GradientAt(np.eye(P)[0])


class Operated(Victim):
    """A site whose replies wait at a desk until the operator has read what would leave.

    Attributes
    ----------
    decide : the operator's word, by what is shown
    shown : all that was shown
    """

    def __init__(self, folder: Path, decide: Callable[[str], str]) -> None:
        super().__init__(folder, *draw_records(100, P, 1), Policy(approval=True))
        self.decide = decide
        self.shown: list[str] = []
        (folder / "pending").mkdir()
        self.start(set())

    def start(self, agreed: set[str]) -> None:
        """Start the site, for which some fits are agreed to already."""
        self._desk = Desk(self.door.memory.with_name("pending"))
        self._desk._approved = agreed
        self.door.approve = self._desk.approve

    def ask(self, request: Request[Any]) -> Any:
        """Return the reply, or a refusal, once the operator has said a word if one is wanted."""
        replies: list[Any] = []
        waiter = threading.Thread(target=lambda: replies.append(Victim.ask(self, request)))
        waiter.start()
        while waiter.is_alive():
            self._desk.serve(self._read)
            waiter.join(0.01)
        return replies[0]

    def _read(self, text: str) -> str:
        self.shown.append(text)
        return self.decide(text)


class ByPrefix(set[str]):
    """Fits that were agreed to, known by eight characters as they once were."""

    def __contains__(self, fit: object) -> bool:
        return any(str(fit)[:8] == known[:8] for known in self)


def agree_to_first(text: str) -> str:
    """Agree to all of the first fit, and to nothing else."""
    return "a" if f"for fit {FIT}\n" in text else "n"


@pytest.mark.parametrize("guarded", [True, False])
def test_a_fit_that_is_called_like_an_approved_one_is_asked_about(
    guarded: bool, tmp_path: Path
) -> None:
    site = Operated(tmp_path / "site", agree_to_first)
    agreed: set[str] = set() if guarded else ByPrefix()
    site.start(agreed)
    site.opened()
    assert not isinstance(site.ask(ZERO), Refusal)
    site.opened(fit=ALIKE)
    reply = site.ask(ColumnSums())
    if guarded:
        assert isinstance(reply, Refusal)
        assert reply.text == SILENCE
        assert f"asks ColumnSums for fit {ALIKE}" in site.shown[-1]
    else:
        np.testing.assert_allclose(reply.sums, site.X.sum(axis=0))
        assert len(site.shown) == 1


@pytest.mark.parametrize("guarded", [True, False])
def test_a_yes_to_a_whole_fit_ends_when_the_site_stops(guarded: bool, tmp_path: Path) -> None:
    site = Operated(tmp_path / "site", agree_to_first)
    agreed: set[str] = set()
    site.start(agreed)
    site.opened()
    assert not isinstance(site.ask(ZERO), Refusal)
    # It was written down once, and so held for ever.
    site.start(set() if guarded else agreed)
    site.decide = lambda text: "n"
    site.opened()
    assert isinstance(site.ask(UNIT), Refusal) == guarded
    assert len(site.shown) == (2 if guarded else 1)


def by_identity(transfers: Any) -> str:
    """What a yes was about once: the identity, which the coordinator chooses."""
    return str(transfers[0][0].fit)


@pytest.mark.parametrize("guarded", [True, False])
def test_an_approved_fit_that_is_opened_otherwise_is_asked_about(
    guarded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not guarded:
        monkeypatch.setattr(consent, "approval_scope", by_identity)
    answers = iter(["a", *["n"] * 9])
    site = Operated(tmp_path / "site", lambda text: next(answers))
    site.opened("x0", "x1")
    one = GradientAt(np.zeros(2))
    assert not isinstance(site.ask(one), Refusal)
    # The same once more, as a resumed fit is.
    site.opened("x0", "x1")
    assert not isinstance(site.ask(one), Refusal)
    assert len(site.shown) == 1
    schema = numbers(("x0", "x1"))
    others: list[Any] = [
        numbers(("x2", "x3")), numbers(("x0", "x2")), numbers(("x0", "x1"), "x3"),
        {"intercept": False}, {"sites": ("a", "b", "c", "d")}, {"effects": True},
        {"missing": "mean"},
    ]  # fmt: skip
    for other in others:
        changes = other if isinstance(other, dict) else {}
        reply = site.ask(opening(schema if changes else other, **changes))
        assert isinstance(reply, Opened), reply
        asked = GradientAt(np.zeros(len(site.door._site.columns)))  # type: ignore[union-attr]
        assert isinstance(site.ask(asked), Refusal) == guarded, other
    assert len(site.shown) == (1 + len(others) if guarded else 1)


def agree_to_zero(text: str) -> str:
    """Agree to no gradient at a model that singles out one column."""
    return "n" if "1 not zero" in text else "y"


def say_nothing_of_it(entry: Entry, request: Request[Any]) -> Entry:
    """What was asked, without its parameters."""
    return replace(entry, question=type(request).__name__)


@pytest.mark.parametrize("guarded", [True, False])
def test_the_operator_sees_what_is_asked_and_not_only_its_name(
    guarded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not guarded:
        monkeypatch.setattr(guard, "describe_question", say_nothing_of_it)
    site = Operated(tmp_path / "site", agree_to_zero)
    site.opened()
    at_zero, at_unit = site.ask(ZERO), site.ask(UNIT)
    asked = [text.partition("Would leave")[0] for text in site.shown]
    # Two questions of one name read the same without their parameters.
    assert (asked[0] != asked[1]) == guarded
    assert isinstance(at_unit, Refusal) == guarded
    if not guarded:
        np.testing.assert_allclose(at_unit.gradient - at_zero.gradient, site.X.T @ site.X[:, 0])


def test_what_is_asked_about_columns_is_shown_with_its_parameters(tmp_path: Path) -> None:
    site = Operated(tmp_path / "site", lambda text: "y")
    assert isinstance(site.ask(DescribeColumns(FIT, "y", ("x0",), (), 17)), Described)
    assert "min_level: 17" in site.shown[0]
