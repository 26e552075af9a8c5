"""Monte Carlo studies: scenarios, replicates, a store of records, and a runner."""

from fedlasso.study.earlier import EarlierStudy
from fedlasso.study.paper import PaperStudy
from fedlasso.study.runner import Progress, Study, run_study
from fedlasso.study.scenario import SCENARIOS, Draw, Scenario, read_scenarios
from fedlasso.study.store import Store
from fedlasso.study.summary import contrast, summarise

STUDIES: dict[str, type[Study]] = {"paper": PaperStudy, "earlier": EarlierStudy}

__all__ = [
    "SCENARIOS",
    "STUDIES",
    "Draw",
    "EarlierStudy",
    "PaperStudy",
    "Progress",
    "Scenario",
    "Store",
    "Study",
    "contrast",
    "read_scenarios",
    "run_study",
    "summarise",
]
