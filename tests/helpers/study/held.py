"""The command, whose replicates from the third on wait until it has been told to stop.

Run as a program: so no run is over before it is stopped, however fast or slow the machine is.
The variable HELD names a folder, where every replicate that begins leaves a file.
"""

import os
import signal
import sys
import time
from pathlib import Path

from fedlasso.cli import main
from fedlasso.study import PaperStudy, Scenario
from fedlasso.study.outcomes import Record

FREE = 3
FOLDER = Path(os.environ["HELD"])
STOPPED = FOLDER / "stopped"
replicate = PaperStudy.replicate


def held(self: PaperStudy, scenario: Scenario, number: int) -> list[Record]:
    """A replicate that says that it has begun, and may have to wait."""
    (FOLDER / f"{scenario.name}-{number}").touch()
    while number >= FREE and not STOPPED.exists():
        time.sleep(0.05)
    return replicate(self, scenario, number)


def stop(number: int, frame: object) -> None:
    """What Python does about Ctrl-C, told to those who wait."""
    STOPPED.touch()
    raise KeyboardInterrupt


# Worker processes import this file too, and so hold theirs.
PaperStudy.replicate = held  # type: ignore[method-assign]
if __name__ == "__main__":
    signal.default_int_handler = stop  # type: ignore[assignment]
    signal.signal(signal.SIGINT, stop)
    sys.exit(main(sys.argv[1:]))
