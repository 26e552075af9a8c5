"""The default fit on real data: its time, how the command starts, and how exact a given penalty is.

    python benchmarks/real.py [--data FOLDER] [--repeats 3] [--only boston,meats]

Without a folder (``Rscript tools/export_data.R FOLDER`` fills one) it takes scikit-learn's sets.
Ratios compare runs of this very process, or of processes started one after another.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LassoCV
from sklearn.preprocessing import StandardScaler

from fedlasso.estimators import FederatedLasso
from fedlasso.numerics import Array
from fedlasso.study.datasets import find_sets, read_set

SITES = 3
SHARES = (0.1, 0.01, 0.001)
SLOWEST, LATEST, FURTHEST = 5, 3, 1e-7
Labels = NDArray[np.int64]


def best(run: Callable[[], object], repeats: int) -> float:
    """Least seconds of some runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def time_fits(name: str, X: Array, y: Array, sites: Labels, repeats: int) -> str:
    """The default federated fit over LassoCV with five folds on the same pooled rows."""

    def pooled() -> None:
        LassoCV(cv=5).fit(StandardScaler().fit_transform(X), y)

    ours = best(lambda: FederatedLasso().fit(X, y, sites=sites), repeats)
    theirs = best(pooled, repeats)
    return (
        f"{name:14} {X.shape[0]:5} x {X.shape[1]:3}: {ours:7.3f} s, LassoCV(cv=5) {theirs:7.3f} s, "
        f"ratio {ours / theirs:.2f}"
    )


def solve_exactly(X: Array, y: Array, lam: float) -> tuple[Array, float]:
    """The Lasso of centred y on standardised X by an active set, and its largest violation.

    No code of the package is used. The violation of the optimality conditions is relative to lam.
    """
    n, p = X.shape
    b = np.zeros(p)
    signs = np.zeros(p)
    active: list[int] = []
    for _ in range(50 * p):
        goal = b.copy()
        if active:
            goal[active] = _solve_active(X[:, active], y, n * lam, signs[active], b[active])
        crossing = [k for k in active if goal[k] * signs[k] <= 0]
        if crossing:
            # Go as far as the first coefficient that would change its sign, and let it go.
            steps = [b[k] / (b[k] - goal[k]) if b[k] != goal[k] else 0.0 for k in crossing]
            first = int(np.argmin(steps))
            b += steps[first] * (goal - b)
            b[crossing[first]] = 0.0
            active.remove(crossing[first])
            continue
        b = goal
        gradient = X.T @ (y - X @ b) / n
        off = np.abs(gradient) - lam
        off[active] = -np.inf
        worst = int(off.argmax())
        if len(active) == p or off[worst] <= 1e-10 * lam:
            break
        active.append(worst)
        signs[worst] = np.sign(gradient[worst])
    b[active] = _refine(X[:, active], y, n * lam, signs[active], b[active])
    gradient = X.T @ (y - X @ b) / n
    off = np.maximum(np.abs(gradient) - lam, 0)
    off[active] = np.abs(gradient[active] - lam * signs[active])
    return b, float(off.max() / lam)


def _solve_active(X: Array, y: Array, weight: float, signs: Array, b: Array) -> Array:
    """Coefficients of the active columns; where these depend on each other, a step to fewer."""
    wide = X.shape[0] < X.shape[1]
    left, singular, right = np.linalg.svd(X, full_matrices=wide)
    if wide or singular[-1] < 1e-12 * singular[0]:
        # Along this direction predictions stay and the penalty falls, until a coefficient is zero.
        along: Array = right[-1]
        return b - 1e12 * along * np.sign(along @ signs)
    solution: Array = right.T @ ((left.T @ y - weight * (right @ signs) / singular) / singular)
    return solution


def _refine(X: Array, y: Array, weight: float, signs: Array, b: Array) -> Array:
    """The same coefficients with residuals in extended precision, where the machine has it."""
    _, singular, right = np.linalg.svd(X, full_matrices=False)
    long = X.astype(np.longdouble)
    target = long.T @ y.astype(np.longdouble) - weight * signs
    solution = b.astype(np.longdouble)
    for _ in range(5):
        rest = np.asarray(target - long.T @ (long @ solution), dtype=np.float64)
        solution = solution + right.T @ ((right @ rest) / singular**2)
    return np.asarray(solution, dtype=np.float64)


def check_penalties(name: str, X: Array, y: Array, sites: Labels) -> list[str]:
    """Largest difference of a coefficient from the exact one, relative to the largest."""
    scaler = StandardScaler().fit(X)
    Z = scaler.transform(X)
    centred = y - y.mean()
    largest = float(np.abs(Z.T @ centred).max() / len(y))
    lines = []
    for share in SHARES:
        penalty = share * largest
        model = FederatedLasso(penalty=penalty).fit(X, y, sites=sites)
        exact, violation = solve_exactly(Z, centred, penalty)
        difference = np.abs(model.coef_ * scaler.scale_ - exact).max() / np.abs(exact).max()
        uploads = model.ledger_.total(None, "0").upload / (8 * X.shape[1])
        lines.append(
            f"{name:14} {share:5g} of the largest penalty: difference {difference:.1e}, "
            f"{int((exact != 0).sum())} columns, {uploads:.0f} uploads per site "
            f"(exact to {violation:.0e})"
        )
    return lines


def time_commands(repeats: int = 9) -> str:
    """Medians of starting the command, and of starting Python with numpy."""
    commands = {
        "fedlasso --version": [str(Path(sys.executable).with_name("fedlasso")), "--version"],
        "import numpy": [sys.executable, "-c", "import numpy"],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            seconds[name].append(time.perf_counter() - start)
    ours, numpy = (median(times) for times in seconds.values())
    return (
        f"fedlasso --version {ours:.2f} s, python -c 'import numpy' {numpy:.2f} s, "
        f"ratio {ours / numpy:.2f} (aim: at most {LATEST})"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="data sets, comma-separated")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else find_sets(options.data)
    packages = ("fedlasso", "scikit-learn", "numpy")
    told = ", ".join(f"{package} {version(package)}" for package in packages)
    print(f"Python {platform.python_version()}, {told}; {SITES} sites, best of {options.repeats}")
    warnings.simplefilter("ignore")
    print(time_commands())
    sets = {}
    for name in names:
        X, y = read_set(options.data, name)
        sets[name] = (X, y, np.random.default_rng(0).permutation(len(y)) % SITES)
    X, y, sites = next(iter(sets.values()))
    FederatedLasso().fit(X, y, sites=sites)  # compile
    print(f"default fit over LassoCV (aim: at most {SLOWEST})")
    for name, (X, y, sites) in sets.items():
        print(f"  {time_fits(name, X, y, sites, options.repeats)}", flush=True)
    print(f"given penalties against an exact pooled Lasso (aim: at most {FURTHEST:.0e})")
    for name, (X, y, sites) in sets.items():
        for line in check_penalties(name, X, y, sites):
            print(f"  {line}", flush=True)


if __name__ == "__main__":
    main()
