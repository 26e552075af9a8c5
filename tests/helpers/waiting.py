"""Waiting for what other processes do."""

import time
from collections.abc import Callable

# Long enough for any machine: it ends a test that would wait for ever, and decides nothing else.
PATIENCE = 600.0


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Return when a condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.05)
