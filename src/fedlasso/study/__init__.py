"""Monte Carlo studies: scenarios, replicates, a results store and a runner."""

from importlib import import_module
from typing import TYPE_CHECKING

from fedlasso.errors import FedLassoError
from fedlasso.study.means import contrast as contrast
from fedlasso.study.means import summarise as summarise
from fedlasso.study.scenario import SCENARIOS as SCENARIOS
from fedlasso.study.scenario import Scenario as Scenario
from fedlasso.study.scenario import read_scenarios as read_scenarios

if TYPE_CHECKING:
    from fedlasso.study.every_study import STUDIES as STUDIES
    from fedlasso.study.every_study import rerun as rerun
    from fedlasso.study.paper import PaperStudy as PaperStudy
    from fedlasso.study.replicate_data import ReplicateData as ReplicateData
    from fedlasso.study.runner import Progress as Progress
    from fedlasso.study.runner import Study as Study
    from fedlasso.study.runner import run_study as run_study
    from fedlasso.study.store import Store as Store

# Imported on first use: reading records does not load the code that computes them, and scenarios
# need neither pandas nor pyarrow.
_HOMES = {
    "PaperStudy": "paper", "Progress": "runner", "ReplicateData": "replicate_data",
    "STUDIES": "every_study", "Store": "store", "Study": "runner", "rerun": "every_study",
    "run_study": "runner",
}  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'fedlasso.study' has no attribute {name!r}")
    try:
        home = import_module(f"fedlasso.study.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        if name != "Store":
            raise
        remedy = "install it with: pip install 'fedlasso[study]'"
        raise FedLassoError(f"a results folder requires {error.name}; {remedy}") from error
    return getattr(home, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
