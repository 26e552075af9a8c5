"""A federated fit by goal against pooled scikit-learn LassoCV and celer, same data, same grid.

K = 3, p = 2,000, m = 20,000. All standardise, walk 20 penalties down to 0.05 of the largest, and
choose by the same held-out fifth. The federated fit also weighs an adaptive path and refits.

    python benchmarks/fit.py [--repeats 3]
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from celer import celer_path
from numpy.typing import NDArray
from sklearn.linear_model import LassoCV
from sklearn.model_selection import PredefinedSplit
from sklearn.preprocessing import StandardScaler

from fedlasso.estimator import FederatedLasso
from fedlasso.lasso import Array

Mask = NDArray[np.bool_]

ROWS, COLUMNS, SITES = 20_000, 2_000, 3
COUNT, RATIO = 20, 0.05


def draw(seed: int = 0) -> tuple[Array, Array, NDArray[np.int64]]:
    """Neighbouring columns correlate 0.5; thirty matter; as much noise as signal."""
    rng = np.random.default_rng(seed)
    X = np.asfortranarray(rng.standard_normal((ROWS, COLUMNS)))
    for k in range(1, COLUMNS):
        X[:, k] = 0.5 * X[:, k - 1] + np.sqrt(0.75) * X[:, k]
    b = np.zeros(COLUMNS)
    b[rng.choice(COLUMNS, 30, replace=False)] = rng.choice([-1.0, 1.0], 30)
    signal = X @ b
    return X, signal + signal.std() * rng.standard_normal(ROWS), rng.integers(SITES, size=ROWS)


def pooled(X: Array, y: Array, held_out: Mask) -> tuple[Array, Array, Array, Array, Array]:
    scaler = StandardScaler().fit(X[~held_out])
    Z = np.asfortranarray(scaler.transform(X))
    train, test = np.asfortranarray(Z[~held_out]), Z[held_out]
    mean = y[~held_out].mean()
    return train, y[~held_out] - mean, test, y[held_out] - mean, Z


def run_celer(X: Array, y: Array, held_out: Mask) -> float:
    train, y_train, test, y_test, _ = pooled(X, y, held_out)
    largest = np.abs(train.T @ y_train).max() / len(y_train)
    grid = largest * np.logspace(0, np.log10(RATIO), COUNT)
    _, coefs, _ = celer_path(train, y_train, "lasso", alphas=grid, tol=1e-2)
    return float(((y_test[:, None] - test @ coefs) ** 2).mean(axis=0).min())


def run_sklearn(X: Array, y: Array, held_out: Mask) -> float:
    _, _, _, _, Z = pooled(X, y, held_out)
    folds = PredefinedSplit(np.where(held_out, 0, -1))
    model = LassoCV(alphas=COUNT, eps=RATIO, cv=folds, tol=1e-2).fit(Z, y)
    return float(model.mse_path_.min())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore")
    X, y, sites = draw()
    held_out = np.random.default_rng(1).random(ROWS) < 0.2
    small = slice(0, 300)
    FederatedLasso().fit(X[small, :20], y[small], sites[small])  # compile
    run_celer(X[small, :20], y[small], held_out[small])
    seconds: dict[str, list[float]] = {"federated": [], "celer": [], "scikit-learn": []}
    for _ in range(repeats):
        start = time.perf_counter()
        model = FederatedLasso("prediction").fit(X, y, sites)
        seconds["federated"].append(time.perf_counter() - start)
        start = time.perf_counter()
        celer_error = run_celer(X, y, held_out)
        seconds["celer"].append(time.perf_counter() - start)
        start = time.perf_counter()
        sklearn_error = run_sklearn(X, y, held_out)
        seconds["scikit-learn"].append(time.perf_counter() - start)
    best = {name: min(times) for name, times in seconds.items()}
    fit = model.model_.fit
    assert fit.validation is not None
    sent = model.ledger_.total(None, "0").upload
    print(f"{SITES} sites, {ROWS} rows, {COLUMNS} columns; best of {repeats}")
    print(f"federated     {best['federated']:6.2f} s  {fit.rounds} uploads, {sent / 1e6:.2f} MB, "
          f"error {fit.validation.mse[fit.chosen]:.4g}")  # fmt: skip
    print(f"celer         {best['celer']:6.2f} s  error {celer_error:.4g}")
    print(f"scikit-learn  {best['scikit-learn']:6.2f} s  error {sklearn_error:.4g}")
    print(f"federated / celer: {best['federated'] / best['celer']:.2f} (aim: at most 2)")


if __name__ == "__main__":
    main()
