"""Newton across three sites against solvers that see all rows: one penalty, the same gap.

K = 3, p = 2,000, m = 20,000, a tenth of the largest useful penalty, no intercept. Binomial against
celer, and where Rscript with glmnet is here every family against that, whose path of twenty
penalties ends at the same one. A peer's tolerance is what brings its true gap near 1e-8 or below;
the gaps of both are printed. Sites with one baseline hazard each are no problem that glmnet knows
unless strata are given, and those are.

    python benchmarks/families.py [--repeats 3] [--families binomial,poisson,cox]
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from celer import celer_path
from numpy.typing import NDArray

from fedlasso import InProcess, Site, fit
from fedlasso.families import find_family
from fedlasso.numerics import Array
from fedlasso.sites import GradientAt
from fedlasso.study.replicate_data import UNITS

ROWS, COLUMNS, SITES = 20_000, 2_000, 3
SHARE = 0.1
SLOWEST = 3.0
ACTIVE = 30

GLMNET = """
args <- commandArgs(trailingOnly = TRUE)
folder <- args[1]; n <- as.integer(args[2]); p <- as.integer(args[3]); family <- args[4]
lam <- as.numeric(args[5]); top <- as.numeric(args[6]); thresh <- as.numeric(args[7])
suppressPackageStartupMessages(library(glmnet))
read <- function(name, count) readBin(file.path(folder, name), "double", count)
x <- matrix(read("x.bin", n * p), n, p)
y <- read("y.bin", n)
site <- read("site.bin", n)
if (family == "cox") y <- stratifySurv(survival::Surv(abs(y), as.numeric(y > 0)), site)
lambda <- exp(seq(log(top), log(lam), length.out = 20))
seconds <- system.time(fit <- glmnet(x, y, family = family, lambda = lambda, standardize = FALSE,
  intercept = FALSE, thresh = thresh, maxit = 1e7))[["elapsed"]]
b <- as.numeric(fit$beta[, ncol(fit$beta)])
writeBin(c(seconds, b), file.path(folder, "out.bin"))
cat(as.character(packageVersion("glmnet")))
"""


@dataclass(frozen=True, eq=False)
class Rows:
    """All rows, and which site each is at."""

    family: str
    X: Array
    y: Array
    site: NDArray[np.int64]

    def federation(self) -> InProcess:
        """The rows at their sites."""
        return InProcess(
            [
                Site(f"site{j}", self.X[self.site == j], self.y[self.site == j], loss=self.family)
                for j in range(SITES)
            ]
        )


def draw(family: str, rows: int = ROWS, columns: int = COLUMNS, seed: int = 0) -> Rows:
    """Neighbouring columns correlate 0.5, and thirty matter."""
    rng = np.random.default_rng(seed)
    X = np.asfortranarray(rng.standard_normal((rows, columns)))
    for k in range(1, columns):
        X[:, k] = 0.5 * X[:, k - 1] + np.sqrt(0.75) * X[:, k]
    b = np.zeros(columns)
    b[rng.choice(columns, ACTIVE, replace=False)] = rng.choice([-1.0, 1.0], ACTIVE)
    eta = X @ b
    y = find_family(family).draw(UNITS[family] * eta / eta.std(), rng)
    return Rows(family, X, y, rng.integers(SITES, size=rows))


def run_celer(rows: Rows, lam: float) -> tuple[float, Array, str]:
    """Seconds, the model, and who it was."""
    start = time.perf_counter()
    signs = 2 * rows.y - 1
    alphas = np.array([len(signs) * lam])
    _, coefs, _ = celer_path(rows.X, signs, "logreg", alphas=alphas, tol=1e-8, max_iter=200)
    return time.perf_counter() - start, coefs[:, -1], f"celer {version('celer')}"


def run_glmnet(rows: Rows, lam: float, top: float) -> tuple[float, Array, str]:
    """Seconds inside R, the model, and who it was."""
    n, p = rows.X.shape
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "x.bin").write_bytes(rows.X.tobytes(order="F"))
        (folder / "y.bin").write_bytes(rows.y.tobytes())
        (folder / "site.bin").write_bytes(rows.site.astype(np.float64).tobytes())
        (folder / "fit.R").write_text(GLMNET)
        sizes = [str(v) for v in (n, p, rows.family, lam, top, 1e-14)]
        command = ["Rscript", str(folder / "fit.R"), name, *sizes]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        numbers = np.fromfile(folder / "out.bin")
    return float(numbers[0]), numbers[1:], f"glmnet {run.stdout}"


def compare(family: str, repeats: int) -> list[str]:
    """One line per peer: seconds, true gaps and the ratio."""
    rows = draw(family)
    federation = rows.federation()
    slopes = federation.total(GradientAt(np.zeros(COLUMNS))).gradient / ROWS
    top = float(np.abs(slopes).max())
    lam = SHARE * top

    def objective(b: Array) -> float:
        sites = federation._members.values()
        loss = sum(s.rows * s.training.value(b) for s in sites if isinstance(s, Site))
        return loss / ROWS + lam * float(np.abs(b).sum())

    ours = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        result = fit(federation, "Newton", penalty=lam, rounds=1000)
        ours = min(ours, time.perf_counter() - start)
    best = result.coefficients
    uploads = result.costs.total("training").upload / (8 * SITES * COLUMNS)
    lines = [
        f"{family}: Newton {ours:.2f} s, {result.rounds} rounds, {uploads:.1f} uploads, "
        f"{int((best != 0).sum())} columns; certified: {result.certificate}"
    ]
    peers: list[Callable[[], tuple[float, Array, str]]] = []
    if family == "binomial":
        peers.append(lambda: run_celer(rows, lam))
    if shutil.which("Rscript"):
        peers.append(lambda: run_glmnet(rows, lam, top))
    for peer in peers:
        try:
            runs = [peer() for _ in range(repeats)]
        except subprocess.CalledProcessError as error:
            lines.append(f"  no glmnet here: {error.stderr.strip().splitlines()[-1]}")
            continue
        seconds = min(run[0] for run in runs)
        least = min(objective(best), objective(runs[0][1]))
        gaps = [(objective(b) - least) / least for b in (best, runs[0][1])]
        lines.append(
            f"  {runs[0][2]}: {seconds:.2f} s; gap {gaps[1]:.0e}, ours {gaps[0]:.0e}; "
            f"Newton / peer: {ours / seconds:.2f} (aim: at most {SLOWEST:g})"
        )
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--families", default=",".join(UNITS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{SITES} sites, {ROWS} rows, {COLUMNS} columns; best of {options.repeats}")
    for family in options.families.split(","):
        fit(draw(family, 300, 40).federation(), "Newton", penalty=0.05)  # compile
        for line in compare(family, options.repeats):
            print(line, flush=True)


if __name__ == "__main__":
    main()
