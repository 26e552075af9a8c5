"""Speed of the numerical kernels against their peers, as ratios within one run.

Run with one BLAS thread: OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/kernels.py
"""

import argparse
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version

import numpy as np
from sklearn.linear_model import Lasso, lars_path
from sklearn.linear_model import lasso_path as sklearn_path

from fedlasso.numerics import (
    L1,
    Array,
    LeastSquares,
    dual_steps,
    lasso_path,
    local_sweeps,
    one_thread,
    penalty_grid,
    soft_threshold,
)
from fedlasso.numerics.path import relative_gap

SIZES = (268, 268, 264)
P, RHO, ROUNDS = 600, 0.5, 100
RATES = np.array([0.03, 0.1, 0.3, 0.6, 1.0])


def draw(rng: np.random.Generator, m: int, truth: Array) -> tuple[Array, Array]:
    """Draw one site of the paper's baseline: correlation 0.5^|k-l|, signal-to-noise ratio one."""
    lag = np.abs(np.subtract.outer(np.arange(P), np.arange(P)))
    sigma = RHO**lag
    X = rng.standard_normal((m, P)) @ np.linalg.cholesky(sigma).T
    y = X @ truth + np.sqrt(truth @ sigma @ truth) * rng.standard_normal(m)
    return X, y


def sites(rng: np.random.Generator) -> tuple[list[LeastSquares], float]:
    """Return three sites and the mean of the penalties they choose on validation data."""
    truth = np.zeros(P)
    truth[rng.choice(P, 30, replace=False)] = rng.uniform(0.4, 1.2, 30) * rng.choice([-1, 1], 30)
    data = [LeastSquares(*draw(rng, m, truth)) for m in SIZES]
    chosen = []
    for f in data:
        path = lasso_path(f, penalty_grid(f))
        X, y = draw(rng, 67, truth)
        errors = ((y[:, None] - X @ path.coefficients) ** 2).mean(axis=0)
        chosen.append(path.penalties[errors.argmin()])
    return data, float(np.average(chosen, weights=SIZES))


def best(run: Callable[[], object], repeats: int) -> float:
    """Return the shortest time of `repeats` runs, after one that compiles and warms caches."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def report(name: str, ours: float, theirs: float, target: float, note: str = "") -> None:
    """Print one comparison."""
    print(
        f"{name:34s} ours {ours * 1e3:9.2f} ms   peer {theirs * 1e3:10.2f} ms   "
        f"ratio {theirs / ours:7.1f} (target {target:g})  {note}",
        flush=True,
    )


def averaging(data: list[LeastSquares], lam: float, repeats: int) -> None:
    """Time 100 rounds of coordinate-descent averaging."""
    weights = np.array(SIZES) / sum(SIZES)

    def ours(epochs: int) -> Array:
        b = np.zeros((P, 1))
        for _ in range(ROUNDS):
            b = sum(
                (w * local_sweeps(f, b, lam, epochs) for w, f in zip(weights, data, strict=True)),
                np.zeros((P, 1)),
            )
        return b[:, 0]

    def theirs(epochs: int) -> Array:
        model = Lasso(
            alpha=lam, fit_intercept=False, max_iter=epochs, tol=0.0, warm_start=True, copy_X=False
        )
        b = np.zeros(P)
        for _ in range(ROUNDS):
            total = np.zeros(P)
            for w, f in zip(weights, data, strict=True):
                model.coef_ = b.copy()
                total += w * model.fit(f.X, f.y).coef_
            b = total
        return b

    for epochs, target in ((1, 10), (5, 6), (20, 5)):
        difference = np.abs(ours(epochs) - theirs(epochs)).max()
        report(
            f"averaging E={epochs} vs Lasso",
            best(lambda e=epochs: ours(e), 3 * repeats),  # type: ignore[misc]
            best(lambda e=epochs: theirs(e), repeats),  # type: ignore[misc]
            target,
            f"largest difference {difference:.1e}, {np.count_nonzero(ours(epochs))} active",
        )


def path(f: LeastSquares, repeats: int, quick: bool) -> None:
    """Time the 30-penalty path; Gram and scores are computed afresh each time, as peers do."""
    grid = penalty_grid(f)
    ours = best(lambda: lasso_path(LeastSquares(f.X, f.y), grid), 3 * repeats)
    fit = lasso_path(f, grid)
    gap = f"our largest gap {fit.gaps.max():.0e}"

    knots = best(lambda: lars_path(f.X, f.y, method="lasso", alpha_min=grid[-1]), repeats)
    report("path vs lars_path", ours, knots, 3, gap)

    limit = 200 if quick else 20_000
    start = time.perf_counter()
    _, coefficients, _ = sklearn_path(f.X, f.y, alphas=grid, tol=1e-6, max_iter=limit)
    seconds = time.perf_counter() - start
    theirs = max(relative_gap(f, b, lam) for b, lam in zip(coefficients.T, grid, strict=True))
    report("path vs lasso_path", ours, seconds, 50, f"{gap}, its {theirs:.0e} (max_iter {limit})")

    try:
        from celer.homotopy import celer_path
    except ImportError:
        print("celer is not installed: skipped")
        return
    X = np.asfortranarray(f.X.copy(order="F"))
    start = time.perf_counter()
    _, coefficients, _ = celer_path(
        X, f.y.copy(), "lasso", alphas=grid, tol=5e-11, max_iter=20, max_epochs=limit
    )
    seconds = time.perf_counter() - start
    theirs = max(relative_gap(f, b, lam) for b, lam in zip(coefficients.T, grid, strict=True))
    report("path vs celer_path", ours, seconds, 30, f"{gap}, its {theirs:.0e}")


def dual_averaging(f: LeastSquares, lam: float, repeats: int) -> None:
    """Time 20 rounds of 5 dual-averaging steps at five rates."""
    rates = RATES / f.design.largest_eigenvalue
    epochs, rounds = 5, 20
    X, y = np.asfortranarray(f.X), f.y

    def ours() -> Array:
        z = np.zeros((P, rates.size))
        for t in range(rounds):
            z = dual_steps(f, z, rates, L1(lam), t * epochs, epochs)
        return z

    def theirs() -> Array:
        z = np.zeros((P, rates.size))
        for step in range(rounds * epochs):
            b = soft_threshold(z, rates * step * lam)
            z = z - rates * (X.T @ (X @ b - y[:, None]) / f.m)
        return z

    difference = np.abs(ours() - theirs()).max()
    report(
        "dual steps vs numpy",
        best(ours, 3 * repeats),
        best(theirs, 3 * repeats),
        1.5,
        f"largest difference {difference:.1e}",
    )


def main() -> None:
    """Run every comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, short peers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("averaging", "path", "dual"), default=None)
    options = parser.parse_args()
    for peer in ("numpy", "scipy", "numba", "scikit-learn", "celer"):
        print(peer, version(peer), end="  ")
    print()
    warnings.simplefilter("ignore")  # peers warn that a fixed number of sweeps did not converge
    repeats = 1 if options.quick else 3
    with one_thread():
        data, lam = sites(np.random.default_rng(options.seed))
        largest = np.abs(data[0].score).max()
        print(f"three sites {SIZES} x {P}, penalty {lam:.4f} = {lam / largest:.3f} lambda_max")
        if options.only in (None, "averaging"):
            averaging(data, lam, repeats)
        if options.only in (None, "dual"):
            dual_averaging(data[0], lam, repeats)
        if options.only in (None, "path"):
            path(data[0], repeats, options.quick)


if __name__ == "__main__":
    main()
