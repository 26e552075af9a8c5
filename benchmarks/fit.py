"""A federated fit by goal against pooled scikit-learn LassoCV and celer, same data, same grid.

K = 3, p = 2,000, m = 20,000. All standardise on the same training rows, walk down to 0.05 of the
largest penalty, and hold out the same fifth; errors are on fresh rows. What is not alike: the
federated fit also weighs an adaptive path and refits, may stop its path early, and splits the fifth
in two; LassoCV refits on all rows; "tol" means a gap relative to the objective here, and to ||y||^2
in the others, which are run at a loose and at their default tolerance.

    python benchmarks/fit.py [--repeats 3]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from celer import celer_path
from numpy.typing import NDArray
from sklearn.linear_model import LassoCV
from sklearn.model_selection import PredefinedSplit
from sklearn.preprocessing import StandardScaler

from fedlasso.estimators import FederatedLasso
from fedlasso.numerics import Array
from fedlasso.sites import holdout
from fedlasso.sites.rows import divide

Mask = NDArray[np.bool_]

ROWS, COLUMNS, SITES = 20_000, 2_000, 3
FRESH = 5_000
COUNT, RATIO = 20, 0.05


def draw(seed: int = 0) -> tuple[Array, Array, Array, Array, NDArray[np.int64]]:
    """Neighbouring columns correlate 0.5; thirty matter; as much noise as signal; fresh rows."""
    rng = np.random.default_rng(seed)
    X = np.asfortranarray(rng.standard_normal((ROWS + FRESH, COLUMNS)))
    for k in range(1, COLUMNS):
        X[:, k] = 0.5 * X[:, k - 1] + np.sqrt(0.75) * X[:, k]
    b = np.zeros(COLUMNS)
    b[rng.choice(COLUMNS, 30, replace=False)] = rng.choice([-1.0, 1.0], 30)
    signal = X @ b
    y = signal + signal.std() * rng.standard_normal(ROWS + FRESH)
    sites = rng.integers(SITES, size=ROWS)
    return np.asfortranarray(X[:ROWS]), y[:ROWS], X[ROWS:], y[ROWS:], sites


def rows_held_out(sites: NDArray[np.int64]) -> Mask:
    """The rows that the federated fit holds out."""
    mask = np.zeros(sites.size, dtype=bool)
    for j in np.unique(sites):
        rows = np.flatnonzero(sites == j)
        parts = divide(holdout(0.2, 0), str(j), rows.size)
        mask[rows[np.concatenate([parts["penalty"], parts["candidate"]])]] = True
    return mask


Predict = Callable[[Array], Array]


def run_celer(X: Array, y: Array, held_out: Mask, tol: float) -> Predict:
    scaler = StandardScaler().fit(X[~held_out])
    train, mean = np.asfortranarray(scaler.transform(X[~held_out])), y[~held_out].mean()
    largest = np.abs(train.T @ (y[~held_out] - mean)).max() / len(train)
    grid = largest * np.logspace(0, np.log10(RATIO), COUNT)
    _, coefs, _ = celer_path(train, y[~held_out] - mean, "lasso", alphas=grid, tol=tol)
    errors = ((y[held_out] - mean)[:, None] - scaler.transform(X[held_out]) @ coefs) ** 2
    b = coefs[:, errors.mean(axis=0).argmin()]
    return lambda new: scaler.transform(new) @ b + mean


def run_sklearn(X: Array, y: Array, held_out: Mask, tol: float) -> Predict:
    scaler = StandardScaler().fit(X[~held_out])
    folds = PredefinedSplit(np.where(held_out, 0, -1))
    model = LassoCV(alphas=COUNT, eps=RATIO, cv=folds, tol=tol)
    model.fit(np.asfortranarray(scaler.transform(X)), y)
    return lambda new: model.predict(scaler.transform(new))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore")
    X, y, X_new, y_new, sites = draw()
    held_out = rows_held_out(sites)
    model = FederatedLasso("prediction")

    def federated() -> Predict:
        model.fit(X, y, sites)
        return model.predict

    runs: dict[str, Callable[[], Predict]] = {
        "federated": federated,
        "celer, tol 1e-2": lambda: run_celer(X, y, held_out, 1e-2),
        "celer, tol 1e-4": lambda: run_celer(X, y, held_out, 1e-4),
        "LassoCV, tol 1e-2": lambda: run_sklearn(X, y, held_out, 1e-2),
        "LassoCV, tol 1e-4": lambda: run_sklearn(X, y, held_out, 1e-4),
    }
    FederatedLasso().fit(X[:300, :20], y[:300], sites[:300])  # compile
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    errors = {}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            predict = run()
            seconds[name].append(time.perf_counter() - start)
            errors[name] = float(((y_new - predict(X_new)) ** 2).mean())
    best = {name: min(times) for name, times in seconds.items()}
    sent = model.ledger_.total(None, "0").upload
    print(f"{SITES} sites, {ROWS} rows, {COLUMNS} columns; best of {repeats}")
    for name in runs:
        print(f"{name:18} {best[name]:6.2f} s  error on fresh rows {errors[name]:.4g}")
    print(f"uploads {model.n_iter_} and 2 to standardise; {sent / 1e6:.2f} MB per site")
    for name in list(runs)[1:3]:
        ratio = best["federated"] / best[name]
        print(f"federated / {name}: {ratio:.2f} (aim: at most 2)")


if __name__ == "__main__":
    main()
