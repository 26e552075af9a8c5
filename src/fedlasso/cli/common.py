"""What the command groups share."""

from __future__ import annotations

import signal
from importlib.util import find_spec
from typing import Any

from fedlasso.errors import FedLassoError


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


def need_engine() -> None:
    """Refuse clearly if the extra is not installed."""
    if find_spec("nvflare") is None:
        raise FedLassoError(
            'the network engine is missing; install it with pip install "fedlasso[nvflare]"'
        )
