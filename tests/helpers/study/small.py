"""A study small enough for tests."""

import os
import signal
from pathlib import Path

from fedlasso.study import PaperStudy, Scenario
from fedlasso.study.outcomes import Record

SMALL = Scenario("small", sizes=(20, 16, 12), p=30, nonzeros=4, validation=12, test=40)
OTHER = Scenario("other", sizes=(15, 15), p=25, nonzeros=3, validation=10, test=30)
STUDY = PaperStudy(seed=7, epochs=(1, 20), budgets=(30,))
TOML = """
[small]
sizes = [20, 16, 12]
p = 30
nonzeros = 4
validation = 12
test = 40
[other]
sizes = [15, 15]
p = 25
nonzeros = 3
validation = 10
test = 30
"""


class Broken(PaperStudy):
    """Fails in one replicate."""

    def replicate(self, scenario: Scenario, number: int) -> list[Record]:
        if (scenario.name, number) == ("small", 1):
            raise ZeroDivisionError("on purpose")
        return super().replicate(scenario, number)


class Deadly(PaperStudy):
    """Kills its process in one replicate, once; the variable DEADLY names the file that says so."""

    def replicate(self, scenario: Scenario, number: int) -> list[Record]:
        said = Path(os.environ["DEADLY"])
        if (scenario.name, number) == ("small", 3) and not said.exists():
            said.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return super().replicate(scenario, number)
