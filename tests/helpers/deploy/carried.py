"""Real data at three sites, every third row at each, for fits that are compared over carriers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from lifelines.datasets import load_gbsg2
from sklearn.datasets import load_breast_cancer, load_diabetes

from fedlasso.fitting import Settings

# The secret of every site, so that every run has the same folds.
KEY = b"key"


@dataclass(frozen=True)
class Carried:
    """A data set, its response, and the round trips by files that a default fit may take.

    For linear models the number is fixed. For the others it is that of docs/rounds.md, and one for
    keys and what the columns hold, and another one for the levels of text.
    """

    load: Callable[[], pd.DataFrame]
    family: str
    trips: int
    outcome: Mapping[str, str]

    @property
    def settings(self) -> Settings:
        return Settings(family=self.family)

    def write(self, folder: Path) -> dict[str, Path]:
        """Write a file per site."""
        table = self.load()
        paths = {}
        for k, site in enumerate(("a", "b", "c")):
            paths[site] = folder / f"{site}.csv"
            table.iloc[k::3].to_csv(paths[site], index=False)
        return paths


TARGET = {"target": "target"}
SURVIVAL = {"target": "", "time": "time", "event": "cens"}
CARRIED = {
    "diabetes": Carried(lambda: load_diabetes(as_frame=True).frame, "linear", 4, TARGET),
    "breast_cancer": Carried(
        lambda: load_breast_cancer(as_frame=True).frame, "binomial", 15 + 1, TARGET
    ),
    "GBSG2": Carried(load_gbsg2, "cox", 12 + 2, SURVIVAL),
}
