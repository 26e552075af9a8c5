"""Faults of a real federation: wires cut, participants killed, slow, frozen or restarted."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from nets import fit_files, run, same_files
from wires import Wire, reroute

from fedlasso.cli import federation
from fedlasso.deploy.nvflare.kit import site_audit
from fedlasso.deploy.nvflare.local import LocalFederation
from fedlasso.deploy.run import Event

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
    with local:
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
    """

    def __init__(self) -> None:
        self.at: dict[int, Act] = {}
        self.then: list[Act] = []
        self.said: list[str] = []

    def listen(self, event: Event) -> None:
        self.at.pop(event.number, lambda: None)()

    def say(self, line: str) -> None:
        self.said.append(line)
        if self.then:
            self.then.pop(0)()


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> Story:
    told = Story()
    monkeypatch.setattr(federation, "show_progress", lambda: told.listen)
    monkeypatch.setattr(federation, "say", told.say)
    return told


def fit(local: LocalFederation, out: Path, *options: object) -> int:
    given = ("--target", "y", "--drop", "note", "--out", out, "--timeout", "8")
    return run("federation", "fit", local.folder, *given, *SETTINGS, *options)


def once(condition: Callable[[], bool], act: Act) -> None:
    """Act when a condition is met, while the fit goes on."""

    def wait() -> None:
        end = time.monotonic() + 120
        while not condition() and time.monotonic() < end:
            time.sleep(0.05)
        act()

    threading.Thread(target=wait, daemon=True).start()


def entries(local: LocalFederation, site: str) -> int:
    return sum(1 for _ in site_audit(local.kit(site)).entries())


def test_stop_names_the_site_and_the_fit_resumes_to_the_same_bits(
    local: LocalFederation, wire: Wire, story: Story, tables: dict[str, Path], alone: Path,
    tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    out, data = tmp_path / "model", tables["c"].read_text()

    def change() -> None:
        tables["c"].write_text(data.replace("0.1", "0.2"))

    def slow() -> None:
        family, before = local.family("a"), entries(local, "c")
        for process in family:
            process.suspend()
        once(lambda: entries(local, "c") > before, lambda: [p.resume() for p in family])

    faults: list[tuple[int, Act, str, Act]] = [
        (3, wire.cut, "site 'b' ", wire.restore),
        (6, wire.silence, "site 'b' did not answer within 8 s", wire.restore),
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
        ended = run("federation", "resume", out)
    # The slow site was only slow.
    assert (ended, story.at, story.said) == (0, {}, [])
    assert same_files(out, alone)


def test_retry_outlives_the_loss_of_an_engine_and_a_long_cut(
    local: LocalFederation, wire: Wire, story: Story, alone: Path, tmp_path: Path
) -> None:
    def drops() -> int:
        log = (local.folder / "server" / "engine.log").read_text()
        return log.count("Remove the dead Client. Name: b")

    def kill_engine() -> None:
        # It comes back by itself: the site's command starts it again.
        for process in local.family("b")[1:]:
            process.kill()

    before = drops()

    def cut() -> None:
        wire.cut()
        once(lambda: drops() > before, wire.restore)

    out = tmp_path / "model"
    story.at = {4: kill_engine, 8: cut}
    assert fit(local, out, "--on-failure", "retry") == 0
    assert drops() > before
    assert len(story.said) >= 2
    assert story.said[0].startswith("site 'b' ")
    assert story.said[0].endswith("(trying again, 1 of 3)")
    assert same_files(out, alone)


def test_wait_outlives_the_loss_of_a_site_and_of_the_server(
    local: LocalFederation, wire: Wire, story: Story, alone: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def lose_server() -> None:
        local.kill("server")
        story.then = [threading.Thread(target=local.start_server).start]

    out = tmp_path / "model"
    story.at = {4: lambda: local.kill("a"), 8: lose_server}
    story.then = [lambda: local.start_site("a")]
    assert fit(local, out, "--on-failure", "wait") == 0
    assert len(story.said) >= 2
    assert story.said[0].startswith("site 'a' ")
    assert {line.endswith("(trying again, waiting)") for line in story.said} == {True}
    assert f"{len(story.said) + 1} attempts" in capsys.readouterr().out
    assert same_files(out, alone)
