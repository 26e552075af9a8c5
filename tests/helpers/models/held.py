"""The command, whose fit stands still after so many answers until a signal ends it.

Run as a program: so no fit is over before it is stopped, however fast or slow the machine is.
"""

import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

from fedlasso.cli import main
from fedlasso.federation import Journal, Reply, Request

# Answers that a held fit has before it is stopped.
ANSWERS = 6
replies_together = Journal.replies_together
answered = 0


def held(self: Journal, requests: Sequence[Request[Any]]) -> tuple[tuple[Reply, ...], ...]:
    """Ask as ever, and stand still after the last answer that is let through."""
    global answered
    answers = replies_together(self, requests)
    answered += 1
    while answered >= ANSWERS:
        time.sleep(0.05)
    return answers


if __name__ == "__main__":
    # Whoever is started in the background may have been told to ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    Journal.replies_together = held  # type: ignore[method-assign]
    sys.exit(main(sys.argv[1:]))
