"""Faults of a real federation: wires cut, participants killed, slow, frozen or restarted."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from nets import SHORT, fit_files, run, same_files
from waiting import wait_until
from wires import Wire, reroute

from fedlasso.cli import federation
from fedlasso.nvflare.console import Console
from fedlasso.nvflare.kit import site_audit
from fedlasso.nvflare.local import START, LocalFederation
from fedlasso.nvflare.run import Event

# The engine and its libraries warn of things that are not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore")
SETTINGS = ("--procedure", "ADMM", "--penalty", "0.1", "--uploads", "36")
Act = Callable[[], object]


@pytest.fixture(scope="module")
def alone(tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fit_files(tables, tmp_path_factory.mktemp("alone") / "model", *SETTINGS)


@pytest.fixture(scope="module")
def wired(
    tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[LocalFederation, Wire]]:
    """A federation whose site b hangs on a wire."""
    local = LocalFederation(tmp_path_factory.mktemp("net") / "project", tables)
    wire = Wire(local.project.port)
    reroute(local.kit("b"), wire.port)
    with local, closing(wire):
        yield local, wire


@pytest.fixture
def wire(wired: tuple[LocalFederation, Wire]) -> Wire:
    wired[1].restore()
    return wired[1]


@pytest.fixture
def local(wired: tuple[LocalFederation, Wire], wire: Wire) -> LocalFederation:
    wired[0].revive()
    return wired[0]


class Story:
    """What happens during a fit of the command line, and what it says.

    Attributes
    ----------
    at : what happens once after the answer to a question, by its number
    then : what happens in turn when the fit says that it was interrupted
    gone : what happens once when the server counts a site no longer, by the site
    """

    def __init__(self) -> None:
        self.at: dict[int, Act] = {}
        self.then: list[Act] = []
        self.gone: dict[str, Act] = {}
        self.said: list[str] = []

    def listen(self, event: Event) -> None:
        self.at.pop(event.number, lambda: None)()

    def look(self, present: dict[str, float]) -> None:
        for site in self.gone.keys() - present.keys():
            self.gone.pop(site)()

    def say(self, line: str) -> None:
        self.said.append(line)
        if self.then:
            self.then.pop(0)()


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> Story:
    told, connected = Story(), Console.connected

    def look(self: Console) -> dict[str, float]:
        present = connected(self)
        told.look(present)
        return present

    monkeypatch.setattr(Console, "connected", look)
    monkeypatch.setattr(federation, "show_progress", lambda: told.listen)
    monkeypatch.setattr(federation, "say", told.say)
    return told


def fit(local: LocalFederation, out: Path, *options: object) -> int:
    given = ("--target", "y", "--drop", "note", "--out", out, "--start", START)
    return run("federation", "fit", local.folder, *given, *SETTINGS, *options)


def once(condition: Callable[[], bool], act: Act) -> None:
    """Act when a condition is met, while the fit goes on."""

    def wait() -> None:
        wait_until(condition, "what a fault waits for")
        act()

    threading.Thread(target=wait, daemon=True).start()


def entries(local: LocalFederation, site: str) -> int:
    return sum(1 for _ in site_audit(local.kit(site)).entries())


def test_stop_names_the_site_and_the_fit_resumes_to_the_same_bits(
    local: LocalFederation, wire: Wire, story: Story, tables: dict[str, Path], alone: Path,
    tmp_path: Path, capsys: pytest.CaptureFixture[str], hurry: Act,
) -> None:  # fmt: skip
    out, data = tmp_path / "model", tables["c"].read_text()

    def cut() -> None:
        wire.cut()
        hurry()

    def silence() -> None:
        wire.silence()
        hurry()

    def change() -> None:
        tables["c"].write_text(data.replace("0.1", "0.2"))

    def slow() -> None:
        family, before = local.family("a"), entries(local, "c")
        for process in family:
            process.suspend()
        once(lambda: entries(local, "c") > before, lambda: [p.resume() for p in family])

    faults: list[tuple[int, Act, str, Act]] = [
        (3, cut, "site 'b' ", wire.restore),
        (6, silence, f"site 'b' did not answer within {SHORT:.0f} s", wire.restore),
        (9, change, "site 'c': the data file has changed since it was read; restore it and resume",
         lambda: tables["c"].write_text(data)),
    ]  # fmt: skip
    story.at = {number: fault for number, fault, _, _ in faults} | {11: slow}
    ended = fit(local, out)
    for _, _, error, mend in faults:
        assert ended == 2
        said = capsys.readouterr().err
        assert said.startswith(f"fedlasso: {error}")
        assert "resume" in said
        assert said.count("\n") == 1
        assert not (out / "model.json").exists()
        mend()
        local.wait()
        ended = run("federation", "resume", out, "--start", START)
    # The slow site was only slow.
    assert (ended, story.at, story.said) == (0, {}, [])
    assert same_files(out, alone)


def test_retry_outlives_the_loss_of_an_engine_and_a_long_cut(
    local: LocalFederation, wire: Wire, story: Story, alone: Path, tmp_path: Path, hurry: Act
) -> None:
    def kill_engine() -> None:
        # It comes back by itself: the site's command starts it again.
        for process in local.family("b")[1:]:
            process.kill()
        hurry()

    def cut() -> None:
        # So long that the server counts the site no longer.
        story.gone = {"b": wire.restore}
        wire.cut()

    out = tmp_path / "model"
    story.at = {4: kill_engine, 8: cut}
    assert fit(local, out, "--on-failure", "retry") == 0
    assert (story.at, story.gone) == ({}, {})
    assert len(story.said) >= 2
    assert story.said[0].startswith("site 'b' ")
    assert story.said[0].endswith("(trying again, 1 of 3)")
    assert same_files(out, alone)


def test_wait_outlives_the_loss_of_a_site_and_of_the_server(
    local: LocalFederation, wire: Wire, story: Story, alone: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], hurry: Act,
) -> None:  # fmt: skip
    def lose_site() -> None:
        local.kill("a")
        hurry()

    def lose_server() -> None:
        local.kill("server")
        story.then = [threading.Thread(target=local.start_server).start]

    out = tmp_path / "model"
    story.at = {4: lose_site, 8: lose_server}
    story.then = [lambda: local.start_site("a")]
    assert fit(local, out, "--on-failure", "wait") == 0
    assert len(story.said) >= 2
    assert story.said[0].startswith("site 'a' ")
    assert {line.endswith("(trying again, waiting)") for line in story.said} == {True}
    assert f"{len(story.said) + 1} attempts" in capsys.readouterr().out
    assert same_files(out, alone)
