"""What the tests with real processes share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from helpers.nets import SHORT, fit_alike, share_key, write_tables

# The engine is imported by those who use it: without it these tests are skipped.
if TYPE_CHECKING:
    from helpers.deploy.nvflare.stories import Breakable, SharedJob, Story
    from helpers.deploy.nvflare.wires import Wire

    from fedlasso.deploy.nvflare.line import Console


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_tables(tmp_path_factory.mktemp("data"))


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Shortens the patience of the network that was opened last; the next one has its own."""
    from fedlasso.deploy.network import Network

    opened: list[Network] = []
    begin = Network.__init__

    def note(self: Network, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        opened.append(self)

    def shorten() -> None:
        opened[-1].timeout = SHORT

    monkeypatch.setattr(Network, "__init__", note)
    return shorten


@pytest.fixture(scope="module")
def alone(tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    from helpers.deploy.nvflare.stories import SETTINGS

    return fit_alike(tables, tmp_path_factory.mktemp("alone") / "model", *SETTINGS)


@pytest.fixture(scope="module")
def wired(
    tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Breakable, Wire]]:
    """A federation whose site b hangs on a wire."""
    from helpers.deploy.nvflare.stories import Breakable
    from helpers.deploy.nvflare.wires import Wire, reroute

    local = Breakable(tmp_path_factory.mktemp("net") / "project", tables)
    share_key(local)
    wire = Wire(local.project.port)
    reroute(local.kit("b"), wire.port)
    with local, closing(wire):
        yield local, wire


@pytest.fixture
def wire(wired: tuple[Breakable, Wire]) -> Wire:
    wired[1].restore()
    return wired[1]


@pytest.fixture
def local(wired: tuple[Breakable, Wire], wire: Wire) -> Breakable:
    wired[0].revive()
    return wired[0]


@pytest.fixture(scope="module")
def begun_job() -> Iterator[SharedJob]:
    from helpers.deploy.nvflare.stories import SharedJob

    with SharedJob() as job:
        yield job


@pytest.fixture
def job(begun_job: SharedJob, monkeypatch: pytest.MonkeyPatch) -> SharedJob:
    """Commands in this test find a job under way, and leave it so."""
    from fedlasso.deploy.nvflare import line

    monkeypatch.setattr(line, "connect", begun_job.connect)
    return begun_job


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> Story:
    from helpers.deploy.nvflare.stories import Story

    from fedlasso.cli import federation
    from fedlasso.deploy.nvflare.line import Console

    reported = Story()
    connected = Console.connected

    def look(self: Console) -> dict[str, float]:
        present = connected(self)
        reported.look(present)
        return present

    monkeypatch.setattr(Console, "connected", look)
    monkeypatch.setattr(federation, "show_progress", reported.listen)
    monkeypatch.setattr(federation, "notify", reported.notify)
    return reported
