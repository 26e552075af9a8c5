"""Columns that enter or leave a model together: files, Python, costs and refusals."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.natural_units import connect, draw
from scipy.special import expit

from fedlasso import FederatedLasso, FederatedLogisticLasso, FedLassoError
from fedlasso.cli import main
from fedlasso.fitting import Settings, fit_model
from fedlasso.models import read_document
from fedlasso.numerics import Array, GroupL1

WARDS = ["east", "north", "south", "west"]
PLACES = [[0], [1], [2], [3], [4, 5, 6]]


def draw_wards(rows: int = 240, seed: int = 0) -> pd.DataFrame:
    """Return numbers in natural units, and a text column of which one level has an effect."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": 55 + 12 * rng.normal(size=rows),
            "dose": 100 * rng.normal(size=rows),
            "bmi": 27 + 4 * rng.normal(size=rows),
            "bmi2": rng.normal(size=rows),
            "ward": rng.choice(WARDS, rows),
        }
    )
    effect = 0.05 * table.age + 0.8 * (table.ward == "north")
    table["y"] = effect + rng.normal(size=rows)
    table["sick"] = (rng.random(rows) < expit(effect - effect.mean())).astype(int)
    return table


def encode(table: pd.DataFrame) -> Array:
    levels = [table.ward == ward for ward in WARDS[1:]]
    numbers = table[["age", "dose", "bmi", "bmi2"]].to_numpy()
    return np.column_stack([numbers, *levels]).astype(np.float64)


def fit_slowly(X: Array, y: Array, strength: float, binary: bool) -> tuple[Array, float]:
    """Return the group Lasso of standardised columns, by accelerated proximal gradient steps."""
    scale = X.std(axis=0)
    Z = np.column_stack([(X - X.mean(axis=0)) / scale, np.ones(len(y))])
    rate = 1 / (np.linalg.eigvalsh(Z.T @ Z / len(y))[-1] / (4 if binary else 1))
    b = ahead = np.zeros(Z.shape[1])
    t = 1.0
    for _ in range(4000):
        eta = Z @ ahead
        slopes = Z.T @ ((expit(eta) if binary else eta) - y) / len(y)
        moved = ahead - rate * slopes
        for place in PLACES:
            size = np.linalg.norm(moved[place])
            moved[place] *= max(1 - rate * strength * np.sqrt(len(place)) / size, 0)
        later = (1 + np.sqrt(1 + 4 * t * t)) / 2
        ahead = moved + (t - 1) / later * (moved - b)
        b, t = moved, later
    coefficients = b[:-1] / scale
    return coefficients, float(b[-1] - X.mean(axis=0) @ coefficients)


@pytest.mark.parametrize("binary", [False, True], ids=["linear", "binary"])
@pytest.mark.parametrize("strength", [0.03, 0.1])
def test_a_fit_at_a_penalty_is_the_pooled_group_lasso(binary: bool, strength: float) -> None:
    table = draw_wards()
    estimator = FederatedLogisticLasso if binary else FederatedLasso
    model = estimator(penalty=strength, groups=["ward"])
    target = "sick" if binary else "y"
    sites = np.repeat(["a", "b", "c"], 80)
    model.fit(table.drop(columns=["y", "sick"]), table[target], sites=sites)
    found = np.ravel(model.coef_)
    expected, intercept = fit_slowly(encode(table), table[target].to_numpy(), strength, binary)
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max() + 1e-9)
    assert np.ravel(model.intercept_)[0] == pytest.approx(intercept, abs=1e-6)
    assert found[4:].all() or not found[4:].any()
    assert model.certificate_ is not None
    assert model.certificate_.relative_gap <= 1e-8
    assert model.model_.settings.model_name == "group Lasso"


def write(folder: Path, table: pd.DataFrame) -> list[str]:
    files = []
    for k, name in enumerate(["a", "b", "c"]):
        path = folder / f"{name}.csv"
        table.iloc[80 * k : 80 * (k + 1)].to_csv(path, index=False)
        files.append(str(path))
    return files


def test_levels_enter_together_from_files_and_python_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = draw_wards().drop(columns="sick")
    files = write(tmp_path, table)
    out = tmp_path / "model"
    options = ["--target", "y", "--groups", "ward,bmi+bmi2", "--out", str(out)]
    assert main(["fit", *files, *options]) == 0
    said = capsys.readouterr().out
    together = "selected together: ward=north + ward=south + ward=west (in the model); bmi + bmi2"
    assert together in said
    document = read_document(out / "model.json")
    assert document.settings.model_name == "group Lasso"
    used = {row.name for row in document.coefficients}
    assert {"ward=north", "ward=south", "ward=west"} <= used
    assert ("bmi" in used) == ("bmi2" in used)
    assert "Selected together: ward=north" in (out / "card.html").read_text()
    model = FederatedLasso(groups=["ward", ("bmi", "bmi2")])
    model.fit(table.drop(columns="y"), table.y, sites=np.repeat(["a", "b", "c"], 80))
    coefficients = dict(zip(model.columns_, model.coef_, strict=True))
    for row in document.coefficients:
        assert coefficients[row.name] == pytest.approx(row.value, rel=1e-9)
    path = model.path_
    for b in path.coefficients.T:
        assert b[4:].all() or not b[4:].any()


@pytest.mark.parametrize("family", ["poisson", "cox"])
def test_every_family_is_tuned_with_groups(family: str) -> None:
    X, y = draw(family)
    federation = connect(X, y, family)
    names = federation.columns
    groups = ((names[0], names[1]), (names[6], names[7], names[8]))
    model = fit_model(federation, Settings(family=family, groups=groups))
    b = model.coefficients
    assert isinstance(model.fit.penalty, GroupL1)
    assert b[:2].all()
    assert b[6:9].all() or not b[6:9].any()
    assert model.fit.certificate is not None
    assert model.fit.certificate.relative_gap <= 1e-8
    assert model.costs.trips <= 15


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"groups": (("x0", "x1"), ("x1",))}, "'x1' is in `groups` twice"),
        ({"groups": (("x0",),), "keep": ("x0",)}, "'x0' is kept without a penalty and is in"),
        ({"groups": (("x0",),), "l1_ratio": 0.5}, "neither bounds nor an elastic net"),
        ({"groups": (("x0",),), "bounds": {"x1": (0, None)}}, "neither bounds nor an elastic"),
        ({"groups": (("x0",),), "intervals": ("x1",)}, "are of single columns; omit `groups`"),
        ({"groups": (("x0",),), "procedure": "CD"}, "CD selects single columns"),
    ],
)
def test_what_groups_do_not_go_with_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(FedLassoError, match=words):
        Settings(**options)  # type: ignore[arg-type]


def test_a_group_of_a_column_that_nobody_has_is_refused() -> None:
    table = draw_wards().drop(columns="sick")
    for groups, words in ((["wrd"], "'wrd'"), ("ward", "groups is 'ward'; give a list")):
        with pytest.raises(FedLassoError, match=words):
            FederatedLasso(groups=groups).fit(table.drop(columns="y"), table.y)
