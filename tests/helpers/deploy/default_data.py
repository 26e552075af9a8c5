"""Data as users have them, and default fits of them at the doors of three sites."""

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from helpers.deploy.doors import DoorLine
from helpers.natural_units import draw
from helpers.nets import SITES, in_process, opening
from lifelines.datasets import load_gbsg2
from sklearn.datasets import load_breast_cancer, load_diabetes

from fedlasso.deploy.network import Network
from fedlasso.federation import Ledger
from fedlasso.fitting import Settings
from fedlasso.governance import Door
from fedlasso.models import ModelDocument, NetworkSource, make_model


class Study(NamedTuple):
    """A table, the names of its response, and the family."""

    frame: pd.DataFrame
    family: str = "linear"
    target: str = "y"
    event: str = ""

    def write(self, folder: Path) -> dict[str, Path]:
        """Rows in turn at three sites."""
        folder.mkdir(exist_ok=True)
        tables = {site: folder / f"{site}.csv" for site in SITES}
        for k, path in enumerate(tables.values()):
            self.frame.iloc[k :: len(SITES)].to_csv(path, index=False)
        return tables


def of_sklearn(load: Callable[..., Any], family: str) -> Study:
    data = load()
    names = [str(name).replace(" ", "_") for name in data.feature_names]
    return Study(pd.DataFrame(data.data, columns=names).assign(y=data.target), family)


def gbsg2() -> Study:
    """German breast cancer study: 686 patients, time to recurrence."""
    frame = load_gbsg2()
    numeric = frame.drop(columns=["horTh", "menostat", "tgrade"]).astype(float)
    numeric["hormones"] = (frame["horTh"] == "yes").astype(int)
    numeric["post"] = (frame["menostat"] == "Post").astype(int)
    numeric["grade2"] = (frame["tgrade"] == "II").astype(int)
    numeric["grade3"] = (frame["tgrade"] == "III").astype(int)
    return Study(numeric, "cox", "time", "cens")


def visits(rows: int = 1200) -> Study:
    """Visits to a doctor a year, drawn like those of the health insurance experiment RandHIE.

    Columns are in natural units and of very different sizes; a third of the counts are zero, and
    their variance is several times their mean.
    """
    rng = np.random.default_rng(0)
    age = np.round(rng.uniform(0, 64, rows), 1)
    income = np.round(rng.lognormal(9.0, 0.7, rows))
    diseases = np.minimum(rng.gamma(2.8, 4.0, rows), 58.0).round(1)
    health = np.clip(rng.normal(75, 14, rows), 0, 100).round(1)
    columns = {
        "coinsurance": rng.choice([0.0, 25.0, 50.0, 95.0], rows),
        "deductible": (rng.random(rows) < 0.26).astype(int),
        "income": income,
        "family": rng.integers(1, 9, rows),
        "limited": (rng.random(rows) < 0.12).astype(int),
        "diseases": diseases,
        "fair": (rng.random(rows) < 0.08).astype(int),
        "mental": health,
        "age": age,
        "female": (rng.random(rows) < 0.52).astype(int),
        "child": (age < 18).astype(int),
        "education": rng.integers(5, 21, rows),
    }
    frame = pd.DataFrame(columns)
    eta = 0.9 - 0.005 * frame["coinsurance"] + 0.03 * diseases + 0.3 * frame["female"]
    eta += 0.3 * frame["limited"] - 0.003 * (health - 75) + 1e-5 * (income - 10_000)
    mean = np.exp(np.asarray(eta)) * rng.gamma(0.8, 1 / 0.8, rows)
    return Study(frame.assign(y=rng.poisson(mean)), "poisson")


def natural_counts() -> Study:
    X, y = draw("poisson", 0, 600, 12)
    return Study(pd.DataFrame(X, columns=[f"x{k}" for k in range(12)]).assign(y=y), "poisson")


def wide_classes() -> Study:
    """Two classes, with more columns than rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((360, 600))
    y = (X[:, :6].sum(axis=1) + rng.logistic(size=360) > 0).astype(int)
    return Study(pd.DataFrame(X, columns=[f"x{k}" for k in range(600)]).assign(y=y), "binomial")


STUDIES: dict[str, Callable[[], Study]] = {
    "diabetes, linear": lambda: of_sklearn(lambda: load_diabetes(scaled=False), "linear"),
    "GBSG2, survival": gbsg2,
    "counts in natural units": natural_counts,
    "breast cancer, two classes": lambda: of_sklearn(load_breast_cancer, "binomial"),
    "two classes, more columns than rows": wide_classes,
}


def fit_by_default(
    study: Study, doors: Mapping[str, Door], *, compare: bool = False, **options: Any
) -> ModelDocument:
    """The model of a network of guarded doors."""
    network = Network(DoorLine(doors), list(doors), 10.0)
    settings = Settings(family=study.family, **options)
    survival = {"time": study.target, "event": study.event}
    roles: dict[str, Any] = survival if study.event else {"target": study.target}
    asked = NetworkSource("project", secrets.token_hex(16), **roles)
    source = network.open(asked, settings)
    assert source.schema is not None
    return make_model(Ledger(network), settings, source.schema, compare=compare, tolerant=True)


def fit_alone(study: Study, tables: dict[str, Path], document: ModelDocument) -> ModelDocument:
    """The model of the same sites in this process, without a policy."""
    settings = Settings(family=study.family)
    join = opening(document.schema, family=study.family, event=study.event)
    return make_model(in_process(tables, join), settings, document.schema)
