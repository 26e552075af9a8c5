"""Monte Carlo studies: scenarios, replicates, a store of records, and a runner."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from fedlasso.errors import FedLassoError
from fedlasso.study import paper
from fedlasso.study.earlier import EarlierStudy
from fedlasso.study.families import FamilyStudy
from fedlasso.study.literature import LiteratureStudy
from fedlasso.study.paper import PaperStudy
from fedlasso.study.real import RealStudy
from fedlasso.study.runner import Progress, Study, run_study
from fedlasso.study.scenario import SCENARIOS, Draw, Scenario, read_scenarios
from fedlasso.study.summary import contrast, summarise
from fedlasso.study.trust import TrustStudy
from fedlasso.study.whole import WholeStudy

if TYPE_CHECKING:
    import pandas as pd

    from fedlasso.study.store import Store

STUDIES: dict[str, type[Study]] = {
    "paper": PaperStudy,
    "whole": WholeStudy,
    "earlier": EarlierStudy,
    "literature": LiteratureStudy,
    "tuned": paper.TunedStudy,
    "epochs": paper.EpochStudy,
    "joint-tuning": paper.JointTuningStudy,
    "site-effects": paper.SiteEffectsStudy,
    "real": RealStudy,
    "families": FamilyStudy,
    "trust": TrustStudy,
}

__all__ = [
    "SCENARIOS",
    "STUDIES",
    "Draw",
    "PaperStudy",
    "Progress",
    "Scenario",
    "Store",
    "Study",
    "contrast",
    "read_scenarios",
    "rerun",
    "run_study",
    "summarise",
]


def rerun(folder: str | Path, scenario: str, number: int) -> pd.DataFrame:
    """Compute one replicate of a results folder again: the same numbers, seconds apart."""
    import pandas as pd

    from fedlasso.study.store import Store

    manifest = Store(Path(folder)).manifest()
    if manifest.name not in STUDIES or scenario not in manifest.scenarios:
        known = f"study {manifest.name!r} with scenarios {', '.join(manifest.scenarios)}"
        raise FedLassoError(f"{folder} holds the {known}; {scenario!r} cannot be computed again")
    settings = {key: value for key, value in manifest.study.items() if key != "name"}
    study = msgspec.convert(settings, STUDIES[manifest.name])
    return pd.DataFrame(study.replicate(manifest.scenarios[scenario], number))


def __getattr__(name: str) -> object:
    # The store brings pandas and pyarrow along, which scenarios do without.
    if name == "Store":
        try:
            from fedlasso.study.store import Store
        except ModuleNotFoundError as error:
            raise FedLassoError(
                f"keeping the results of a study takes {error.name}; "
                "install it with: pip install 'fedlasso[study]'"
            ) from error
        return Store
    raise AttributeError(f"module 'fedlasso.study' has no attribute {name!r}")
