"""Judges of federated fits: cv.glmnet, if R has it, and LassoCV on the pooled training rows."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError

if TYPE_CHECKING:
    from fedlasso.numerics import Array

FOLDS = 10
# In the order in which judges.R writes them.
GLMNET = ("glmnet min", "glmnet 1se", "glmnet relaxed")
LASSO_CV = "LassoCV"
JUDGES = (*GLMNET, LASSO_CV)


@dataclass(frozen=True, eq=False)
class Judged:
    """A judge's model, on the original scale of the columns."""

    judge: str
    intercept: float
    coefficients: Array
    lam: float
    seconds: float


def glmnet_runs() -> bool:
    """Return whether Rscript and its package glmnet are installed."""
    program = shutil.which("Rscript")
    return program is not None and _has_glmnet(program)


@cache
def _has_glmnet(program: str) -> bool:
    question = 'quit(status = !requireNamespace("glmnet", quietly = TRUE))'
    return subprocess.run([program, "-e", question], capture_output=True).returncode == 0


def judge(
    judges: Sequence[str], X: Array, y: Array, folds: NDArray[np.integer]
) -> Iterator[Judged]:
    """Fit every judge to the pooled rows; ``folds`` numbers the fold of each row, from 0."""
    if set(judges) & set(GLMNET):
        yield from (fit for fit in fit_glmnet(X, y, folds) if fit.judge in judges)
    if LASSO_CV in judges:
        yield fit_lasso_cv(X, y)


def fit_glmnet(X: Array, y: Array, folds: NDArray[np.integer]) -> list[Judged]:
    """Return all three fits of glmnet, from one call of R."""
    n, p = X.shape
    with (
        tempfile.TemporaryDirectory() as name,
        as_file(files("fedlasso.study") / "judges.R") as script,
    ):
        folder = Path(name)
        (folder / "x.bin").write_bytes(X.astype("<f8").tobytes(order="F"))
        (folder / "y.bin").write_bytes(y.astype("<f8").tobytes())
        (folder / "fold.bin").write_bytes((folds + 1).astype("<i4").tobytes())
        command = ["Rscript", str(script), name, str(n), str(p)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        out = folder / "fits.bin"
        if run.returncode or not out.exists():
            reason = " ".join(run.stderr.split()) or f"exit code {run.returncode}"
            raise FedLassoError(f"pooled cv.glmnet failed: {reason[-500:]}")
        numbers = np.fromfile(out, dtype="<f8")
    if numbers.size != len(GLMNET) * (p + 3):
        raise FedLassoError(f"pooled cv.glmnet returned {numbers.size} numbers for {p} columns")
    return [
        Judged(judge, float(fit[0]), fit[1 : p + 1], float(fit[p + 1]), float(fit[p + 2]))
        for judge, fit in zip(GLMNET, numbers.reshape(len(GLMNET), p + 3), strict=True)
    ]


def fit_lasso_cv(X: Array, y: Array) -> Judged:
    """Return scikit-learn's cross-validated Lasso on standardised columns, other defaults kept."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LassoCV
    from sklearn.preprocessing import StandardScaler

    start = time.perf_counter()
    scaler = StandardScaler().fit(X)
    with warnings.catch_warnings():
        # Paths that do not converge are part of this judge's default behaviour.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LassoCV(cv=FOLDS).fit(scaler.transform(X), y)
    seconds = time.perf_counter() - start
    coefficients = model.coef_ / scaler.scale_
    intercept = float(model.intercept_ - scaler.mean_ @ coefficients)
    return Judged(LASSO_CV, intercept, coefficients, float(model.alpha_), seconds)
