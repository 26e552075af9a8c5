"""What happens to a real federation during a fit, told beforehand."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from helpers.nets import run

from fedlasso.deploy.network import Network
from fedlasso.deploy.nvflare.engine import process_tree
from fedlasso.deploy.nvflare.line import connect
from fedlasso.deploy.nvflare.local import START, LocalFederation
from fedlasso.federation import Exchange

SETTINGS = ("--procedure", "ADMM", "--penalty", "0.1", "--uploads", "36")
Act = Callable[[], object]


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

    def listen(self, exchange: Exchange) -> None:
        self.at.pop(exchange.number, lambda: None)()

    def look(self, present: dict[str, float]) -> None:
        for site in self.gone.keys() - present.keys():
            self.gone.pop(site)()

    def notify(self, line: str) -> None:
        # How good the model is has no part in the story.
        if line.startswith("warning: "):
            return
        self.said.append(line)
        if self.then:
            self.then.pop(0)()


class Breakable(LocalFederation):
    """A federation on this machine whose participants are stopped and started again."""

    def family(self, name: str) -> list[Any]:
        """The processes of the server or of a site: command, engine, jobs."""
        return process_tree(self.processes[name])

    def revive(self) -> None:
        """Start whoever is not running, and wait for all."""
        if "server" not in self.processes:
            self.start_server()
        for name in self.project.sites:
            if name not in self.processes:
                self.start_site(name)
        self.wait()


class SharedJob(ExitStack):
    """One job of a federation for several commands: only the first waits for it to start."""

    def __init__(self) -> None:
        super().__init__()
        self._network: Network | None = None

    @contextmanager
    def connect(
        self, folder: Path, sites: Sequence[str] = (), *, timeout: float = 300.0, **_: float
    ) -> Iterator[Network]:
        """Stands in for `line.connect`."""
        if self._network is None:
            self._network = self.enter_context(connect(folder, start=START))
        yield Network(self._network.line, sites or self._network.sites, timeout)

    def close(self) -> None:
        """End the job; whoever connects next starts another."""
        self._network = None
        super().close()


def fit(local: LocalFederation, out: Path, *options: object) -> int:
    given = ("--target", "y", "--drop", "note", "--out", out, "--start", START)
    return run("federation", "fit", local.folder, *given, *SETTINGS, *options)
