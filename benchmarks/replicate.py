"""One replicate of the paper's study against the same replicate written plainly with scikit-learn.

Same draw, one thread, same run. Plain: ``lasso_path`` (tol 1e-4, 2000 iterations) for the penalty,
``Lasso`` with a fixed number of sweeps for CD and P, numpy gradients for DA, ``Lasso`` to tol 1e-12
for the reference, and the same outcomes of both rules; no ledger. Both draw the data. Plain is
timed on row-major arrays, as numpy makes them, which scikit-learn copies in every fit, and on
column-major ones.
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
import warnings
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, lasso_path
from threadpoolctl import threadpool_limits

from fedlasso.fitting import PANELS, rounds_within
from fedlasso.numerics import Array, soft_threshold
from fedlasso.study import SCENARIOS, PaperStudy, ReplicateData, Store, run_study

STUDY = PaperStudy()
THRESHOLDS = np.array([0.0, 0.03, 0.1, 0.3, 1.0])
RATES = np.array([0.03, 0.1, 0.3, 0.6, 1.0])


def plain_penalty(draw: ReplicateData) -> float:
    """Each site's validated penalty, averaged by size."""
    chosen, sizes = [], []
    for (X, y), (Xv, yv) in zip(draw.training, draw.penalty_validation, strict=True):
        top = np.abs(X.T @ y).max() / len(y)
        grid = np.geomspace(top, 1e-3 * top, 30)
        _, coefficients, _ = lasso_path(X, y, alphas=grid, tol=1e-4, max_iter=2000)
        errors = ((yv[:, None] - Xv @ coefficients) ** 2).mean(axis=0)
        chosen.append(grid[errors.argmin()])
        sizes.append(len(y))
    return float(np.average(chosen, weights=sizes))


def plain_average(
    draw: ReplicateData, lam: float, epochs: int, rounds: list[int], tau: float
) -> Any:
    """CD's path, or P's at one threshold, read at some rounds."""
    m = sum(len(y) for _, y in draw.training)
    models = [
        Lasso(alpha=lam, fit_intercept=False, max_iter=epochs, tol=0.0, warm_start=True)
        for _ in draw.training
    ]
    b = np.zeros(len(draw.truth))
    read = {}
    for t in range(1, max(rounds) + 1):
        total = np.zeros_like(b)
        for model, (X, y) in zip(models, draw.training, strict=True):
            model.coef_ = b.copy()
            model.fit(X, y)
            total += len(y) / m * model.coef_
        b = soft_threshold(total, tau)
        if t in rounds:
            read[t] = b
    return read


def plain_dual(draw: ReplicateData, lam: float, epochs: int, rounds: list[int], L: float) -> Any:
    """DA's five paths, read at some rounds."""
    m = sum(len(y) for _, y in draw.training)
    eta = RATES / L
    z = np.zeros((len(draw.truth), len(eta)))
    read = {}
    for t in range(max(rounds)):
        total = np.zeros_like(z)
        for X, y in draw.training:
            local = z.copy()
            for k in range(epochs):
                b = soft_threshold(local, eta * (t * epochs + k) * lam)
                local -= eta * (X.T @ (X @ b - y[:, None]) / len(y))
            total += len(y) / m * local
        z = total
        if t + 1 in rounds:
            read[t + 1] = soft_threshold(z, eta * (t + 1) * epochs * lam)
    return read


def plain_replicate(draw: ReplicateData) -> list[dict[str, Any]]:
    """Outcomes of every method, epoch count, budget, panel and rule."""
    lam = plain_penalty(draw)
    L = max(np.linalg.eigvalsh(X @ X.T / len(y))[-1] for X, y in draw.training)
    Xv = np.vstack([X for X, _ in draw.candidate_validation])
    yv = np.concatenate([y for _, y in draw.candidate_validation])
    Xt, yt = np.vstack([X for X, _ in draw.test]), np.concatenate([y for _, y in draw.test])
    rows = []
    for epochs in STUDY.epochs:

        def rounds(paths: int, E: int = epochs) -> dict[tuple[int, str], int]:
            return {(B, s): rounds_within(B, s, paths, E) for B in STUDY.budgets for s in PANELS}

        one, five = rounds(1), rounds(5)
        cd = plain_average(draw, lam, epochs, [*one.values()], 0.0)
        p = [plain_average(draw, lam, epochs, [*five.values()], lam * t) for t in THRESHOLDS]
        da = plain_dual(draw, lam, epochs, [*five.values()], L)
        for cell, R in one.items():
            st = np.column_stack([soft_threshold(cd[R], lam * t) for t in THRESHOLDS])
            rows += [(cell, epochs, "CD", cd[R][:, None]), (cell, epochs, "ST", st)]
        for cell, R in five.items():
            rows.append((cell, epochs, "P", np.column_stack([path[R] for path in p])))
            rows.append((cell, epochs, "DA", da[R]))
    X, y = np.vstack([X for X, _ in draw.training]), np.concatenate([y for _, y in draw.training])
    best = Lasso(alpha=lam, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, y).coef_
    least = ((y - X @ best) ** 2).mean() / 2 + lam * np.abs(best).sum()
    results = []
    for (budget, panel), epochs, method, models in rows:
        squares = (yv[:, None] - Xv @ models) ** 2
        errors, active = squares.mean(axis=0), (np.abs(models) > 1e-4).sum(axis=0)
        smallest = int(errors.argmin())
        limit = errors[smallest] + squares[:, smallest].std(ddof=1) / np.sqrt(len(yv))
        near = [i for i in range(len(errors)) if errors[i] <= limit]
        sparsest = min(near, key=lambda i: (active[i], errors[i], i))
        for rule, i in (("min", smallest), ("1se", sparsest)):
            b: Array = models[:, i]
            r = y - X @ b
            scores = {}
            for cutoff in (1e-4, 1e-6, 1e-2):
                chosen = np.abs(b) > cutoff
                hits = (chosen & (draw.truth != 0)).sum()
                scores[cutoff] = 2 * hits / (chosen.sum() + (draw.truth != 0).sum())
            objective = (r**2).mean() / 2 + lam * np.abs(b).sum()
            step = soft_threshold(b + X.T @ r / len(y), lam)
            results.append(
                {"method": method, "epochs": epochs, "budget": budget, "panel": panel,
                 "rule": rule, "f1": scores[1e-4], "f1_1e6": scores[1e-6],
                 "f1_1e2": scores[1e-2], "test_mse": ((yt - Xt @ b) ** 2).mean(),
                 "coef_error": np.linalg.norm(b - draw.truth), "gap": objective - least,
                 "stationarity": np.abs(b - step).max()}
            )  # fmt: skip
    return results


def row_major(draw: ReplicateData) -> ReplicateData:
    """The same numbers as a plain script would hold them."""

    def rows(samples: tuple[tuple[Array, Array], ...]) -> tuple[tuple[Array, Array], ...]:
        return tuple((np.ascontiguousarray(X), y) for X, y in samples)

    return ReplicateData(
        draw.truth, rows(draw.training), rows(draw.penalty_validation),
        rows(draw.candidate_validation), rows(draw.test),
    )  # fmt: skip


def seconds(call: Any, repeats: int) -> tuple[float, Any]:
    """Best of some runs, and the last result."""
    best, result = np.inf, None
    for _ in range(repeats):
        start = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - start)
    return best, result


def peak_megabytes(queue: Any) -> None:
    """Peak memory of a process that runs two replicates."""
    for number in range(2):
        STUDY.replicate(SCENARIOS["more-predictors"], number)
    queue.put(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", default="baseline")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    scenario = SCENARIOS[options.scenario]
    print(f"scikit-learn {version('scikit-learn')}, numpy {version('numpy')}, one thread")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        STUDY.replicate(scenario, 1)  # compiles
        ours, records = seconds(lambda: STUDY.replicate(scenario, 0), options.repeats)
        print(f"replicate: ours {ours:.3f} s")
        drawing, draw = seconds(
            lambda: scenario.draw(scenario.generator(STUDY.seed, 0)), options.repeats
        )
        # Changing the layout is not part of anybody's replicate, drawing is part of both.
        for layout, data in (("row-major", row_major(draw)), ("column-major", draw)):
            fitting, plain = seconds(partial(plain_replicate, data), options.repeats)
            theirs = drawing + fitting
            print(f"plain, {layout} arrays: {theirs:.3f} s, ratio {theirs / ours:.1f}")
    frame = pd.DataFrame(records).query("record == 'outcome'")
    both = frame.merge(pd.DataFrame(plain), on=["method", "epochs", "budget", "panel", "rule"])
    for metric in ("f1", "test_mse", "gap"):
        worst = (both[f"{metric}_x"] - both[f"{metric}_y"]).abs().max()
        print(f"largest difference in {metric} over {len(both)} cells: {worst:.1e}")
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=peak_megabytes, args=(queue,))
    process.start()
    print(f"peak memory of a worker (p = 1000): {queue.get():.0f} MB")
    process.join()
    with tempfile.TemporaryDirectory() as base:
        times = []
        for workers in (1, 2):
            store = Store(Path(base) / str(workers))
            start = time.perf_counter()
            run_study(STUDY, [scenario], 100, store, workers=workers)
            times.append(time.perf_counter() - start)
    print(f"100 replicates: 1 worker {times[0]:.1f} s, 2 workers {times[1]:.1f} s: "
          f"ratio {times[0] / times[1]:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
