"""Outcomes in files: what each family takes, and one clear line for what it does not."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest

from fedlasso import FedLassoError
from fedlasso.cli import main
from fedlasso.fitting import Settings
from fedlasso.models import FileSource, open_sites
from fedlasso.tables import Column, Outcome, Schema
from fedlasso.tables.targets import order_classes

pytestmark = pytest.mark.usefixtures("no_charts")

Change = Callable[[pd.DataFrame], pd.DataFrame]
OUTCOMES = ["yes", "count", "time", "dead", "weight", "offset"]


def draw_outcomes(rows: int = 40, seed: int = 0) -> pd.DataFrame:
    """Predictors, one of them text, and an outcome of every kind."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.standard_normal((rows, 3)), columns=["age", "dose", "noise"])
    frame["ward"] = np.resize(["east", "main", "west"], rows)
    frame["yes"] = (frame["age"] + rng.standard_normal(rows) > 0).astype(int)
    frame["count"] = rng.poisson(np.exp(0.5 * frame["dose"]))
    frame["time"] = rng.exponential(np.exp(-frame["age"])).round(2) + 0.01
    frame["dead"] = rng.uniform(size=rows) < 0.7
    frame["weight"] = rng.uniform(0.5, 2.0, rows)
    frame["offset"] = rng.normal(0.0, 0.1, rows)
    return frame


def options_of(family: str, **more: str) -> list[str]:
    """Options of a fit of one kind of outcome, all others left out."""
    given = {
        "linear": {"target": "age"},
        "binomial": {"target": "yes"},
        "poisson": {"target": "count"},
        "cox": {"time": "time", "event": "dead"},
    }[family] | more
    drop = [name for name in OUTCOMES if name not in given.values()]
    options = [word for role, name in given.items() for word in (f"--{role}", name)]
    return ["--family", family, *options, "--drop", ",".join(drop)]


def put(column: str, value: object, rows: int = 1) -> Change:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        frame[column] = frame[column].astype(object)
        frame.loc[: rows - 1, column] = value
        return frame

    return change


def everywhere(column: str, value: object) -> Change:
    return lambda frame: frame.assign(**{column: value})


BAD: list[tuple[list[str], Change, str]] = [
    (options_of("binomial"), put("yes", 2, 3),
     "site 'b': the target 'yes' is neither 0 nor 1 in 3 rows; code it as 0 and 1, or choose "
     "another --family"),
    (options_of("binomial"), put("yes", None),
     "site 'b': the target 'yes' is missing in 1 row; remove those rows"),
    (options_of("binomial"), everywhere("yes", "maybe"),
     "column 'yes' holds numbers in a.csv but texts in b.csv; use one type"),
    (options_of("poisson"), put("count", -1),
     "site 'b': the target 'count' is negative in 1 row; counts begin at zero: correct them"),
    (options_of("poisson"), put("count", "many"),
     "b.csv: the target 'count' is not numeric: it holds 'many'"),
    (options_of("cox"), put("time", -0.5, 2),
     "site 'b': the time column 'time' is negative in 2 rows; times begin at zero: correct them"),
    (options_of("cox"), put("time", None),
     "site 'b': the time column 'time' is missing in 1 row; remove those rows"),
    (options_of("cox"), put("time", "long"),
     "b.csv: the time column 'time' is not numeric: it holds 'long'"),
    (options_of("cox"), lambda f: f.assign(dead=f["dead"].astype(int) + 1),
     "site 'b': the event column 'dead' is neither 0 nor 1 in {ones} rows; code it as 1 (event) "
     "and 0 (censored)"),
    (options_of("cox"), put("dead", None),
     "site 'b': the event column 'dead' is missing in 1 row; remove those rows"),
    (options_of("linear", weights="weight"), put("weight", 0.0),
     "site 'b': the weights column 'weight' is not positive in 1 row; give positive weights, or "
     "remove those rows"),
    (options_of("binomial", weights="weight"), put("weight", None, 2),
     "site 'b': the weights column 'weight' is missing in 2 rows; remove those rows"),
    (options_of("poisson", offset="offset"), put("offset", np.inf),
     "site 'b': the offset column 'offset' is infinite in 1 row; correct or remove those rows"),
    (options_of("poisson", offset="offset"), put("offset", None),
     "site 'b': the offset column 'offset' is missing in 1 row; remove those rows"),
    (options_of("poisson", offset="exposure"), everywhere("age", 1.0),
     "a.csv has no column 'exposure'; its columns are 'age', 'dose', 'noise', 'ward', 'yes', "
     "'count' and 4 more"),
    ([*options_of("binomial"), "--keep", "agee"], everywhere("age", 1.0),
     "no predictor is called 'agee'; did you mean 'age'?"),
    ([*options_of("binomial"), "--keep", "yes"], everywhere("age", 1.0),
     "no predictor is called 'yes'; its columns are 'age', 'dose', 'noise', 'ward=main', "
     "'ward=west'"),
]  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate("ab"):
        draw_outcomes(seed=seed).to_csv(f"{name}.csv", index=False)
    return tmp_path


def fit(*options: str) -> int:
    command = ["fit", "a.csv", "b.csv", *options, "--penalty", "0.02", "--no-compare"]
    return main([*command, "--out", "model"])


@pytest.mark.parametrize(("options", "change", "message"), BAD, ids=[b[2][:60] for b in BAD])
def test_a_bad_outcome_is_one_clear_line(
    here: Path,
    options: list[str],
    change: Change,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    frame = change(draw_outcomes(seed=1))
    frame.to_csv("b.csv", index=False)
    if "{ones}" in message:
        message = message.replace("{ones}", str(int((frame["dead"] == 2).sum())))
    assert fit(*options) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if ": read " not in line]
    assert lines == [f"fedlasso: {message}"]
    assert not Path("model").exists()


ALIKE: list[tuple[str, Change, str]] = [
    ("binomial", everywhere("yes", 1),
     "the target 'yes' is 1 in every row of every site, so there is nothing to fit; choose another "
     "target"),
    ("poisson", everywhere("count", 0),
     "the target 'count' is 0 in every row of every site, so there is nothing to fit; choose "
     "another target"),
    ("cox", everywhere("dead", False),
     "the event column 'dead' is 0 in every row of every site, so there is nothing to fit; is 1 "
     "an event there?"),
]  # fmt: skip
AT_ONE = {
    "binomial": "fedlasso: notice: site 'b': the target 'yes' is 1 in every row",
    "cox": "fedlasso: notice: site 'b' has no event in 'dead'; it does not inform the coefficients",
}


@pytest.mark.parametrize(("family", "change", "message"), ALIKE, ids=[a[0] for a in ALIKE])
def test_an_outcome_that_never_varies_is_refused_everywhere_and_noticed_at_one_site(
    here: Path, family: str, change: Change, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change(draw_outcomes(seed=1)).to_csv("b.csv", index=False)
    assert fit(*options_of(family)) == 0
    said = capsys.readouterr().err.splitlines()
    assert AT_ONE.get(family, said[0]) in said
    change(draw_outcomes(seed=0)).to_csv("a.csv", index=False)
    assert main(["fit", "a.csv", "b.csv", *options_of(family), "--out", "other"]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"fedlasso: {message}"


def test_two_texts_are_classes_and_more_are_refused(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed, name in enumerate("ab"):
        frame = draw_outcomes(seed=seed)
        frame.assign(yes=frame["yes"].map({0: "no", 1: "yes"})).to_csv(f"{name}.csv", index=False)
    source = FileSource(("a.csv", "b.csv"), "yes", drop=("count", "time", "dead"))
    said: list[str] = []
    sites, schema = open_sites(source, Settings(family="binomial"), notify=said.append)
    assert schema.classes == ("no", "yes")
    assert said[0] == (
        "notice: in the target 'yes', 'yes' is 1 and 'no' is 0; --positive chooses the other one"
    )
    assert sites.loss == "binomial"
    frame.assign(yes="perhaps").to_csv("b.csv", index=False)
    with pytest.raises(FedLassoError) as caught:
        open_sites(source, Settings(family="binomial"))
    assert str(caught.value) == (
        "the target 'yes' holds 3 different texts in all files ('no', 'perhaps', 'yes'), "
        "but --family binomial needs two; group them, or code it as 0 and 1"
    )


EVENTS = [
    (("yes", "no"), None, "yes"),
    (("Yes", "no"), None, "Yes"),
    (("FALSE", "TRUE"), None, "TRUE"),
    (("case", "control"), None, "case"),
    (("alive", "dead"), None, "dead"),
    (("benign", "spread"), None, "spread"),
    (("left", "right"), None, "right"),
    (("yes", "no"), "no", "no"),
]


@pytest.mark.parametrize(("texts", "positive", "one"), EVENTS)
def test_the_event_is_1_whatever_the_alphabet(
    texts: tuple[str, str], positive: str | None, one: str
) -> None:
    outcome = Outcome("died", family="binomial")
    assert order_classes(outcome, texts, positive)[1] == one


def test_positive_chooses_the_class_that_is_1(here: Path) -> None:
    for seed, name in enumerate("ab"):
        frame = draw_outcomes(seed=seed)
        frame.assign(yes=frame["yes"] + 1).to_csv(f"{name}.csv", index=False)
    source = FileSource(
        files=("a.csv", "b.csv"), target="yes", drop=("count", "time", "dead"), positive="2"
    )
    _, schema = open_sites(source, Settings(family="binomial"))
    assert schema.classes == ("1", "2")
    with pytest.raises(FedLassoError, match="the target 'yes' never is '3'; use --positive with"):
        open_sites(msgspec.structs.replace(source, positive="3"), Settings(family="binomial"))
    with pytest.raises(FedLassoError, match="--positive is for two classes"):
        open_sites(source, Settings())


CONTRADICTIONS = [
    (["--family", "cox", "--target", "yes"],
     "--family cox takes --time and --event; omit --target"),
    (["--family", "cox", "--time", "time"],
     "--family cox takes two columns: --time NAME, and --event NAME, which is 1 for an event and "
     "0 for a censored time"),
    (["--target", "yes", "--time", "time"],
     "--time is for survival times; use --family cox, or omit it"),
    (["--family", "binomial", "--target", "yes", "--event", "dead"],
     "--event is for survival times; use --family cox, or omit it"),
    (["--family", "poisson"], "name the column to predict: --target NAME"),
    (["--target", "yes", "--weights", "yes"],
     "column 'yes' is named by --target and by --weights; choose one"),
    (["--target", "yes", "--weights", "weight", "--drop", "weight"],
     "column 'weight' is named by --drop and by --weights; choose one"),
    (["--target", "yes", "--ties", "breslow"],
     "--ties has no effect here: ties are those of survival times (--family cox); omit --ties"),
    (["--family", "cox", "--time", "time", "--event", "dead", "--site-effects"],
     "survival times have a baseline hazard per site already; leave site effects out"),
    (["--target", "yes", "--no-intercept", "--site-effects"],
     "--site-effects requires an intercept; omit one of the two"),
    (["--target", "yes", "--l1-ratio", "2"],
     "--l1-ratio is 2.0; give a fraction above 0, and 1 for the Lasso"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), CONTRADICTIONS, ids=[c[1] for c in CONTRADICTIONS])
def test_options_that_contradict_each_other_are_refused(
    here: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fit(*options) == 2
    assert capsys.readouterr().err == f"fedlasso: {message}\n"
    assert not Path("model").exists()


def test_a_text_column_is_kept_with_all_its_levels() -> None:
    schema = Schema("y", (Column("age", "number"), Column("ward", "text", ("a", "b", "c"))))
    assert schema.encode_names(["ward", "age"]) == ("ward=b", "ward=c", "age")
    assert schema.encode_names(["ward=c", "ward"]) == ("ward=c", "ward=b")


def test_a_text_target_without_a_family_names_the_family(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = draw_outcomes(seed=0)
    texts["yes"] = texts["yes"].map({0: "no", 1: "Yes"})
    texts.drop(columns=["count", "time", "dead"]).to_csv("texts.csv", index=False)
    assert main(["fit", "texts.csv", "--target", "yes", "--out", "one"]) == 2
    remedy = "if it has two classes, use --family binomial"
    assert f"the target 'yes' is not numeric: it holds 'Yes'; {remedy}" in capsys.readouterr().err


def test_progress_counts_several_files_and_a_plan_states_only_requested_bounds(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    how = ["--target", "yes", "--family", "binomial", "--drop", "count,time,dead"]
    assert main(["fit", "a.csv", *how, "--out", "one", "--no-compare"]) == 0
    printed = capsys.readouterr().err.splitlines()
    rows = len(draw_outcomes(seed=0))
    assert f"fedlasso: read a: {rows} rows" in printed
    plans = [line.partition(" (")[0] for line in printed if "plan" in line]
    assert plans == ["fedlasso: plan: gradients along a path on 5 folds"]
    bounded = ["--uploads", "400", "--out", "two", "--no-compare"]
    assert main(["fit", "a.csv", "b.csv", *how, *bounded]) == 0
    printed = capsys.readouterr().err.splitlines()
    assert f"fedlasso: read a: {rows} rows (1 of 2 files)" in printed
    assert any("at most 400 vectors of" in line for line in printed)
