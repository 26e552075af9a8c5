"""Files in any order, lost, repeated or late, and commands killed anywhere: the same model."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import fsspec
import pytest
from helpers.deploy.object_store import ObjectStore
from helpers.deploy.post import Post
from helpers.nets import same_files, write_tables
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedlasso.cli import main
from fedlasso.deploy.courier import carriers
from fedlasso.deploy.courier.collect import collect
from fedlasso.deploy.courier.mailbox import Mailbox
from fedlasso.deploy.courier.serve import ProjectWatch, SiteWatch
from fedlasso.errors import FedLassoError, Interrupted
from fedlasso.models import read_document

T = TypeVar("T")


class Killed(BaseException):
    """A power cut."""


@contextmanager
def killed_at(point: int, before: bool) -> Iterator[list[int]]:
    """Interrupt at the given file that is put into place, or just after it is."""
    place = Path.replace
    count = [0]

    def replace(self: Path, target: Any) -> Path:
        count[0] += 1
        if before and count[0] == point:
            raise Killed
        done = place(self, target)
        if count[0] == point:
            raise Killed
        return done

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Path, "replace", replace)
        yield count


def until_done(command: Callable[[], T]) -> T:
    """Repeat a command, which is killed at every file that it writes, until it ends."""
    for point in range(1, 200):
        for before in (True, False):
            try:
                with killed_at(point, before):
                    return command()
            except Killed:
                continue
    raise AssertionError("the command never ends")


@pytest.fixture
def post(tmp_path: Path) -> Post:
    return Post(tmp_path / "post", write_tables(tmp_path))


def ask_words(post: Post) -> list[str]:
    """The words of a command that begins a fit."""
    trial, out = str(post.place.folder), str(post.folder / "model")
    return ["courier", "ask", trial, "--target", "y", "--drop", "note", "--out", out]


def test_asking_killed_at_every_file_begins_one_fit_with_the_same_bytes(post: Post) -> None:
    seen: dict[str, bytes] = {}

    def ask() -> int:
        for path in post.place.folder.rglob("*.flq"):
            data = path.read_bytes()
            assert seen.setdefault(path.name, data) == data
        return main(ask_words(post))

    assert until_done(ask) == 0
    (fit,) = post.place.fits()
    assert {path.name for path in (post.place.folder / "fits").iterdir()} == {fit.name, "lock"}
    files = {path.name: path.read_bytes() for path in post.place.folder.rglob("*.flq")}
    # The questions in the fit's folder, and those in the outbox.
    assert len(files) == 6
    assert seen.items() <= files.items()
    assert seen


@pytest.mark.full
def test_commands_killed_at_every_file_they_write_end_in_the_same_model(
    post: Post, tmp_path: Path
) -> None:
    assert until_done(partial(main, ask_words(post))) == 0
    (fit,) = post.place.fits()
    finished = False
    while not finished:
        for question in fit.outstanding():
            if question.name.startswith("a-"):
                answer = until_done(partial(post.answer, question)).answer
            else:
                answer = post.answer(question).answer
            assert answer is not None
            until_done(partial(collect, post.place, answer))
        # Killed after its last file, the fit is finished.
        until_done(lambda: fit.about.finished or post.advance(fit))
        finished = fit.about.finished
    document = read_document(post.folder / "model" / "model.json")
    assert same_files(post.folder / "model", post.repeat(document, tmp_path / "alone"))


# Runs a command of the terminal, and is killed at the given file that is put into place.
_KILLED = """
import os, pathlib, signal, sys
place, count = pathlib.Path.replace, [0]
def replace(self, target):
    count[0] += 1
    if count[0] == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    return place(self, target)
pathlib.Path.replace = replace
from fedlasso.cli import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.full
def test_real_commands_that_are_killed_and_repeated_end_in_the_same_model(
    post: Post, tmp_path: Path
) -> None:
    def run(point: int, *words: object) -> int:
        command = [sys.executable, "-c", _KILLED, str(point), *map(str, words)]
        return subprocess.run(command, capture_output=True).returncode

    trial = post.folder / "trial"
    for point in (1, 2, 3, 4, 6):
        assert run(point, *ask_words(post)) == -9
    assert run(0, *ask_words(post)) == 0
    (fit,) = post.place.fits()
    for trip in range(4):
        for question in fit.outstanding():
            site = question.name[0]
            words: tuple[object, ...]
            words = ("courier", "answer", post.kit(site), question, post.tables[site], "--yes")
            if site == "a":
                # Each trip is killed at another file; the last one is a file too many.
                assert run(1 + trip, *words) == -9
            assert run(0, *words) == 0
        words = ("courier", "collect", trial, trial / "outbox")
        assert run(1 + 2 * trip, *words) == -9
        assert run(0, *words) == 0
    assert fit.about.finished
    other = Post(tmp_path / "other", post.tables)
    for site in post.tables:
        secret = Path("books", "key")
        (other.kit(site) / "books").mkdir(exist_ok=True)
        shutil.copy(post.kit(site) / secret, other.kit(site) / secret)
    other.finish(other.ask())
    assert same_files(post.folder / "model", other.folder / "model")


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> tuple[Post, Path]:
    """A fit that was asked and not answered, and its model when nothing goes wrong."""
    base = tmp_path_factory.mktemp("begun")
    post = Post(base / "post", write_tables(base))
    post.ask()
    return post, base


def copy_of(post: Post, folder: Path) -> Post:
    """The same project and fit in another folder."""
    other = Post.__new__(Post)
    vars(other).update(vars(post))
    shutil.copytree(post.folder, folder)
    other.folder = folder
    other.place = type(post.place)(folder / "trial")
    return other


@pytest.mark.full
def test_any_order_loss_repetition_and_delay_of_files_ends_in_the_same_model(
    begun: tuple[Post, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    post, base = begun
    answered: dict[tuple[str, bytes], Any] = {}
    really = Mailbox._ask_door

    def ask_once(self: Mailbox, kit: Any, head: Any, question: Any, session: Any) -> Any:
        """Sites compute each answer once: the order of files decides nothing about it."""
        known = (kit.name, question.asked)
        if known not in answered:
            answered[known] = really(self, kit, head, question, session)
        return answered[known]

    monkeypatch.setattr(Mailbox, "_ask_door", ask_once)
    reference = copy_of(post, base / "reference")
    (fit,) = reference.place.fits()
    reference.finish(fit)
    model = {
        name: (Path(fit.about.out) / name).read_bytes()
        for name in ("model.json", "coefficients.csv", "card.html")
    }
    runs = iter(range(1000))

    @settings(max_examples=12, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.tuples(st.booleans(), st.integers(0, 10**6)), max_size=40))
    def carry(steps: list[tuple[bool, int]]) -> None:
        own = copy_of(post, base / f"run-{next(runs)}")
        shutil.rmtree(post.folder / "model", ignore_errors=True)
        (fit,) = own.place.fits()
        questions: dict[str, Path] = {}
        answers: list[Path] = []
        mail = own.folder / "mail"
        mail.mkdir()
        for to_site, pick in steps:
            for path in fit.outstanding():
                questions.setdefault(path.name, Path(shutil.copy(path, mail)))
            # Any file that was ever sent may arrive, again or for the first time.
            if to_site or not answers:
                question = list(questions.values())[pick % len(questions)]
                try:
                    answer = own.answer(question).answer
                except FedLassoError:
                    continue
                if answer is not None:
                    answers.append(answer)
            else:
                collect(own.place, answers[pick % len(answers)])
                if not fit.about.finished:
                    own.advance(fit)
        while not fit.about.finished:
            own.carry_again(fit)
            own.advance(fit)
        for name, data in model.items():
            assert (Path(fit.about.out) / name).read_bytes() == data

    carry()


@pytest.mark.parametrize("kind", ["folder", "memory", "store"])
def test_a_watched_folder_carries_a_fit_to_its_end(post: Post, tmp_path: Path, kind: str) -> None:
    fsspec.register_implementation("store", ObjectStore, clobber=True)
    place = str(tmp_path / "exchange") if kind == "folder" else f"{kind}://{tmp_path.name}/trial"
    (tmp_path / "exchange").mkdir()
    carrier = carriers.open_carrier(place)
    said: list[str] = []
    fit = post.ask()
    project = ProjectWatch(post.place, carrier, said.append, lambda f: said.append(f.about.out))
    sites = [SiteWatch(post.mailbox(site), carrier, said.append) for site in post.tables]
    project.look()
    # Half of a file, as a program that synchronises may leave it, and a file of others.
    whole = carrier.read(carrier.names()[0])
    carrier.write("a-12345678-01.flq", whole[:1000])
    for _ in range(4):
        for site in sites:
            site.look()
        project.look()
    assert str(post.folder / "model") in said
    assert fit.about.finished
    assert sum("is not complete" in line for line in said) == 1
    for site in sites:
        site.look()
    assert not list(post.kit("a").glob("courier/*/session"))


def test_a_weak_connection_is_tried_again_and_a_lost_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carriers, "PAUSE", 0.0)
    carrier = carriers.Folder(tmp_path)
    failures = [2]
    place = Path.replace

    def replace(self: Path, target: Any) -> Path:
        failures[0] -= 1
        if failures[0] >= 0:
            raise OSError(5, os.strerror(5))
        return place(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    carrier.write("a-1-01.flq", b"data")
    assert carrier.read("a-1-01.flq") == b"data"
    failures[0] = 100
    with pytest.raises(Interrupted, match="tried 5 times"):
        carrier.write("a-1-02.flq", b"data")
    assert carrier.names() == ["a-1-01.flq"]
    with pytest.raises(Interrupted, match="cannot be reached"):
        carriers.Folder(tmp_path / "lost").names()


def test_an_object_store_has_no_folders_and_empty_files(tmp_path: Path) -> None:
    fsspec.register_implementation("store", ObjectStore, clobber=True)
    carrier = carriers.open_carrier(f"store://{tmp_path.name}/trial")
    assert carrier.names() == []
    carrier.write("a-1-01.flq", b"data")
    carrier.write("a-1-02.flq", b"")
    assert carrier.names() == ["a-1-01.flq", "a-1-02.flq"]
    assert carrier.read("a-1-01.flq") == b"data"
    assert carrier.read("a-1-02.flq") == b""
    for name in carrier.names():
        carrier.remove(name)
    assert carrier.names() == []


def test_errors_of_a_file_systems_library_are_one_line_and_it_connects_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Libraries have errors that are no OSError, such as paramiko.SSHException."""
    monkeypatch.setattr(carriers, "PAUSE", 0.0)
    fsspec.register_implementation("store", ObjectStore, clobber=True)
    place = f"store://{tmp_path.name}/trial"
    carrier = carriers.open_carrier(place)
    carrier.write("a-1-01.flq", b"data")
    ls = ObjectStore.ls
    lost: list[ObjectStore] = []

    def fail_once(self: ObjectStore, *given: Any, **named: Any) -> Any:
        lost.append(self)
        if self is lost[0]:
            raise SSHException("Server connection\ndropped")
        return ls(self, *given, **named)

    monkeypatch.setattr(ObjectStore, "ls", fail_once)
    assert carrier.names() == ["a-1-01.flq"]
    assert len(lost) == 2

    def fail(*given: Any, **named: Any) -> Any:
        raise SSHException("Server connection\ndropped")

    monkeypatch.setattr(ObjectStore, "ls", fail)
    post = Post(tmp_path / "post", write_tables(tmp_path))
    words = ["courier", "serve", str(post.place.folder), "--folder", place, "--once"]
    assert main(words) == 2
    line = f"fedlasso: {place}: Server connection dropped; tried 5 times\n"
    assert capsys.readouterr().err == line
    monkeypatch.setattr(ObjectStore, "__init__", fail)
    ObjectStore.clear_instance_cache()
    with pytest.raises(FedLassoError, match=f"cannot use {place}: Server connection dropped"):
        carriers.open_carrier(place)


class SSHException(Exception):
    """An error that is no OSError."""
