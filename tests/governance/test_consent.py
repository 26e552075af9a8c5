"""The desk: a reply leaves when somebody at the site says so."""

import threading
from pathlib import Path

import numpy as np
import pytest

from fedlasso.federation import Reply
from fedlasso.governance import Desk, Entry
from fedlasso.sites.questions import RowCount
from fedlasso.sites.views import Totals

ENTRY = Entry("ab" * 16, "Rows", "sent", numbers=1, payload=8, asked="cd" * 32)


def decide(desk: Desk, reply: Reply, word: str) -> tuple[list[bool], list[str]]:
    """What became of a reply, and what the operator was shown."""
    texts: list[str] = []
    words: list[bool] = []

    def ask(text: str) -> str:
        texts.append(text)
        return word

    waiter = threading.Thread(target=lambda: words.append(desk.approve(ENTRY, reply)))
    waiter.start()
    while waiter.is_alive():
        desk.serve(ask)
    waiter.join()
    return words, texts


@pytest.mark.parametrize(
    ("word", "leaves"), [("n", False), ("", False), ("y", True), ("Yes", True)]
)
def test_a_desk_asks_before_a_reply_leaves(word: str, leaves: bool, tmp_path: Path) -> None:
    words, texts = decide(Desk(tmp_path), RowCount(30), word)
    assert words == [leaves]
    assert "Allow transfer?" in texts[0]
    assert "Fit abababab asks Rows: 1 numbers, 8 bytes" in texts[0]
    assert '"rows": 30' in texts[0]
    assert not list(tmp_path.iterdir())


def test_one_yes_may_hold_for_all_replies_of_a_fit(tmp_path: Path) -> None:
    assert decide(Desk(tmp_path), RowCount(30), "a")[0] == [True]
    assert Desk(tmp_path).approve(ENTRY, RowCount(31))


def test_silence_is_a_no(tmp_path: Path) -> None:
    assert not Desk(tmp_path, patience=0.0).approve(ENTRY, RowCount(30))


@pytest.mark.parametrize("missing", [None, np.ones(2)])
def test_arrays_are_shown_as_they_would_leave(missing: np.ndarray | None, tmp_path: Path) -> None:
    _, texts = decide(Desk(tmp_path), Totals(3, np.array([1.5, 2.5]), 4.0, missing), "n")
    assert '"sums": [1.5, 2.5]' in texts[0]
    assert f'"missing": {"null" if missing is None else "[1.0, 1.0]"}' in texts[0]
