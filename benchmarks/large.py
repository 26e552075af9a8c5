"""Large input: 10 sites x 20,000 rows x 2,000 columns of Parquet, and a CSV of 50,000 columns.

Peak memory is that of a `fedlasso fit` process of its own. X alone takes 3.2 GB as numbers.

    python benchmarks/large.py [--sites 10] [--rows 20000] [--columns 2000] [--goal prediction]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def draw(rows: int, columns: int, seed: int) -> dict[str, np.ndarray]:
    """Correlated columns, forty of which matter."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal(rows)
    table = {f"g{k}": (rng.standard_normal(rows) + 0.5 * common) for k in range(columns)}
    signal = sum((1 - 2 * (k % 2)) * table[f"g{k * 7}"] for k in range(40))
    table["y"] = signal + 6 * rng.standard_normal(rows)
    return table


def run(files: list[Path], out: Path, *options: str) -> tuple[float, float]:
    """Seconds, and peak memory of the largest process so far in GB."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "fedlasso", "fit", *map(str, files), "--target", "y"]
    subprocess.run([*command, "--out", str(out), *options], check=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    return time.perf_counter() - start, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sites", type=int, default=10)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=2_000)
    parser.add_argument("--goal", default="prediction")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        wide = base / "wide.csv"
        table = draw(60, 50_000, 99)
        with wide.open("w") as file:
            file.write(",".join(table) + "\n")
            for row in zip(*table.values(), strict=True):
                file.write(",".join(f"{v:.6g}" for v in row) + "\n")
        seconds, peak = run([wide], base / "wide-model", "--goal", options.goal)
        print(f"60 rows x 50,000 columns of CSV: {seconds:.0f} s, peak {peak:.2f} GB", flush=True)
        files = []
        for j in range(options.sites):
            files.append(base / f"site{j}.parquet")
            pq.write_table(pa.table(draw(options.rows, options.columns, j)), files[-1],
                           compression="none", use_dictionary=False)  # fmt: skip
        seconds, peak = run(files, base / "model", "--goal", options.goal)
        print(
            f"{options.sites} sites x {options.rows} rows x {options.columns} columns of Parquet: "
            f"{seconds:.0f} s, peak {peak:.2f} GB"
        )


if __name__ == "__main__":
    main()
