"""A disk that fills up, on either side, costs nothing: the same command goes on."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from helpers.deploy.post import Post
from helpers.nets import same_files, write_tables

from fedlasso.cli import main
from fedlasso.deploy.courier import carriers
from fedlasso.deploy.courier.serve import ProjectWatch, SiteWatch
from fedlasso.deploy.kit import open_audit
from fedlasso.models import read_document


@contextmanager
def full_disk(first: int, forever: bool) -> Iterator[list[int]]:
    """Let a write, or all from it on, find no space; yields how many were tried."""
    really = os.fsync
    tried = [0]

    def fsync(descriptor: int) -> None:
        tried[0] += 1
        if tried[0] == first or (forever and tried[0] > first):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        really(descriptor)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", fsync)
        yield tried


def run_until_written(capsys: pytest.CaptureFixture[str], *words: object) -> None:
    """Repeat a command whose disk is full at each of its writes in turn, until it ends."""
    for first in count(1):
        for forever in (False, True):
            with full_disk(first, forever) as tried:
                code = main(["courier", *map(str, words)])
            if tried[0] < first:
                assert code == 0
                return
            said = capsys.readouterr()
            assert code == 2
            assert "No space left on device" in said.err
            assert "refus" not in said.out.partition("Left of this data file's budgets")[0]
            assert "failed" not in said.out


@pytest.fixture
def post(tmp_path: Path) -> Post:
    return Post(tmp_path / "post", write_tables(tmp_path))


@pytest.mark.full
def test_a_full_disk_on_either_side_ends_in_the_same_model(
    post: Post, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial, model = post.place.folder, post.folder / "model"
    ask = ("ask", trial, "--target", "y", "--drop", "note", "--out", model)
    run_until_written(capsys, *ask)
    (fit,) = post.place.fits()
    while not fit.about.ended:
        for question in fit.outstanding():
            if question.name.startswith("a-"):
                words = ("answer", post.kit("a"), question, post.tables["a"], "--yes")
                run_until_written(capsys, *words)
            else:
                post.answer(question)
        run_until_written(capsys, "collect", trial, trial / "outbox")
    assert fit.about.finished
    document = read_document(model / "model.json")
    assert same_files(model, post.repeat(document, tmp_path / "alone"))
    # The audit ends at its anchor.
    open_audit(post.kit("a")).check_anchor()


def test_a_full_disk_at_a_site_is_no_refusal(
    post: Post, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = post.ask()
    post.carry(fit)
    assert post.advance(fit) is None
    question = fit.outstanding()[0]
    words = ["courier", "answer", str(post.kit("a")), str(question), str(post.tables["a"]), "--yes"]
    for first in range(1, 8):
        with full_disk(first, forever=True):
            assert main(words) == 2
        assert "No space left on device" in capsys.readouterr().err
        assert not question.with_suffix(".fla").exists()
    assert main(words) == 0
    assert "the answer is a refusal" not in capsys.readouterr().out
    open_audit(post.kit("a")).check_anchor()


def test_watched_folders_go_on_once_there_is_room(post: Post, tmp_path: Path) -> None:
    said: list[str] = []
    fit = post.ask()
    carrier = carriers.Folder(tmp_path / "exchange")
    carrier.path.mkdir()
    project = ProjectWatch(post.place, carrier, said.append, lambda _: None)
    sites = [SiteWatch(post.mailbox(site), carrier, said.append) for site in post.tables]
    project.look()
    with full_disk(1, forever=True):
        for site in sites:
            assert site.look() == 0
            assert not site.well
    assert len([line for line in said if "No space left on device" in line]) == 3
    for site in sites:
        assert site.look() == 1
        assert site.well
    with full_disk(1, forever=True):
        assert project.look() == 1
        assert not project.well
    assert project.look() == 1
    assert len(fit.trips()) == 2


def test_a_file_that_is_taken_away_or_open_elsewhere_is_named_once(
    post: Post, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    name = "a-12345678-01.flq"
    (tmp_path / name).mkdir()
    watch = SiteWatch(post.mailbox("a"), carriers.Folder(tmp_path), said.append)
    for _ in range(2):
        assert watch.look() == 0
        assert not watch.well
    assert said == [f"{name}: cannot be read: {os.strerror(errno.EISDIR)}"]


def test_copies_with_other_names_are_answered_once_and_other_sites_left_alone(
    post: Post, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Programs that synchronise or download add to names; names of sites may begin alike."""
    fit = post.ask()
    question, other = fit.outstanding()[:2]
    data = question.read_bytes()
    folder = carriers.Folder(tmp_path / "inbox")
    folder.path.mkdir()
    for added in (" (1)", " (conflicted copy)", " - Copy"):
        folder.write(f"{question.stem}{added}.flq", data)
    folder.write(other.name.replace("b-", "a-b-"), other.read_bytes())
    said: list[str] = []
    watch = SiteWatch(post.mailbox("a"), folder, said.append)
    looks = [watch.look() for _ in range(3)]
    assert looks == [1, 0, 0]
    assert watch.well
    assert len([line for line in said if "question 1 of fit" in line]) == 1
    answers = [path.name for path in folder.path.glob("*.fla")]
    assert answers == [f"{question.stem}.fla"]
    words = ["courier", "answer", str(post.kit("a")), str(folder.path), str(post.tables["a"])]
    assert main([*words, "--yes"]) == 0
    assert capsys.readouterr().out.count("answered before") == 3
    (tmp_path / "empty").mkdir()
    words[3] = str(tmp_path / "empty")
    assert main([*words, "--yes"]) == 2
    assert "empty contains no question file of a, a-*.flq" in capsys.readouterr().err


def test_an_answer_after_the_end_is_late_and_leaves_nothing(
    post: Post, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = post.ask()
    answer = post.answer(fit.outstanding()[0]).answer
    assert answer is not None
    fit.fail("no longer needed")
    assert main(["courier", "collect", str(post.place.folder), str(answer)]) == 0
    said = capsys.readouterr()
    late = f"{answer.name}: is late: its fit has ended, and needs no more answers"
    assert late in said.err
    assert "No fit is unfinished" in said.out
    assert not list(fit.folder.rglob("*.answer"))
    carrier = carriers.Folder(tmp_path)
    carrier.write(answer.name, answer.read_bytes())
    watch = ProjectWatch(post.place, carrier, lambda _: None, lambda _: None)
    assert watch.look() == 0
    assert watch.well
    assert answer.name not in carrier.names()
