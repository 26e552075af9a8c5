"""What the command groups share."""

from __future__ import annotations

import argparse
import inspect
import signal
import socket
import sys
import time
from collections.abc import Collection
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fedlasso.errors import FedLassoError

# A site that only waits does not need these rooms.
if TYPE_CHECKING:
    import pandas as pd

    from fedlasso.federation import Exchange
    from fedlasso.models import ModelDocument

INTERRUPTED = 130
RESULTS = "the results folder of a study"
_STUDY = ("pandas", "pyarrow", "rich")
# What the commands import of each extra.
EXTRAS = {
    "study": _STUDY,
    "report": (*_STUDY, "jinja2", "latex2mathml", "matplotlib"),
    "nvflare": (*_STUDY, "nvflare", "psutil"),
}


def add_group(commands: Any, name: str, does: str) -> Any:
    """A command that is a group of actions; return the list that they are added to."""
    group = commands.add_parser(name, help=does, description=f"{does[:1].upper()}{does[1:]}.")
    return group.add_subparsers(dest="action", required=True, metavar="ACTION")


def add_action(actions: Any, run: Any, example: str = "", extra: str = "") -> Any:
    """A command called as its function ``NAME_command``, whose docstring is its help."""
    name = run.__name__.removesuffix("_command").replace("_", "-")
    text = inspect.getdoc(run) or ""
    first = text.partition("\n")[0].rstrip(".")
    parser = actions.add_parser(name, help=first[:1].lower() + first[1:], description=text)
    parser.epilog = f"Example: {parser.prog} {example}"
    parser.set_defaults(run=run, extra=extra)
    return parser


def names(text: str) -> tuple[str, ...]:
    """Names, comma-separated."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def given_options(options: argparse.Namespace, known: Collection[str]) -> dict[str, Any]:
    """Return the options that were given, among those of some names."""
    return {name: value for name, value in vars(options).items() if name in known}


def print_frame(frame: pd.DataFrame) -> None:
    """A table in plain text; what is missing is a dash."""
    print(frame.to_string(index=False, float_format=lambda v: f"{v:.4g}", na_rep="-"))


def stop_on_term() -> None:
    """A service manager's stop is Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def need(extra: str) -> None:
    """Refuse in one sentence what an extra's packages, or this system, do not allow."""
    if extra == "nvflare" and (not hasattr(socket, "AF_UNIX") or find_spec("fcntl") is None):
        takes = "real sites take Unix sockets and file locks"
        raise FedLassoError(f"{takes}, which this system does not have")
    missing = [name for name in EXTRAS.get(extra, ()) if find_spec(name) is None]
    if missing:
        install = f"pip install 'fedlasso[{extra}]'"
        raise FedLassoError(f"this command takes {', '.join(missing)}; install with: {install}")


def notify(text: str) -> None:
    """Print one line for the user, beside the output."""
    print(f"fedlasso: {text}", file=sys.stderr, flush=True)


def say_constant(document: ModelDocument) -> None:
    """Say which columns never vary."""
    for name in document.constant:
        notify(f"notice: column {name!r} is constant; it is left out with coefficient 0")


class Display:
    """How many questions a fit has asked, and how much the busiest site sent.

    One line that is rewritten on a terminal, a line now and then elsewhere.
    """

    def __init__(self) -> None:
        from fedlasso.federation import Costs

        self._asked = 0
        self._costs = Costs()
        self._start = self._shown = time.monotonic()

    def listen(self, exchange: Exchange) -> None:
        """Take note of a question, and show it if the last one was shown a while ago."""
        self._asked = exchange.number
        self._costs = exchange.costs
        wait, end = (0.1, "\r") if sys.stderr.isatty() else (5.0, "\n")
        now = time.monotonic()
        if now - self._shown > wait:
            self._shown = now
            line = self._line(exchange.request.kind)
            print(f"fedlasso: {line}   ", end=end, file=sys.stderr, flush=True)

    def show(self, done: str) -> None:
        """Show a line that stays."""
        notify(self._line(done))

    def _line(self, doing: str) -> str:
        from fedlasso.models.numbers import bytes_of

        sent = [self._costs.total(None, site).upload for site in self._costs.sites]
        elapsed = time.monotonic() - self._start
        most = bytes_of(max(sent, default=0))
        return f"{doing} ({self._asked} questions, {most} sent by a site, {elapsed:.0f} s)"
