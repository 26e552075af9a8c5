"""Seconds of a study are those of code that has been used before."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from study.small import OTHER, SMALL

from fedlasso.study import Scenario, Store, run_study
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


def test_no_replicate_pays_for_the_first_use(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run_study(Slow(), [SMALL, OTHER], 2, store, workers=1)
    rows = store.table()
    assert rows["seconds_penalty"].tolist() == [0.1] * 4
    assert rows["p"].tolist() == [SMALL.p] * 2 + [OTHER.p] * 2
