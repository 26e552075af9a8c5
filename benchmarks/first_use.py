"""The first fit after an install against the second: seconds, and the kernels compiled between.

Each fit is `fedlasso fit` in a process of its own, with imports, the card and all that it prints.
The first starts with an empty cache of compiled code, the second with what the first has left.
Prints versions, CPU and wall seconds, the ratio first / second, and the longest silence.

    python benchmarks/first_use.py [--only linear]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes

FITS = {
    "linear": ("diabetes", "--target", "target"),
    "discoveries": ("diabetes", "--target", "target", "--goal", "discoveries"),
    "binomial": ("cancer", "--target", "target", "--family", "binomial"),
    "poisson": ("counts", "--target", "y", "--family", "poisson"),
    "cox": ("survival", "--time", "time", "--event", "event", "--family", "cox"),
}
# Runs the command, and prints its kernels and CPU seconds as the last line.
RUN = """
import json, resource, sys
from fedlasso.cli import main
from fedlasso.numerics.machine import Compilations
with Compilations() as compilations:
    main(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([used.ru_utime, compilations.names]))
"""


def simulate(rows: int, columns: int) -> pd.DataFrame:
    """Return normal columns, with a count and a survival time that depend on the first five."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    risk = np.exp(0.3 * X[:, :5].sum(axis=1))
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(columns)])
    time, censored = rng.exponential(1 / risk), rng.exponential(1.5, rows)
    outcomes = {"y": rng.poisson(risk), "time": np.minimum(time, censored)}
    return frame.assign(**outcomes, event=(time <= censored).astype(int))


def write_sites(folder: Path) -> dict[str, list[str]]:
    """Write three sites of every data set; return the names of their files."""
    survival = simulate(600, 20)
    frames = {
        "diabetes": load_diabetes(as_frame=True).frame,
        "cancer": load_breast_cancer(as_frame=True).frame,
        "counts": survival.drop(columns=["time", "event"]),
        "survival": survival.drop(columns="y"),
    }
    files = {}
    for name, frame in frames.items():
        site = np.random.default_rng(0).integers(3, size=len(frame))
        files[name] = [str(folder / f"{name}-{j}.csv") for j in range(3)]
        for j, file in enumerate(files[name]):
            frame[site == j].to_csv(file, index=False)
    return files


def run(arguments: list[str], cache: Path) -> tuple[float, float, float, list[str]]:
    """Return CPU and wall seconds, the longest silence, and the kernels that were compiled."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1"}
    # An install compiles modules, and what it does not compile is kept.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", RUN, "fit", *arguments]
    start = said = time.perf_counter()
    silence = 0.0
    lines: list[str] = []
    with subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            lines.append(line)
            now = time.perf_counter()
            silence = max(silence, now - said)
            said = now
    seconds, kernels = json.loads(lines[-1])
    return seconds, time.perf_counter() - start, silence, kernels


def main() -> None:
    """Fit twice from an empty cache for every kind of response."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=tuple(FITS), default=None)
    only = parser.parse_args().only
    packages = ("numpy", "scipy", "numba", "llvmlite", "pyarrow")
    print(*(f"{name} {version(name)}" for name in packages), f"Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files = write_sites(folder)
        for name in [only] if only else FITS:
            data, *options = FITS[name]
            cache = folder / f"{name} cache"
            runs = [
                run([*files[data], *options, "--out", str(folder / f"{name}-{turn}")], cache)
                for turn in ("first", "second")
            ]
            (first, wall, silence, kernels), (second, second_wall, _, again) = runs
            print(
                f"{name:12s} first {first:5.1f} s CPU {wall:5.1f} s   second {second:5.1f} s CPU "
                f"{second_wall:5.1f} s   ratio {first / second:4.1f}   silent {silence:.1f} s",
                flush=True,
            )
            print(f"{'':12s} compiled {len(kernels)}: {', '.join(kernels)}", flush=True)
            assert not again, f"compiled again: {again}"


if __name__ == "__main__":
    main()
