"""What happens to a real federation during a fit, told beforehand."""

from collections.abc import Callable
from pathlib import Path

from nets import run

from fedlasso.deploy.nvflare.local import START, LocalFederation
from fedlasso.deploy.run import Event

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

    def listen(self, event: Event) -> None:
        self.at.pop(event.number, lambda: None)()

    def look(self, present: dict[str, float]) -> None:
        for site in self.gone.keys() - present.keys():
            self.gone.pop(site)()

    def say(self, line: str) -> None:
        self.said.append(line)
        if self.then:
            self.then.pop(0)()


def fit(local: LocalFederation, out: Path, *options: object) -> int:
    given = ("--target", "y", "--drop", "note", "--out", out, "--start", START)
    return run("federation", "fit", local.folder, *given, *SETTINGS, *options)
