"""Files that are whole or absent, and for their owner only where they must be."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from helpers.draws import draw_federation
from helpers.models.files import write_sites

from fedlasso.atomic_files import CannotWrite, append_privately, write_atomically
from fedlasso.federation import Journal
from fedlasso.fitting import Settings
from fedlasso.models import FileSource, FitPlan
from fedlasso.models.folder import ModelFolder
from fedlasso.sites import Memory, Rows


@pytest.fixture(params=[0o000, 0o022])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """Whatever else may be read by others, these files may not."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_private_files_and_the_folders_made_for_them_are_for_their_owner(
    umask: int, tmp_path: Path
) -> None:
    write_atomically(tmp_path / "open" / "file", b"x")
    assert mode(tmp_path / "open" / "file") == 0o666 & ~umask
    write_atomically(tmp_path / "own" / "file", b"x", private=True)
    append_privately(tmp_path / "own" / "more", "x")
    assert mode(tmp_path / "own") == 0o700
    assert {mode(path) for path in (tmp_path / "own").iterdir()} == {0o600}
    # A file that could be read by others cannot be once it is written anew.
    write_atomically(tmp_path / "open" / "file", b"y", private=True)
    assert mode(tmp_path / "open" / "file") == 0o600


def test_journal_plan_and_memory_of_a_fit_of_files_are_for_their_owner(
    umask: int, tmp_path: Path
) -> None:
    files = tuple(map(str, write_sites(tmp_path)))
    folder = ModelFolder(tmp_path / "model")
    folder.begin(FitPlan(Settings(), FileSource(files, "y")))
    Journal(draw_federation(), folder.journal).ask(Rows())
    Memory(folder.memory).store("fit", 1, {"v": np.ones(3)})
    assert mode(folder.path / "plan.json") == 0o600
    assert mode(folder.journal) == mode(folder.memory) == 0o700
    assert mode(folder.journal / "000000.entry") == 0o600
    assert [mode(path) for path in folder.memory.iterdir()] == [0o600]


def test_what_could_not_be_added_in_whole_is_not_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "receipts.txt"
    append_privately(path, "one\n")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("fedlasso.atomic_files.os.fsync", full)
        with pytest.raises(CannotWrite, match=r"receipts\.txt: No space left on device"):
            append_privately(path, "two\n")
    append_privately(path, "three\n")
    assert path.read_text() == "one\nthree\n"
