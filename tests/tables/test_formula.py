"""Formulas: derived columns that every site computes alone, the same as from pooled records."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from formulaic import model_matrix
from helpers.nets import run
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from fedlasso import FederatedCoxLasso, FederatedLasso, FederatedLogisticLasso, FedLassoError
from fedlasso.models import read_document
from fedlasso.tables.formula import natural_spline, parse_formula

FORMULA = "relapse ~ age*sex + ns(bmi, 3) + C(ward) + log(age) + I(age**2)"
KNOTS = {"bmi": (20.0, 25.0, 30.0, 35.0)}


def draw(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(60, 8, rows).round(1),
            "sex": rng.choice(["f", "m"], rows),
            "bmi": rng.normal(27, 4, rows).round(1),
            "ward": rng.integers(1, 4, rows),
            "hospital": rng.choice(["north", "south"], rows),
            "note": "not in the formula",
        }
    )
    # One site has no row of one ward.
    frame.loc[(frame["hospital"] == "north") & (frame["ward"] == 3), "ward"] = 1
    eta = 0.1 * (frame["age"] - 60) * (frame["sex"] == "m") + (frame["ward"] == 2)
    frame["relapse"] = np.where(rng.uniform(size=rows) < 1 / (1 + np.exp(-eta)), "yes", "no")
    return frame


def pooled_design(frame: pd.DataFrame) -> pd.DataFrame:
    """The same columns from pooled records, with formulaic's splines of the same knots."""
    spline = "cr(bmi, knots=(25, 30), lower_bound=20, upper_bound=35, extrapolation='extend')"
    right = f"age*sex + {spline} + C(ward) + log(age) + I(age**2)"
    return pd.DataFrame(model_matrix(right, frame)).drop(columns="Intercept")


def test_a_fit_by_formula_is_the_pooled_fit_of_the_same_columns() -> None:
    frame = draw()
    model = FederatedLogisticLasso(penalty=0.01)
    model.fit(frame, sites="hospital", formula=FORMULA, knots=KNOTS)
    bmi = natural_spline(frame["bmi"].to_numpy(), KNOTS["bmi"])
    sex, ward = frame["sex"] == "m", frame["ward"]
    age = frame["age"]
    design = np.column_stack(
        [age, sex, bmi, ward == 2, ward == 3, np.log(age), age**2, age * sex]
    ).astype(float)  # fmt: skip
    scaler = StandardScaler().fit(design)
    pooled = LogisticRegression(
        l1_ratio=1.0, C=1 / (0.01 * len(frame)), solver="saga", tol=1e-10, max_iter=200_000
    ).fit(scaler.transform(design), frame["relapse"] == "yes")
    assert model.columns_ == (
        "age", "sex[T.m]", "ns(bmi, 3)[1]", "ns(bmi, 3)[2]", "ns(bmi, 3)[3]", "C(ward)[T.2]",
        "C(ward)[T.3]", "log(age)", "I(age ** 2)", "age:sex[T.m]",
    )  # fmt: skip
    chance = pooled.predict_proba(scaler.transform(design))
    np.testing.assert_allclose(model.predict_proba(frame), chance, atol=1e-4)
    # New rows need the columns of the formula only, one at a time.
    one = frame.loc[[7], ["ward", "bmi", "sex", "age"]]
    np.testing.assert_allclose(model.predict_proba(one), model.predict_proba(frame)[[7]])


def test_splines_span_natural_cubic_splines_and_are_linear_outside() -> None:
    x = np.linspace(10, 45, 200)
    own = natural_spline(x, KNOTS["bmi"])
    other = pooled_design(draw().iloc[:200].assign(bmi=x)).filter(like="cr(").to_numpy()
    basis = np.column_stack([np.ones_like(x), other])
    left = own - basis @ np.linalg.lstsq(basis, own, rcond=None)[0]
    assert np.abs(left).max() < 1e-8
    assert np.linalg.matrix_rank(own) == 3
    outside = natural_spline(np.array([40.0, 41.0, 42.0, 5.0, 6.0, 7.0]), KNOTS["bmi"])
    np.testing.assert_allclose(np.diff(outside, 2, axis=0)[[0, 3]], 0, atol=1e-9)


def test_terms_may_be_kept_and_bounded_by_name() -> None:
    frame = draw()
    model = FederatedLogisticLasso(penalty=0.2, keep=["ns(bmi, 3)"], bounds={"age": (0, None)})
    model.fit(frame, sites="hospital", formula="relapse ~ age + ns(bmi, 3)", knots=KNOTS)
    assert list(np.flatnonzero(model.coef_)) == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("ward", ["C(ward)[T.2]", "C(ward)[T.3]"]),
        ("C( ward )", ["C(ward)[T.2]", "C(ward)[T.3]"]),
        ("ns(bmi,3)", ["ns(bmi, 3)[1]", "ns(bmi, 3)[2]", "ns(bmi, 3)[3]"]),
        ("bmi", ["ns(bmi, 3)[1]", "ns(bmi, 3)[2]", "ns(bmi, 3)[3]"]),
        ("sex", ["sex[T.m]"]),
        ("age", ["age"]),
        ("age : sex", ["age:sex[T.m]"]),
    ],
)
def test_terms_are_found_with_other_spaces_and_by_their_variable(
    name: str, columns: list[str]
) -> None:
    formula = "relapse ~ age*sex + ns(bmi,3) + C(ward) + np.log(age)"
    model = FederatedLogisticLasso(penalty=0.1, groups=[name])
    model.fit(draw(), sites="hospital", formula=formula, knots=KNOTS)
    assert model.model_.requested.groups == (tuple(columns),)


def test_a_variable_of_several_terms_names_none() -> None:
    model = FederatedLogisticLasso(penalty=0.1, keep=["bmi"])
    with pytest.raises(FedLassoError, match="no predictor is called 'bmi'"):
        model.fit(draw(), sites="hospital", formula="relapse ~ log(bmi) + sqrt(bmi)")


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("relapse ~ scale(age)", "scale(age) in the formula needs the records of all sites"),
        ("relapse ~ bs(bmi, df=4)", "use ns with knots"),
        ("relapse ~ I(age - np.mean(age))", "is no function of one row that sites know; use log"),
        ("relapse ~ age + offset(log(bmi))", "is no term; give a column with these values by the"),
        ("relapse ~ ns(bmi, 3)", "quantiles of 'bmi' need the records of all sites; give the"),
        ("relapse ~ ns(bmi, 4, knots=(20, 25, 30, 35))", "has 5 knots, both ends included, and 4"),
        ("relapse ~ ns(bmi, knots=(20, 10, 30))", "give three or more, increasing"),
        ("relapse ~ C(ward, Sum)", "write C(column) or ns(column, 3)"),
        ("relapse ~ log(age - 60)", "is no number in"),
        ("relapse ~ age - 1", "has no intercept or several parts"),
        ("relapse ~ age[0]", "is more than functions and arithmetic; compute this column before"),
        ("relapse ~ age + (", "cannot be read: Could not find matching context marker"),
        ("relapse ~ 1", "names no column on its right side"),
        ("relapse", "lacks a side; write response ~ columns"),
        ("log(relapse) ~ age", "neither a column nor Surv(time, event)"),
        ("relapse ~ agee", "no column 'agee' of the formula"),
    ],
)
def test_what_sites_cannot_compute_alone_is_refused(formula: str, message: str) -> None:
    with pytest.raises(FedLassoError) as caught:
        FederatedLogisticLasso(penalty=0.1).fit(draw(), sites="hospital", formula=formula)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_formulas_and_knots_are_about_data_frames() -> None:
    X = np.eye(4)
    with pytest.raises(FedLassoError, match="give a data frame"):
        FederatedLasso().fit(X, formula="y ~ x")
    with pytest.raises(FedLassoError, match="the formula names the response; omit y"):
        FederatedLasso().fit(draw(), [1] * 300, formula="bmi ~ age")
    with pytest.raises(FedLassoError, match="knots are those of a formula"):
        FederatedLasso().fit(X, [1, 2, 3, 4], knots=KNOTS)
    with pytest.raises(FedLassoError, match="knots are given for 'age', which is not"):
        FederatedLasso().fit(draw(), formula="bmi ~ ward", knots={"age": (1, 2, 3)})


def test_columns_of_a_formula_may_be_given_by_name() -> None:
    frame = draw().assign(years=2.0, days=np.arange(300.0) % 7, **{"body mass": 1 / 3})
    frame["body mass"] *= frame["bmi"]
    frame["patient"] = np.arange(300) // 2
    named = {"sample_weight": "years", "offset": "days", "clusters": "patient"}
    model = FederatedLogisticLasso(penalty=0.01)
    model.fit(frame.drop(columns="note"), sites="hospital", formula="relapse ~ .", **named)
    assert model.formula_ == "relapse ~ (age + sex + bmi + ward + `body mass`)"
    columns = frame[["age", "sex", "bmi", "ward", "body mass"]]
    same = FederatedLogisticLasso(penalty=0.01)
    rows = {own: frame[name] for own, name in named.items()}
    same.fit(columns, frame["relapse"], sites=frame["hospital"], **rows)
    np.testing.assert_allclose(model.coef_, same.coef_)
    by_name = model.predict_proba(frame, offset="days")
    np.testing.assert_array_equal(by_name, model.predict_proba(frame, offset=frame["days"]))
    for name in ("sites", *named):
        with pytest.raises(FedLassoError, match=f"{name} is 'days'; give one value per row"):
            same.fit(columns, frame["relapse"], **{name: "days"})
    with pytest.raises(FedLassoError, match="has a dot, which stands for all other columns of a"):
        parse_formula("relapse ~ .")


def test_missing_values_stay_missing_in_derived_columns() -> None:
    frame = draw()
    frame.loc[3, "sex"] = None
    frame.loc[5, "age"] = np.nan
    formula = "relapse ~ age:sex + ward"
    with pytest.raises(FedLassoError, match="contains NaN"):
        FederatedLogisticLasso(penalty=0.01).fit(frame, sites="hospital", formula=formula)
    model = FederatedLogisticLasso(penalty=0.01, missing="mean")
    model.fit(frame, sites="hospital", formula=formula)
    known = frame.drop(index=[3, 5])
    product = known["age"] * (known["sex"] == "m")
    # Without main effects there is a column per level.
    place = model.columns_.index("age:sex[m]")
    assert model._means[place] == pytest.approx(product.mean())


def test_survival_has_two_columns_on_the_left() -> None:
    rng = np.random.default_rng(0)
    frame = draw().assign(days=rng.exponential(10, 300), died=rng.integers(0, 2, 300))
    formula = "Surv(days, died) ~ age + sex"
    assert parse_formula(formula).roles == {"time": "days", "event": "died"}
    model = FederatedCoxLasso(penalty=0.001).fit(frame, sites="hospital", formula=formula)
    y = np.column_stack([frame["died"], frame["days"]])
    same = FederatedCoxLasso(penalty=0.001).fit(frame[["age", "sex"]], y, frame["hospital"])
    np.testing.assert_allclose(model.coef_, same.coef_)


@pytest.mark.usefixtures("no_charts")
def test_the_command_line_has_the_same_columns_and_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = draw()
    files = []
    for site, own in frame.groupby("hospital"):
        files.append(str(tmp_path / f"{site}.csv"))
        own.drop(columns="hospital").to_csv(files[-1], index=False)
    out = tmp_path / "model"
    options: list[Any] = ["--formula", FORMULA, "--knots", "bmi=20:25:30:35", "--penalty", 0.01]
    assert run("fit", *files, "--family", "binomial", *options, "--out", out) == 0
    document = read_document(out / "model.json")
    model = FederatedLogisticLasso(penalty=0.01)
    model.fit(frame, sites="hospital", formula=FORMULA, knots=KNOTS)
    back = FederatedLogisticLasso.from_folder(out)
    assert document.schema.encoded == model.columns_ == back.columns_
    np.testing.assert_allclose(back.coef_, model.coef_, atol=1e-7)
    np.testing.assert_allclose(back.predict_proba(frame), model.predict_proba(frame), atol=1e-7)
    assert run("predict", out, files[0], "--out", tmp_path / "new.csv") == 0
    own = frame[frame["hospital"] == "north"]
    predicted = pd.read_csv(tmp_path / "new.csv")["prediction"]
    np.testing.assert_allclose(predicted, model.predict_proba(own)[:, 1], atol=1e-7)
    assert run("fit", *files, *options, "--target", "age", "--out", tmp_path / "other")
    assert "--formula names the response; omit --target" in capsys.readouterr().err
