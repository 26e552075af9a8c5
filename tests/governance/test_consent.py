"""The desk: a reply leaves when somebody at the site says so."""

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedlasso.federation import Reply
from fedlasso.governance import Desk, Entry
from fedlasso.sites.questions import RowCount
from fedlasso.sites.views import Totals

ENTRY = Entry(
    "ab" * 16,
    "Rows",
    "sent",
    numbers=1,
    payload=8,
    asked="cd" * 32,
    about="columns 'u', 'v', target 'y'",
    parameters="lam: 0.5",
)


def decide(
    desk: Desk, reply: Reply, word: str, entry: Entry = ENTRY
) -> tuple[list[bool], list[str]]:
    """What became of a reply, and what the operator was shown."""
    texts: list[str] = []
    words: list[bool] = []

    def ask(text: str) -> str:
        texts.append(text)
        return word

    waiter = threading.Thread(target=lambda: words.append(desk.approve([(entry, reply)])))
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
    assert f"The coordinator asks Rows for fit {ENTRY.fit}" in texts[0]
    assert "The fit: columns 'u', 'v', target 'y'" in texts[0]
    assert "The question: lam: 0.5" in texts[0]
    assert "Would leave, in clear: 1 numbers, 8 bytes" in texts[0]
    assert '"rows": 30' in texts[0]
    assert not list(tmp_path.iterdir())


def test_one_yes_may_hold_for_all_replies_of_a_fit_while_the_site_runs(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    words, texts = decide(desk, RowCount(30), "a")
    assert words == [True]
    assert "[a]ll further replies of this fit, whatever they are" in texts[0]
    assert decide(desk, RowCount(31), "n") == ([True], [])
    # Another fit is asked about, whatever its name begins with, and so is this one after a restart.
    other = replace(ENTRY, fit=ENTRY.fit[:8] + "cd" * 12)
    assert decide(desk, RowCount(31), "n", other)[0] == [False]
    assert decide(Desk(tmp_path), RowCount(31), "n")[0] == [False]
    assert not list(tmp_path.iterdir())


def test_silence_is_a_no(tmp_path: Path) -> None:
    assert not Desk(tmp_path, patience=0.0).approve([(ENTRY, RowCount(30))])


@pytest.mark.parametrize("missing", [None, np.ones(2)])
def test_arrays_are_shown_as_they_would_leave(missing: np.ndarray | None, tmp_path: Path) -> None:
    _, texts = decide(Desk(tmp_path), Totals(3, 3.0, np.array([1.5, 2.5]), 4.0, missing), "n")
    assert '"sums": [1.5, 2.5]' in texts[0]
    assert f'"missing": {"null" if missing is None else "[1.0, 1.0]"}' in texts[0]
