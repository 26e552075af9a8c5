"""Small data files for federations of real processes, and the same federation in one process."""

from pathlib import Path

import numpy as np
import pandas as pd

from fedlasso import InProcess
from fedlasso.cli import main
from fedlasso.deploy.records import TableRecords

# Seconds that one question may take when somebody is known to be silent: sites that have answered
# before answer at once, and the server notices by itself after 16 to 30 seconds.
SHORT = 15.0
MODEL = ("coefficients.csv", "model.json", "card.html")
SECRET = "patient-4711-0815"
SITES = ("a", "b", "c")
COLUMNS = tuple(f"x{k:02d}" for k in range(12))


def write_tables(folder: Path, rows: int = 120) -> dict[str, Path]:
    """One file per site, columns in a different order at each."""
    rng = np.random.default_rng(0)
    b = np.zeros(len(COLUMNS))
    b[:4] = (1.0, -1.0, 0.5, 0.5)
    paths = {}
    for k, site in enumerate(SITES):
        X = rng.standard_normal((rows + 10 * k, len(COLUMNS)))
        frame = pd.DataFrame(X, columns=COLUMNS)
        frame["y"] = X @ b + rng.standard_normal(len(X))
        frame["note"] = SECRET
        order = rng.permutation(frame.columns)
        paths[site] = folder / f"{site}.csv"
        frame[list(order)].to_csv(paths[site], index=False)
    return paths


def in_process(tables: dict[str, Path]) -> InProcess:
    """The same sites in this process."""
    return InProcess([TableRecords(path).site(name, COLUMNS, "y") for name, path in tables.items()])


def run(*arguments: object) -> int:
    """The command's exit code."""
    return main([str(a) for a in arguments])


def fit_files(tables: dict[str, Path], out: Path, *options: object) -> Path:
    """The model that the files give without a network."""
    files = [tables[site] for site in SITES]
    common = ["--target", "y", "--drop", "note", "--no-compare", "--out", out]
    assert run("fit", *files, *common, *options) == 0
    return out


def same_files(one: Path, other: Path) -> bool:
    """Whether two model folders hold the same model, byte for byte."""
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in MODEL)
