"""Files are written under names that nobody foresees, and through no link."""

import os
from pathlib import Path

import pytest

from fedlasso.atomic_files import CannotWrite, append_privately, write_atomically


def test_a_link_under_the_temporary_name_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    # Even somebody who has guessed the name gets nothing written through it.
    monkeypatch.setattr("secrets.token_hex", lambda _: "guessed")
    (tmp_path / ".out.guessed").symlink_to(precious)
    for private in (True, False):
        with pytest.raises(CannotWrite):
            write_atomically(tmp_path / "out", b"theirs", private=private)
        (tmp_path / ".out.guessed").symlink_to(precious)
    assert precious.read_text() == "mine"


def test_temporary_names_differ_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    before = os.open

    def note(path: str, flags: int, mode: int) -> int:
        seen.append(str(path))
        return before(path, flags, mode)

    monkeypatch.setattr("os.open", note)
    for private in (True, False) * 3:
        write_atomically(tmp_path / "out", b"", private=private)
    assert len(set(seen)) == 6
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_nothing_is_appended_through_a_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "receipts.txt").symlink_to(precious)
    with pytest.raises(CannotWrite):
        append_privately(tmp_path / "receipts.txt", "theirs")
    assert precious.read_text() == "mine"
