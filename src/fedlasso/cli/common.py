"""What the command groups share."""

from __future__ import annotations

import signal
import socket
from importlib.util import find_spec
from typing import Any

from fedlasso.errors import FedLassoError

_STUDY = ("pandas", "pyarrow", "rich")
# What the commands import of each extra.
EXTRAS = {
    "study": _STUDY,
    "report": (*_STUDY, "jinja2", "latex2mathml", "matplotlib", "vl_convert"),
    "nvflare": (*_STUDY, "nvflare", "psutil"),
}


def add_action(actions: Any, name: str, run: Any, text: str, example: str) -> Any:
    """A command with its help and an example."""
    parser = actions.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + ".", epilog=f"Example: {example}"
    )
    parser.set_defaults(run=run)
    return parser


def stop_on_term() -> None:
    """A service manager's stop is Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def need(extra: str) -> None:
    """Refuse in one sentence if a package of an extra is not installed."""
    missing = [name for name in EXTRAS[extra] if find_spec(name) is None]
    if missing:
        raise FedLassoError(
            f"this command takes {', '.join(missing)}; "
            f"install with: pip install 'fedlasso[{extra}]'"
        )


def need_engine() -> None:
    """Refuse in one sentence where the network engine is missing or cannot run."""
    if not hasattr(socket, "AF_UNIX") or find_spec("fcntl") is None:
        raise FedLassoError(
            "real sites take Unix sockets and file locks, which this system does not have"
        )
    need("nvflare")
