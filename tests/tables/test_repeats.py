"""Rows that look repeated: visits of patients do, and ordinary tables do not."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets

from fedlasso.models import FileSource, open_sites
from fedlasso.numerics import Array
from fedlasso.tables.repeats import find_repeated


def visits(rng: np.random.Generator) -> Array:
    """Three visits each of a hundred patients, with four columns of the patient's own."""
    patients = rng.standard_normal((100, 4)).round(2)
    return np.column_stack([np.repeat(patients, 3, axis=0), rng.standard_normal((300, 6))])


def test_visits_of_patients_look_repeated() -> None:
    rng = np.random.default_rng(1)
    X = visits(rng)
    assert find_repeated(X) > 0.9
    assert find_repeated(rng.permutation(X)) > 0.9
    assert find_repeated(X[::3]) == 0.0


@pytest.mark.parametrize(
    "name", ["iris", "diabetes", "wine", "breast_cancer", "digits", "linnerud"]
)
def test_ordinary_tables_do_not(name: str) -> None:
    assert find_repeated(getattr(datasets, f"load_{name}")().data) < 0.1


def test_counts_codes_and_rounded_or_correlated_columns_do_not() -> None:
    rng = np.random.default_rng(0)
    common = rng.standard_normal((1000, 1)) + 0.3 * rng.standard_normal((1000, 30))
    for X in (
        rng.poisson(5, (1000, 40)),
        rng.integers(0, 2, (1000, 40)),
        rng.integers(0, 100, (1000, 10)),
        common.round(2),
        np.ones((50, 4)),
        np.full((50, 4), np.nan),
    ):
        assert find_repeated(X.astype(np.float64)) < 0.05


def test_a_site_with_repeated_rows_is_named_unless_clusters_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    paths = []
    for name in "ab":
        X = visits(rng) if name == "b" else rng.standard_normal((300, 10))
        frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(10)])
        frame["y"] = rng.standard_normal(300)
        frame["patient"] = np.repeat(np.arange(100), 3)
        paths.append(str(tmp_path / f"{name}.csv"))
        frame.to_csv(paths[-1], index=False)
    given: dict[str, Any] = {"files": tuple(paths), "target": "y"}
    heard: list[str] = []
    open_sites(FileSource(drop=("patient",), **given), notify=heard.append)
    (warning,) = [line for line in heard if line.startswith("warning")]
    assert warning.startswith("warning: site 'b': about 100% of the rows agree with another one")
    assert "--cluster" in warning
    heard.clear()
    open_sites(FileSource(cluster="patient", **given), notify=heard.append)
    assert not [line for line in heard if line.startswith("warning")]
