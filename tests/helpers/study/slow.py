"""A study whose first use of a scenario is slow; workers import it by this file's name."""

from dataclasses import dataclass
from typing import ClassVar

from fedlasso.study import Scenario
from fedlasso.study.outcomes import Record

USED: set[str] = set()


@dataclass(frozen=True)
class Slow:
    """Ten seconds at the first use of a scenario in a process, a tenth of a second after that."""

    name: ClassVar[str] = "slow"
    seed: int = 1

    def replicate(self, scenario: Scenario, number: int) -> list[Record]:
        seconds = 0.1 if scenario.name in USED else 10.0
        USED.add(scenario.name)
        return [
            {
                "record": "outcome",
                "scenario": scenario.name,
                "replicate": number,
                "method": "CD",
                "seconds_penalty": seconds,
                "p": scenario.p,
            }
        ]
