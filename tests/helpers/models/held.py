"""The command, whose fit stands still after so many answers until a signal ends it.

Run as a program: so no fit is over before it is stopped, however fast or slow the machine is.
"""

import signal
import sys
import time
from typing import TypeVar

from fedlasso.cli import main
from fedlasso.federation import Journal, Reply, Request

ANSWERS = 25
R = TypeVar("R", bound=Reply)
replies = Journal.replies
answered = 0


def held(self: Journal, request: Request[R]) -> tuple[R, ...]:
    """Ask as ever, and stand still after the last answer that is let through."""
    global answered
    answers = replies(self, request)
    answered += 1
    while answered >= ANSWERS:
        time.sleep(0.05)
    return answers


if __name__ == "__main__":
    # Whoever is started in the background may have been told to ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    Journal.replies = held  # type: ignore[method-assign]
    sys.exit(main(sys.argv[1:]))
