"""The registry of studies, and recomputing one replicate of any of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from fedlasso.errors import FedLassoError
from fedlasso.study import paper
from fedlasso.study.earlier import EarlierStudy
from fedlasso.study.families import FamilyStudy
from fedlasso.study.literature import LiteratureStudy
from fedlasso.study.real import RealStudy
from fedlasso.study.runner import Study
from fedlasso.study.trust import TrustStudy
from fedlasso.study.whole import WholeStudy

if TYPE_CHECKING:
    import pandas as pd

_STUDIES: tuple[type[Study], ...] = (
    paper.PaperStudy, WholeStudy, EarlierStudy, LiteratureStudy, paper.TunedStudy, paper.EpochStudy,
    paper.JointTuningStudy, paper.SiteEffectsStudy, RealStudy, FamilyStudy, TrustStudy,
)  # fmt: skip
STUDIES: dict[str, type[Study]] = {study.name: study for study in _STUDIES}


def rerun(folder: str | Path, scenario: str, number: int) -> pd.DataFrame:
    """Recompute one replicate of a results folder: the same numbers, but for timings."""
    import pandas as pd

    from fedlasso.study.store import Store

    manifest = Store(Path(folder)).manifest()
    if manifest.name not in STUDIES or scenario not in manifest.scenarios:
        known = f"study {manifest.name!r} with scenarios {', '.join(manifest.scenarios)}"
        raise FedLassoError(f"{folder} holds {known}; {scenario!r} cannot be recomputed")
    settings = {key: value for key, value in manifest.study.items() if key != "name"}
    study = msgspec.convert(settings, STUDIES[manifest.name])
    return pd.DataFrame(study.replicate(manifest.scenarios[scenario], number))
