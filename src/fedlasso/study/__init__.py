"""Monte Carlo studies: scenarios, replicates, a store of records, and a runner."""

from fedlasso.study.earlier import EarlierStudy
from fedlasso.study.extensions import EpochStudy, JointTuningStudy, SiteEffectsStudy
from fedlasso.study.literature import LiteratureStudy
from fedlasso.study.paper import PaperStudy
from fedlasso.study.runner import Progress, Study, run_study
from fedlasso.study.scenario import SCENARIOS, Draw, Scenario, read_scenarios
from fedlasso.study.store import Store
from fedlasso.study.summary import contrast, summarise
from fedlasso.study.tuned import TunedStudy

STUDIES: dict[str, type[Study]] = {
    "paper": PaperStudy,
    "earlier": EarlierStudy,
    "literature": LiteratureStudy,
    "tuned": TunedStudy,
    "epochs": EpochStudy,
    "joint-tuning": JointTuningStudy,
    "site-effects": SiteEffectsStudy,
}

__all__ = [
    "SCENARIOS",
    "STUDIES",
    "Draw",
    "EarlierStudy",
    "LiteratureStudy",
    "PaperStudy",
    "Progress",
    "Scenario",
    "Store",
    "Study",
    "TunedStudy",
    "contrast",
    "read_scenarios",
    "run_study",
    "summarise",
]
