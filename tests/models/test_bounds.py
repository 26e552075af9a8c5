"""Bounds on coefficients from options and estimators to models, in the units of the columns."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.models.files import draw_frame, write_sites
from helpers.pools import Pool, solve
from helpers.responses import draw_response

from fedlasso import (
    FederatedCoxLasso,
    FederatedLasso,
    FederatedLogisticLasso,
    FederatedPoissonLasso,
)
from fedlasso.cli import main
from fedlasso.models import read_document
from fedlasso.numerics import L1, Array, Bounds

P = 5
SITES = np.arange(150) % 3
KINDS: dict[str, Any] = {
    "quadratic": FederatedLasso,
    "binomial": FederatedLogisticLasso,
    "poisson": FederatedPoissonLasso,
    "cox": FederatedCoxLasso,
}
BOUNDS = {"c0": (None, 0.3), "c1": (0, None), "c2": (-0.02, 0), 3: (-0.5, 0.01)}
LOWER = np.array([-np.inf, 0.0, -0.02, -0.5, -np.inf])
UPPER = np.array([0.3, np.inf, 0.0, 0.01, np.inf])


def draw(loss: str) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = 3 + rng.standard_normal((150, P)) * [1, 2, 20, 0.5, 1]
    eta = X[:, 0] - 3 - (X[:, 1] - 3) / 2 - (X[:, 2] - 3) / 30 + X[:, 3] - 3
    return X, draw_response(loss, eta, rng)


def as_given(loss: str, y: Array) -> Any:
    """A response as its estimator takes it."""
    if loss != "cox":
        return y
    pairs = zip(~np.signbit(y), np.abs(y), strict=True)
    return np.array(list(pairs), dtype="?,f8")


@pytest.mark.parametrize("loss", KINDS)
def test_bounds_are_per_unit_of_the_columns(loss: str) -> None:
    """Against an independent solver of columns that were standardised by hand."""
    X, y = draw(loss)
    frame = pd.DataFrame(X, columns=[f"c{k}" for k in range(P)])
    model = KINDS[loss](penalty=0.03, keep=["c1"], bounds=BOUNDS)
    model.fit(frame, as_given(loss, y), sites=SITES)
    assert model.model_.fit.method == "Newton"
    found = np.ravel(model.coef_)
    assert ((found >= LOWER) & (found <= UPPER)).all()
    assert found[[0, 3]].tolist() == [0.3, 0.01]
    scales = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / scales
    ends = (LOWER * scales, UPPER * scales)
    weights = np.array([1.0, 0.0, 1.0, 1.0, 1.0])
    if loss != "cox":
        Z = np.column_stack([Z, np.ones(len(y))])
        ends = (np.append(ends[0], -np.inf), np.append(ends[1], np.inf))
        weights = np.append(weights, 0.0)
    pool = Pool(loss, Z, y, np.ones(len(y)), np.zeros(len(y)), SITES)
    other = solve(pool, L1(0.03, weights, bounds=Bounds(*ends)))
    np.testing.assert_allclose(found * scales, other[:P], atol=1e-4)


@pytest.mark.standard
@pytest.mark.parametrize("loss", ["quadratic", "cox"])
def test_a_penalty_is_chosen_within_bounds(loss: str) -> None:
    X, y = draw(loss)
    positive = dict.fromkeys(range(P), (0, None))
    model = KINDS[loss](bounds=positive, cv=3).fit(X, as_given(loss, y), sites=SITES)
    found = np.ravel(model.coef_)
    assert (found >= 0).all()
    assert found[0] > 0
    assert model.model_.fit.curve is not None
    assert (model.model_.fit.curve.coefficients[:P] >= 0).all()
    # Without bounds some are negative, so these were of use.
    assert (np.ravel(KINDS[loss](cv=3).fit(X, as_given(loss, y), sites=SITES).coef_) < 0).any()


def test_bounds_that_leave_no_column_are_a_model_without_columns() -> None:
    X, y = draw("quadratic")
    none = dict.fromkeys(range(P), (0, 0))
    model = FederatedLasso(bounds=none, cv=3).fit(X, y, sites=SITES)
    assert not model.coef_.any()
    assert model.intercept_ == pytest.approx(y.mean())


def test_bounds_without_effect_change_next_to_nothing() -> None:
    X, y = draw("binomial")
    plain = FederatedLogisticLasso(penalty=0.02).fit(X, y, sites=SITES)
    wide = FederatedLogisticLasso(penalty=0.02, bounds=dict.fromkeys(range(P), (-99, 99)))
    np.testing.assert_allclose(wide.fit(X, y, sites=SITES).coef_, plain.coef_, atol=1e-7)


def test_files_are_fitted_within_bounds_and_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(path) for path in write_sites(tmp_path)]
    options = ["--target", "y", "--penalty", "0.05", "--keep", "ward"]
    ranges = ["--bounds", "ward=:0.5,ward=main=0:,age=0:0.7"]
    out = tmp_path / "model"
    assert main(["fit", *files, *options, *ranges, "--out", str(out)]) == 0
    words = "bounds on 3 columns; at a bound other than zero: age, ward=west"
    assert words in capsys.readouterr().out
    assert words.capitalize() in (out / "card.html").read_text()
    document = read_document(out / "model.json")
    found = {row.name: row.value for row in document.coefficients}
    assert (found["age"], found["ward=west"]) == (0.7, 0.5)
    assert found.get("ward=main", 0.0) >= 0.0
    assert document.settings.bounds == {
        "ward=main": (0.0, None),
        "ward=west": (None, 0.5),
        "age": (0.0, 0.7),
    }
    assert document.assessment is not None
    # Text is encoded with the first level as the baseline.
    assert sorted(draw_frame()["ward"].unique())[0] == "east"


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ("agee=0:", "no predictor is called 'agee'; did you mean 'age'?"),
        ("age=1:2", "the bounds of 'age' leave out zero"),
        ("age=:-1", "the bounds of 'age' leave out zero"),
        ("age=low:", "'age=low:' is not a range; write COLUMN=LOWER:UPPER"),
        ("age=nan:", "'age=nan:' is not a range"),
        ("age=0", "'age=0' is not a range"),
        ("=0:", "'=0:' is not a range"),
        ("age=0:,age=:1", "'age' has two ranges; give one"),
    ],
)
def test_bad_ranges_are_one_line_and_exit_code_two(
    ranges: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(path) for path in write_sites(tmp_path)]
    out = tmp_path / "model"
    assert main(["fit", *files, "--target", "y", "--bounds", ranges, "--out", str(out)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not out.exists()
