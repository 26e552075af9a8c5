"""Rows that look repeated: visits of patients do, ordinary tables do not, and fits are marked."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets

from fedlasso import FederatedLasso
from fedlasso.fitting.inference.infer import REPEATED
from fedlasso.models import FileSource, describe_model, open_sites, read_document
from fedlasso.numerics import Array
from fedlasso.sites.repeats import find_repeated
from fedlasso.tables.formula import natural_spline


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


def test_columns_computed_from_one_another_count_once() -> None:
    rng = np.random.default_rng(0)
    age = rng.integers(40, 85, 300).astype(np.float64)
    knots = (40.0, 50.0, 60.0, 70.0, 84.0)
    for X in (
        np.column_stack([age, age**2, age**3, np.log(age)]),
        np.column_stack([age, (age - 60) ** 2, (age - 60) ** 3, np.sin(age / 10)]),
        np.column_stack([natural_spline(age, knots), rng.standard_normal((300, 2))]),
    ):
        assert find_repeated(X) == 0.0
    # Visits of patients are found beside them: their columns are functions of one another, too.
    own = np.column_stack([visits(rng), age, age**2, age**3])
    assert find_repeated(own) > 0.9


def test_a_formula_with_powers_does_not_look_repeated() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(40, 85, 300), "dose": rng.standard_normal(300)})
    frame["y"] = rng.standard_normal(300)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FederatedLasso(penalty=0.1).fit(frame, formula="y ~ age + I(age**2) + I(age**3) + dose")
    assert not [own for own in caught if "agree with another one" in str(own.message)]


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


@pytest.mark.parametrize("goal", ["discoveries", "objective"])
def test_a_fit_of_repeated_rows_is_marked_wherever_it_is_shown(goal: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    X = pd.DataFrame(visits(rng), columns=[f"x{k}" for k in range(10)])
    patients = np.repeat(np.arange(100), 3)
    y = 2 * X["x0"] + X["x5"] + rng.standard_normal(100)[patients] + rng.standard_normal(300)
    site = np.where(patients < 50, "north", "south")
    model = FederatedLasso(goal=goal, penalty=0.1, intervals=["x1", "x6"])
    model.fit(X, y, site)
    assert model.trust_ is not None
    (mark,) = model.trust_.marks
    assert mark == REPEATED.format("2 of 2")
    model.to_folder(tmp_path / "model")
    document = read_document(tmp_path / "model" / "model.json")
    assert document.trust is not None
    assert document.trust.marks == (mark,)
    text = describe_model(document)
    assert text.count(mark) == 1
    # It precedes estimates and discoveries.
    assert text.index(mark) < text.index("requested: x")
    card = (tmp_path / "model" / "card.html").read_text()
    assert card.count("rows look repeated at 2 of 2 sites") == 1
    for shown in (text, card):
        assert "such a list are false" not in shown
        assert "calibrated by simulation" not in shown
    model.fit(X, y, site, clusters=patients)
    assert model.trust_ is not None
    assert not model.trust_.marks
