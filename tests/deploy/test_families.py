"""Classes, counts and survival times across doors: the same bytes, and a site's own rules."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.deploy.doors import Project, join_doors, make_doors
from helpers.governance.authority import Authority
from helpers.nets import FIT, KEY, SITES, same_files

from fedlasso import FedLassoError
from fedlasso.cli import main
from fedlasso.deploy.run import begin_plan, repeat_fit, run_plan
from fedlasso.fitting import Settings
from fedlasso.fitting.examination.assessment import Measure
from fedlasso.governance import Policy
from fedlasso.models import FitPlan, NetworkSource, read_document, write_model

OUTCOMES = ("yes", "count", "time", "dead", "weight", "offset", "fee", "cost")
ROLES: dict[str, dict[str, str]] = {
    "linear": {"target": "cost", "weights": "weight", "offset": "fee"},
    "binomial": {"target": "yes", "weights": "weight"},
    "poisson": {"target": "count", "offset": "offset"},
    "cox": {"time": "time", "event": "dead", "weights": "weight"},
}


def draw_patients(rows: int, seed: int) -> pd.DataFrame:
    """Predictors in the units that people write them in, and an outcome of every kind."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 91, rows),
            "systolic": rng.normal(135.0, 20.0, rows).clip(90.0, 200.0).round(),
            "days": rng.integers(1, 4001, rows),
            "smoker": rng.integers(0, 2, rows),
            "ward": np.resize(["east", "main", "west"], rows),
        }
    )
    risk = (frame["age"] - 55) / 20 + 0.5 * frame["smoker"]
    frame["yes"] = (risk + rng.logistic(size=rows) > 0).astype(int)
    frame["count"] = rng.poisson(np.exp(1.0 + 0.4 * risk))
    frame["time"] = (rng.exponential(900.0 * np.exp(-risk))).clip(1.0, 4000.0).round()
    frame["dead"] = (rng.uniform(size=rows) < 0.7) & (frame["time"] < 4000)
    frame["weight"] = rng.uniform(0.5, 2.0, rows)
    frame["offset"] = rng.normal(0.0, 0.1, rows)
    frame["fee"] = rng.normal(300.0, 50.0, rows)
    frame["cost"] = (frame["fee"] + 200 * risk + rng.normal(0.0, 100.0, rows)).round(2)
    return frame


def write_outcomes(folder: Path) -> dict[str, Path]:
    tables = {}
    for seed, site in enumerate(SITES):
        tables[site] = folder / f"{site}.csv"
        draw_patients(90 + 10 * seed, seed).to_csv(tables[site], index=False)
    return tables


@pytest.fixture
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files whose rows are not cut yet: the first fit of a file cuts them for all."""
    return write_outcomes(tmp_path_factory.mktemp("outcomes"))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Sites keep their keys, as they keep their audits."""
    return Authority(tmp_path_factory.mktemp("authority"))


def source_of(family: str, **more: Any) -> NetworkSource:
    roles = ROLES[family] | more
    drop = tuple(name for name in OUTCOMES if name not in roles.values())
    given: dict[str, Any] = {"drop": drop} | roles
    return NetworkSource("project", FIT, **given)


def settings_of(family: Any, **more: Any) -> Settings:
    return Settings(family=family, penalty=0.05, keep=("ward",), **more)


@pytest.mark.parametrize("masked", [False, True], ids=["clear", "masked"])
@pytest.mark.parametrize("family", ROLES)
def test_a_fit_across_doors_has_the_bytes_of_the_same_fit_here(
    family: Any, masked: bool, authority: Authority, tables: dict[str, Path], tmp_path: Path
) -> None:
    project = Project(tables, authority=authority if masked else None)
    out = tmp_path / "model"
    effects = family == "poisson"
    bounds = {"age": (None, 0.01), "ward=main": (-0.001, None)} if family == "cox" else {}
    settings = settings_of(family, site_effects=effects, bounds=bounds)
    begin_plan(out, FitPlan(settings, source_of(family)))
    document = run_plan(out, project.connect).document
    again = tmp_path / "again"
    keys = dict.fromkeys(tables, KEY)
    write_model(again, repeat_fit(read_document(out / "model.json"), tables, keys))
    assert same_files(out, again)
    assert {"ward=main", "ward=west"} <= {row.name for row in document.coefficients}
    # Rows are not split at a given penalty, so plain files have the same coefficients.
    options = [word for role, name in ROLES[family].items() for word in (f"--{role}", name)]
    options += ["--family", family, "--keep", "ward", "--penalty", "0.05", "--no-compare"]
    options += ["--site-effects"] if effects else []
    options += ["--bounds", "age=:0.01,ward=main=-0.001:"] if bounds else []
    options += ["--drop", ",".join(source_of(family).drop)]
    files = [str(path) for path in tables.values()]
    assert main(["fit", *files, *options, "--out", str(tmp_path / "files")]) == 0
    reported = (tmp_path / "files" / "coefficients.csv").read_bytes()
    assert reported == (out / "coefficients.csv").read_bytes()


@pytest.mark.standard
@pytest.mark.parametrize("family", ROLES)
def test_performance_across_doors_is_that_of_the_same_fit_here(
    family: Any, authority: Authority, tables: dict[str, Path], tmp_path: Path
) -> None:
    project = Project(tables, authority=authority)
    settings = Settings(family=family, penalty=0.05)
    begin_plan(tmp_path / "model", FitPlan(settings, source_of(family), compare=True))
    document = run_plan(tmp_path / "model", project.connect).document
    again = repeat_fit(document, tables, dict.fromkeys(tables, KEY), compare=True)
    assert document.assessment is not None
    assert again.assessment is not None
    assert (document.assessment.rows, document.assessment.left_out) == (300, ())
    # Masked sites do not answer alone, so that the variance of errors within sites is not known.
    assert again.assessment.error is not None
    error = Measure(again.assessment.error.value)
    assert replace(again.assessment, sites=(), error=error) == document.assessment


@pytest.mark.parametrize("masked", [False, True], ids=["clear", "masked"])
def test_weighted_rows_are_tuned_across_doors(
    masked: bool, authority: Authority, tables: dict[str, Path], tmp_path: Path
) -> None:
    """Second moments of weighted rows add up to weights, which are no whole numbers of rows."""
    project = Project(tables, authority=authority if masked else None)
    out = tmp_path / "model"
    begin_plan(out, FitPlan(Settings(cv=3), source_of("linear")))
    document = run_plan(out, project.connect).document
    assert document.plan.startswith("second moments of 3 folds")
    again = tmp_path / "again"
    keys = dict.fromkeys(tables, KEY)
    write_model(again, repeat_fit(read_document(out / "model.json"), tables, keys))
    assert same_files(out, again)


def refuse(tables: dict[str, Path], family: Any, policy: Policy, **more: Any) -> str:
    """What opening a fit is refused with."""
    network = join_doors(make_doors(tables, policy))
    with pytest.raises(FedLassoError) as caught:
        network.open(source_of(family, **more), settings_of(family))
    return str(caught.value)


def test_a_policy_hides_the_columns_of_an_outcome_as_any_other(tables: dict[str, Path]) -> None:
    shown = ["age", "systolic", "days", "smoker", "ward"]
    for family, roles in ROLES.items():
        for hidden in roles.values():
            others = [name for name in roles.values() if name != hidden]
            words = refuse(tables, family, Policy(columns=(*shown, *others)), drop=())
            assert words == f"site 'a' has no column {hidden!r}"
    # Somebody who knows the name anyway is told the same.
    door = make_doors(tables, Policy(columns=(*shown, "yes")))["a"]
    network = join_doors({"a": door, **make_doors({"b": tables["b"], "c": tables["c"]})})
    network.introduce()
    honest = network.introductions
    network.introduce = lambda: None  # type: ignore[method-assign]
    network.introductions = (honest[1], honest[1], honest[2])
    with pytest.raises(FedLassoError, match="site 'a': there is no column 'weight' here"):
        network.open(source_of("binomial", drop=()), settings_of("binomial"))


CELLS: list[tuple[str, str, Any]] = [
    ("binomial", "yes", lambda rows: np.arange(rows) < 3),
    ("cox", "dead", lambda rows: np.arange(rows) < 3),
    ("poisson", "offset", lambda rows: (np.arange(rows) < 2) * 9.0),
    ("cox", "weight", lambda rows: 1.0 + (np.arange(rows) < 2)),
]


@pytest.mark.parametrize(("family", "column", "few"), CELLS, ids=[c[1] for c in CELLS])
def test_few_events_classes_offsets_or_weights_are_not_told(
    family: str, column: str, few: Any, tmp_path: Path
) -> None:
    tables = write_outcomes(tmp_path)
    frame = pd.read_csv(tables["b"])
    frame[column] = few(len(frame)).astype(float)
    frame.to_csv(tables["b"], index=False)
    words = refuse(tables, family, Policy())
    assert words.startswith(f"site 'b': columns {column!r} differ from their commonest value in")


def test_a_target_that_differs_from_its_offset_in_few_rows_is_not_told(tmp_path: Path) -> None:
    tables = write_outcomes(tmp_path)
    frame = pd.read_csv(tables["b"])
    frame["cost"] = frame["fee"] + 9.0 * (np.arange(len(frame)) < 3)
    frame.to_csv(tables["b"], index=False)
    words = refuse(tables, "linear", Policy())
    assert words.startswith("site 'b': columns 'cost - fee' differ from their commonest value in")


def test_weights_that_single_out_few_rows_are_refused(tmp_path: Path) -> None:
    tables = write_outcomes(tmp_path)
    frame = pd.read_csv(tables["b"])
    frame["weight"] = np.exp(-np.arange(len(frame), dtype=float))
    frame.to_csv(tables["b"], index=False)
    words = refuse(tables, "binomial", Policy())
    assert words == (
        "site 'b': weights in 'weight' are so uneven that sums here would be those of fewer than "
        "20 rows; give others, or none"
    )


def test_a_bad_outcome_is_refused_at_the_site_without_a_value(tmp_path: Path) -> None:
    tables = write_outcomes(tmp_path)
    words = refuse(tables, "poisson", Policy(), target="ward", offset="offset")
    assert words == "site 'a': the target 'ward' is not numeric"
    words = refuse(tables, "binomial", Policy(), target="count")
    assert "site 'a': the target 'count' is neither 0 nor 1 in" in words
    for path in tables.values():
        frame = pd.read_csv(path)
        frame.assign(yes=1).to_csv(path, index=False)
    project = Project(tables)
    begin_plan(tmp_path / "model", FitPlan(settings_of("binomial"), source_of("binomial")))
    with pytest.raises(FedLassoError, match="the response is the same in all rows of all sites"):
        run_plan(tmp_path / "model", project.connect)


@pytest.mark.parametrize("masked", [False, True], ids=["clear", "masked"])
def test_a_target_of_two_texts_has_the_model_of_zeros_and_ones(
    masked: bool, authority: Authority, tables: dict[str, Path], tmp_path: Path
) -> None:
    texts = write_outcomes(tmp_path)
    for path in texts.values():
        frame = pd.read_csv(path)
        frame.assign(yes=frame["yes"].map({0: "None", 1: "Relapse"})).to_csv(path, index=False)
    said: list[str] = []
    models = []
    for number, (paths, positive) in enumerate(((tables, None), (texts, None), (texts, "None"))):
        out = tmp_path / f"model{number}"
        source = source_of("binomial", positive=positive)
        begin_plan(out, FitPlan(settings_of("binomial"), source))
        found = run_plan(
            out, Project(paths, authority=authority if masked else None).connect, notify=said.append
        )
        models.append(found.document)
    numbers, words, turned = models
    assert words.coefficients == numbers.coefficients
    assert (numbers.positive, words.positive, turned.positive) == (None, "Relapse", "None")
    values = {row.name: row.value for row in turned.coefficients}
    assert values == pytest.approx({row.name: -row.value for row in numbers.coefficients})
    assert said[0].startswith("notice: in the target 'yes', 'Relapse' is 1 and 'None' is 0")


def test_texts_that_differ_by_site_are_refused_without_a_value(tmp_path: Path) -> None:
    tables = write_outcomes(tmp_path)
    for path, words in zip(
        tables.values(), (("no", "yes"), ("no", "yes"), ("No", "Yes")), strict=True
    ):
        frame = pd.read_csv(path)
        frame.assign(yes=frame["yes"].map(dict(enumerate(words)))).to_csv(path, index=False)
    text = refuse(tables, "binomial", Policy())
    assert text.startswith("the target 'yes' holds 4 different texts in all files ('No', 'Yes'")
    frame = pd.read_csv(tables["c"])
    frame["yes"] = frame["yes"].str.lower()
    frame.loc[:2, "yes"] = "secret"
    frame.to_csv(tables["c"], index=False)
    text = refuse(tables, "binomial", Policy())
    assert text == "site 'c': the target 'yes' has rows outside its 2 agreed classes; correct them"
