"""Functions that the command groups share."""

from __future__ import annotations

import argparse
import inspect
import signal
import socket
import sys
import threading
import time
from collections.abc import Collection
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

from fedlasso.errors import FedLassoError

# A site that only waits does not need these rooms.
if TYPE_CHECKING:
    import pandas as pd

    from fedlasso.federation import Exchange
    from fedlasso.models import ModelDocument

INTERRUPTED = 130
# Seconds between updates of a line on a terminal, and between lines elsewhere.
TICK = 0.1
QUIET = 1.5
RESULTS = "results folder of a study"
_STUDY = ("numba", "pandas", "pyarrow", "rich")
# The packages that commands need from each extra.
EXTRAS = {
    "fit": ("numba",),
    "study": _STUDY,
    "report": (*_STUDY, "jinja2", "latex2mathml", "matplotlib"),
    "nvflare": (*_STUDY, "nvflare", "psutil"),
    "courier": ("cryptography",),
    "courier,fit": ("cryptography", "numba"),
}


def add_group(commands: Any, name: str, does: str) -> Any:
    """Add a group of commands, and return the object that these are added to."""
    group = commands.add_parser(name, help=does, description=f"{does[:1].upper()}{does[1:]}.")
    return group.add_subparsers(dest="action", required=True, metavar="ACTION")


def add_action(actions: Any, run: Any, example: str = "", extra: str = "") -> Any:
    """Add the command of a function ``NAME_command``, whose docstring is its help."""
    name = run.__name__.removesuffix("_command").replace("_", "-")
    text = inspect.getdoc(run) or ""
    first = text.partition("\n")[0].rstrip(".")
    parser = actions.add_parser(name, help=first[:1].lower() + first[1:], description=text)
    parser.epilog = f"Example: {parser.prog} {example}"
    parser.set_defaults(run=run, extra=extra)
    return parser


def names(text: str) -> tuple[str, ...]:
    """Split comma-separated names."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def given_options(options: argparse.Namespace, known: Collection[str]) -> dict[str, Any]:
    """Return the given options among some names."""
    return {name: value for name, value in vars(options).items() if name in known}


def to_flags(text: str) -> str:
    """Replace options of `Settings` in backticks, as Python has them, by those of the terminal."""
    if "`" not in text:
        return text
    from fedlasso.fitting.settings import Settings

    for name in Settings.__dataclass_fields__:
        flag = "interval" if name == "intervals" else name.replace("_", "-")
        text = text.replace(f"`{name}`", f"--{flag}")
    return text


def print_frame(frame: pd.DataFrame) -> None:
    """Print a table as text, with a dash for missing values."""
    print(frame.to_string(index=False, float_format=lambda v: f"{v:.4g}", na_rep="-"))


def stop_on_term() -> None:
    """Treat SIGTERM, of a closing terminal or a service manager, as Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def require(extra: str) -> None:
    """Refuse a command whose extra is not installed, or that this system does not support."""
    if extra == "nvflare" and (not hasattr(socket, "AF_UNIX") or find_spec("fcntl") is None):
        raise FedLassoError("federations need Unix sockets and file locks, which this system lacks")
    missing = [name for name in EXTRAS.get(extra, ()) if find_spec(name) is None]
    if missing:
        install = f"pip install 'fedlasso[{extra}]'"
        raise FedLassoError(f"this command needs {', '.join(missing)}; install with: {install}")


def notify(text: str) -> None:
    """Print a line to standard error."""
    print(f"fedlasso: {text}", file=sys.stderr, flush=True)


def print_notices(document: ModelDocument, printed: Collection[str] = ()) -> None:
    """Print a model's constant columns, and its warnings unless printed before."""
    for name in document.constant:
        notify(f"notice: column {name!r} is constant; its coefficient is 0")
    for warning in document.warnings or ():
        if f"warning: {warning}" not in printed:
            notify(f"warning: {warning}")


class Waiting:
    """Prints what is being done whenever nothing has been printed for `QUIET` seconds.

    A thread of its own prints it, until `with` is left.
    """

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._start = self._shown = time.monotonic()
        self._ended = threading.Event()
        self._printer = threading.Thread(target=self._print, daemon=True)

    def __enter__(self) -> Self:
        self._printer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._printer.join()

    def _print(self) -> None:
        while not self._ended.wait(TICK):
            if time.monotonic() - self._shown >= QUIET:
                self._shown = time.monotonic()
                notify(f"{self._doing} ({self._shown - self._start:.0f} s)")


class Display(Waiting):
    """Prints a fit's progress: one line on a terminal, elsewhere one every `QUIET` seconds."""

    def __init__(self) -> None:
        from fedlasso.federation import Costs, Exchange
        from fedlasso.numerics.machine import Compilations

        super().__init__("starting")
        self._exchange = Exchange(0, (), Costs(), 0.0)
        self._compilations = Compilations()

    def __enter__(self) -> Self:
        self._compilations.__enter__()
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._compilations.__exit__()

    def listen(self, exchange: Exchange) -> None:
        """Count a round trip."""
        self._exchange = exchange
        self._doing = exchange.requests[-1].kind

    def show(self, done: str) -> None:
        """Print a line that stays."""
        self._shown = time.monotonic()
        trips = self._exchange.number
        notify(self._line(done, f"{trips} round trip{'s' * (trips != 1)}"))

    def _print(self) -> None:
        wait, end = (TICK, "\r") if sys.stderr.isatty() else (QUIET, "\n")
        while not self._ended.wait(TICK):
            if time.monotonic() - self._shown >= wait:
                self._shown = time.monotonic()
                doing = self._doing
                if self._compilations.busy:
                    doing = f"compiling kernel {len(self._compilations.names)}, on first use only"
                line = self._line(doing, self._exchange.progress)
                print(f"fedlasso: {line}   ", end=end, file=sys.stderr, flush=True)

    def _line(self, doing: str, so_far: str) -> str:
        from fedlasso.models.numbers import bytes_of

        elapsed = time.monotonic() - self._start
        most = bytes_of(self._exchange.costs.most_sent)
        return f"{doing} ({so_far}, at most {most} sent by a site in all, {elapsed:.0f} s)"
