"""Small tables for tests."""

from pathlib import Path

import numpy as np
import pandas as pd

from fedlasso.federation import Federation
from fedlasso.fitting import Settings
from fedlasso.tables import Schema


def draw_frame(rows: int = 60, seed: int = 0) -> pd.DataFrame:
    """Six numbers and a text column, four of which matter."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        rng.standard_normal((rows, 6)) * [1, 10, 0.1, 1, 5, 2] + [0, 50, 3, -2, 0, 1000],
        columns=["age", "dose", "rate", "bmi", "noise1", "noise2"],
    )
    frame["ward"] = rng.choice(["east", "west", "main"], rows)
    z = (frame.drop(columns="ward") - frame.drop(columns="ward").mean()) / 3
    frame["y"] = (
        5 + 3 * z["age"] - z["dose"] / 5 + 2 * z["bmi"] + 2 * (frame["ward"] == "west")
        + 0.3 * rng.standard_normal(rows)
    )  # fmt: skip
    return frame


def write_sites(folder: Path, sizes: tuple[int, ...] = (60, 40, 30)) -> list[Path]:
    """One file per site, in CSV and Parquet, columns in different orders."""
    paths = []
    for j, rows in enumerate(sizes):
        frame = draw_frame(rows, seed=j)
        frame = frame[np.random.default_rng(j).permutation(frame.columns)]
        if j % 2:
            paths.append(folder / f"site{j}.parquet")
            frame.to_parquet(paths[-1], index=False)
        else:
            paths.append(folder / f"site{j}.csv")
            frame.to_csv(paths[-1], index=False)
    return paths


def with_settings(
    opened: tuple[Federation, Schema], settings: Settings
) -> tuple[Federation, Settings, Schema]:
    """Return the first arguments of `make_model` for an opened federation."""
    return opened[0], settings, opened[1]
