"""Real data sets: those bundled with scikit-learn, and files ``NAME.csv`` in a folder.

``tools/export_data.R`` fills such a folder from installed R packages: numbers only, the response in
the column ``y``. The known sets were chosen by size, regardless of how any method does on them.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedlasso.errors import FedLassoError

if TYPE_CHECKING:
    from fedlasso.numerics import Array

RESPONSE = "y"
FEWEST = 25  # rows; with fewer, the smallest of the three sites would have less than two
EXPORT = "Rscript tools/export_data.R FOLDER"
# Sets that were used while defaults were developed.
TUNED = ("boston", "diabetes", "breast_cancer", "gasoline", "yarn", "meats")
# Source and response of each set.
ORIGINS: Mapping[str, str] = {
    "boston": "R package MASS: median house value",
    "diabetes": "scikit-learn: progression after one year",
    "breast_cancer": "scikit-learn: diagnosis, 0 or 1 as a number",
    "gasoline": "R package pls: octane number from NIR spectra",
    "yarn": "R package pls: density from NIR spectra",
    "meats": "R package caret (tecator): fat from absorbance spectra",
    "mayonnaise": "R package pls: type of oil, 1 to 6 as a number, from NIR spectra",
    "bloodbrain": "R package caret: log ratio of blood to brain concentration",
    "cox2": "R package caret: log10 of the IC50",
    "cars": "R package caret: price of used cars",
    "uscrime": "R package MASS: crime rate",
    "cpus": "R package MASS: performance",
    "birthwt": "R package MASS: birth weight",
    "cars93": "R package MASS: price of new cars",
    "ozone": "R package mlbench: daily maximum of ozone",
    "sonar": "R package mlbench: rock or mine, 0 or 1 as a number",
    "ames": "R package modeldata: sale price, from the columns that are numbers",
    "concrete": "R package modeldata: compressive strength",
    "speech": "R package modeldata: Parkinson's disease, 0 or 1 as a number",
    "prostate": "R package lasso2: log of prostate specific antigen",
    "bodyfat": "R package TH.data: body fat by DXA",
    "glaucoma": "R package TH.data: glaucoma, 0 or 1 as a number",
    "schools": "R package AER: reading score",
    "wine": "scikit-learn: alcohol, from the other measurements",
    "digits": "scikit-learn: the digit as a number, from its pixels",
}

BUNDLED = ("diabetes", "breast_cancer", "wine", "digits")  # with scikit-learn

Arrays = tuple["Array", "Array"]


def find_sets(folder: str) -> list[str]:
    """Return the names of the sets available: known ones in order, then the folder's others."""
    if folder and not Path(folder).is_dir():
        raise FedLassoError(f"there is no folder {folder}; create one with: {EXPORT}")
    own = sorted(file.stem for file in Path(folder).glob("*.csv")) if folder else []
    known = [name for name in ORIGINS if name in own or name in BUNDLED]
    return known + [name for name in own if name not in ORIGINS]


@lru_cache(maxsize=4)
def read_set(folder: str, name: str) -> Arrays:
    """Return predictors and response of one set, as read-only arrays shared by all callers."""
    file = Path(folder) / f"{name}.csv"
    if folder and file.exists():
        X, y = _read_csv(file)
    elif name in BUNDLED:
        from sklearn import datasets

        options = {"scaled": False} if name == "diabetes" else {}
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True, **options)
        if name == "wine":  # the response is alcohol, not the class
            X, y = X[:, 1:], X[:, 0]
    else:
        raise FedLassoError(f"no data set is called {name!r}; export it with: {EXPORT}")
    if len(y) < FEWEST:
        raise FedLassoError(f"data set {name!r} has {len(y)} rows; give {FEWEST} or more")
    X = np.asfortranarray(X, dtype=np.float64)
    y = np.ascontiguousarray(y, dtype=np.float64)
    X.setflags(write=False)
    y.setflags(write=False)
    return X, y


def _read_csv(file: Path) -> Arrays:
    import pandas as pd

    try:
        frame = pd.read_csv(file)
    except (OSError, ValueError) as error:
        raise FedLassoError(f"cannot read {file}: {error}") from error
    if RESPONSE not in frame:
        raise FedLassoError(f"{file} has no response column {RESPONSE!r}")
    for name, column in frame.items():
        if not pd.api.types.is_numeric_dtype(column):
            raise FedLassoError(f"{file}: column {name!r} is not numeric")
        if not np.isfinite(column.to_numpy(dtype=np.float64)).all():
            raise FedLassoError(f"{file}: column {name!r} has missing values; drop those rows")
    if len(frame.columns) < 3:
        raise FedLassoError(f"{file} has {len(frame.columns) - 1} predictors; give two or more")
    X = frame.drop(columns=RESPONSE).to_numpy(dtype=np.float64)
    return X, frame[RESPONSE].to_numpy(dtype=np.float64)
