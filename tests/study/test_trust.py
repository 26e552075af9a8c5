"""The study of trust: its draws, what it measures, and what it says."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from fedlasso import InProcess
from fedlasso.cli import main
from fedlasso.errors import FedLassoError
from fedlasso.fitting import Settings, fit_model
from fedlasso.fitting.inference.estimates import Estimates
from fedlasso.study import SCENARIOS, Scenario, Store
from fedlasso.study.trust import (
    METHODS,
    PER_KIND,
    TrustStudy,
    TrustTrial,
    check_intervals,
    interval_columns,
    judge_selection,
    judge_units,
)
from fedlasso.study.trust_summary import (
    BEST,
    MANY,
    ONE,
    OURS,
    trust_conclusions,
    trust_differences,
    trust_lines,
    trust_means,
)

FEW = Scenario("few", sizes=(60, 60), p=30, nonzeros=4, snr=3.0, validation=40, test=10)


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """Two replicates of a small scenario."""
    study = TrustStudy(seed=5)
    return pd.DataFrame([*study.replicate(FEW, 0), *study.replicate(FEW, 1)])


@pytest.mark.standard
def test_a_replicate_has_every_method_and_rate(rows: pd.DataFrame) -> None:
    cells = ["replicate", "method", "rate"]
    assert len(rows) == 2 * len(METHODS) * 2
    assert not rows.duplicated(cells).any()
    ours = rows[rows["method"] == OURS]
    assert (
        ours[["coverage_nonzero", "coverage_zero", "coverage_near", "width_named"]]
        .notna()
        .all(axis=None)
    )
    assert rows.loc[rows["method"] != OURS, "coverage_zero"].isna().all()
    again = pd.DataFrame(TrustStudy(seed=5).replicate(FEW, 1))
    expected = rows[rows["replicate"] == 1].reset_index(drop=True)
    pd.testing.assert_frame_equal(expected, again[expected.columns])


@pytest.mark.full
def test_one_fit_serves_both_rates_as_two_fits_would() -> None:
    more = 0
    for number in range(8):
        trial = TrustTrial.draw(replace(FEW, snr=0.4), "linear", 5, number)
        small, large = trial.discover((0.1, 0.2))
        (alone,) = trial.discover((0.1,))
        assert alone.pop("method") == small.pop("method")
        for name in ("uploads", "upload_bytes", "download_bytes"):
            del alone[name]
        assert {name: small[name] for name in alone} == pytest.approx(alone, rel=1e-9)
        more += small["active"] != large["active"]
    assert more, "no draw tells the two rates apart"


def test_what_is_measured_is_what_a_fit_by_hand_finds() -> None:
    draw = FEW.draw(FEW.generator(5, 0))
    trial = TrustTrial.draw(FEW, "linear", 5, 0)
    assert sum(site.rows for site in trial.sites) == 200
    named = interval_columns(draw.truth)
    columns = tuple(f"x{k}" for k in sorted(np.concatenate(list(named.values()))))
    settings = Settings(goal="discoveries", fdr=0.2, cv=5, intervals=columns)
    model = fit_model(InProcess(trial.sites), settings)
    assert model.trust is not None
    assert model.trust.found is not None
    assert model.trust.named is not None
    (record,) = trial.discover((0.2,))
    found = set(model.trust.found.columns)
    true = set(np.flatnonzero(draw.truth))
    assert record["active"] == len(found)
    assert record["recall"] == len(found & true) / 4
    assert record["fdp"] == len(found - true) / max(len(found), 1)
    factors = model.scaling.factors
    hits = []
    for place, (low, high) in zip(
        model.trust.named.columns, model.trust.named.intervals(), strict=True
    ):
        if place in named["nonzero"]:
            hits.append(low * factors[place] <= draw.truth[place] <= high * factors[place])
    assert record["coverage_nonzero"] == np.mean(hits)
    sent = model.costs.total().upload / (8 * 30 * 2)
    assert record["uploads"] == pytest.approx(sent)


def test_columns_are_named_by_what_stands_beside_them() -> None:
    truth = np.zeros(200)
    truth[[3, 4, 10, 199]] = 1.0
    named = interval_columns(truth)
    assert named["nonzero"].tolist() == [3, 4, 10, 199]
    assert named["near"].tolist() == [2, 5, 9, 11, 198]
    assert named["zero"].tolist()[:5] == [0, 1, 6, 7, 8]
    assert len(named["zero"]) == PER_KIND


def test_a_selection_is_judged_by_the_truth() -> None:
    truth = np.array([1.0, -1.0, 0.0, 0.0])
    record = judge_selection(np.array([True, False, True, False]), truth)
    assert record == {"fdp": 0.5, "recall": 0.5, "f1": 0.5, "active": 2}
    assert judge_selection(np.zeros(4, dtype=bool), truth)["fdp"] == 0.0


def test_a_group_is_false_if_none_of_its_columns_has_an_effect() -> None:
    truth = np.array([1.0, -1.0, 0.0, 0.0, 0.0])
    record = judge_units([(0,), (1, 2), (3, 4), (2,)], truth)
    assert record == {"fdp": 0.5, "recall": 1.0, "f1": pytest.approx(2 / 3), "active": 4}
    # Two true columns in one group are one discovery.
    assert judge_units([(0, 1)], truth)["recall"] == 0.5
    assert judge_units([], truth) == {"fdp": 0.0, "recall": 0.0, "f1": 0.0, "active": 0}


def test_coverage_counts_the_intervals_that_are_given() -> None:
    errors = np.array([0.1, np.nan, 0.1, np.nan])
    estimates = Estimates(np.arange(4), np.array([1.0, 5.0, 5.0, np.nan]), errors, 4)
    checked = check_intervals(estimates, np.ones(4))
    assert checked == {"coverage": 0.5, "width": pytest.approx(0.392, abs=1e-3), "not_given": 0.5}
    nothing = check_intervals(estimates.take(np.isnan(errors)), np.ones(4))
    assert nothing == {"coverage": None, "width": None, "not_given": 1.0}


@pytest.mark.standard
def test_every_fit_of_visits_without_clusters_is_marked() -> None:
    study = TrustStudy(seed=5, methods=(OURS,), rates=(0.1,))
    for name, marked in (("unnamed-visits", 1.0), ("repeated-visits", 0.0)):
        scenario = study.scenarios[name]
        records = [study.replicate(scenario, number)[0] for number in range(3)]
        assert [record["flagged"] for record in records] == [marked] * 3


@pytest.mark.standard
def test_fits_of_corrupted_rows_are_marked() -> None:
    """Most of them: a mark is by three random models, and the draws were not chosen for it."""
    study = TrustStudy(seed=5, methods=(OURS,), rates=(0.1,))
    scenario = study.scenarios["corrupted-rows"]
    flagged = [study.replicate(scenario, number)[0]["flagged"] for number in range(4)]
    assert flagged.count(1.0) >= 3


@pytest.mark.full
@pytest.mark.parametrize("family", ["binomial", "cox"])
def test_intervals_of_nonzero_columns_cover_in_other_families_too(family: str) -> None:
    """Of 120 independent 95% intervals, fewer cover only with a probability of 1e-4."""
    cell = replace(TrustStudy().scenarios["shifted-sites"], name="plain", design="", p=20)
    study = TrustStudy(seed=5, families=(family,), methods=(OURS,), rates=(0.1,))
    records = [study.replicate(cell, number)[0] for number in range(12)]
    assert all(record["not_given"] == 0 for record in records)
    coverage = pd.DataFrame(records)["coverage_nonzero"].mean()
    assert 120 * coverage >= binom.ppf(1e-4, 120, 0.95)


def test_scenarios_that_fits_mark_themselves_are_counted_apart() -> None:
    rows = records()
    ours = rows["method"] == OURS
    rows["flagged"] = np.where(ours, (rows["scenario"] == "weak-signal") * 1.0, np.nan)
    rows["not_given"] = np.where(ours, (rows["scenario"] == "weak-signal") * 0.25, np.nan)
    first, *_, last = trust_conclusions(rows)
    assert (
        "standard errors in 1 of 1 scenarios, apart from 1 where fits state that they cannot "
        "promise it; one split in 2" in first
    )
    assert last == (
        "Linear, q = 0.1: every named column has an interval in 1 of 2 scenarios (not in Weak "
        "signal: fraction without 0.250, SE 0.000)."
    )


@pytest.mark.standard
def test_curved_losses_are_fitted_at_every_rate_and_not_split() -> None:
    study = TrustStudy(seed=5, families=("binomial",))
    rows = pd.DataFrame(study.replicate(replace(FEW, sizes=(150, 150)), 0))
    assert rows[["family", "method"]].drop_duplicates().to_numpy().tolist() == [["binomial", OURS]]
    assert rows["rate"].tolist() == [0.1, 0.2]
    assert rows["coverage_nonzero"].notna().all()


def test_it_has_the_twelve_scenarios_and_its_own() -> None:
    own = TrustStudy().scenarios
    assert list(own)[:12] == list(SCENARIOS)
    assert {"dense-truth", "near-collinear", "twenty-sites", "unequal-noise"} < set(own)
    assert own["heavy-tails"].tails == 3.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"families": ("gamma",)}, "no 'gamma' among its families"),
        ({"methods": ("knockoffs",)}, "no 'knockoffs' among its methods"),
        ({"rates": (0.1, 1.0)}, "rates is"),
    ],
)
def test_wishes_that_make_no_sense_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(FedLassoError, match=message):
        TrustStudy(**settings)  # type: ignore[arg-type]


def test_sites_with_truths_of_their_own_are_refused() -> None:
    with pytest.raises(FedLassoError, match="has deviations"):
        TrustStudy().replicate(replace(FEW, deviations=2), 0)


def records() -> pd.DataFrame:
    """Two scenarios of two replicates, where promises are kept in one and broken in the other."""
    shares = {
        # Mean share of false columns and power by method, in the first and the second scenario.
        OURS: ((0.08, 0.8), (0.30, 0.4)),
        ONE: ((0.10, 0.7), (0.10, 0.5)),
        MANY: ((0.05, 0.9), (0.05, 0.5)),
        BEST: ((0.09, 0.82), (0.09, 0.6)),
    }
    return pd.DataFrame(
        {
            "scenario": scenario, "family": "linear", "rate": 0.1, "method": method,
            "replicate": number, "fdp": fdp + 0.01 * number, "recall": power + 0.02 * number,
            "f1": 0.5, "active": 10, "uploads": 7.0,
            "coverage_zero": 0.95 - 0.1 * place if method == OURS else None,
        }
        for method, cells in shares.items()
        for place, (scenario, (fdp, power)) in enumerate(
            zip(("baseline", "weak-signal"), cells, strict=True)
        )
        for number in range(2)
    )  # fmt: skip


def test_promises_are_counted_and_those_broken_are_told() -> None:
    table = trust_means(records()).set_index(["method", "scenario"])
    assert table.loc[(OURS, "baseline"), "fdp"] == pytest.approx(0.085)
    assert table.loc[(OURS, "baseline"), "fdp_se"] == pytest.approx(0.005)
    assert table["kept"].tolist() == [True, False, True, True, True, True, True, True]
    differences = trust_differences(records()).set_index("scenario")
    assert differences["recall"].tolist() == pytest.approx([0.1, -0.1])
    assert differences["recall_se"].tolist() == pytest.approx([0.0, 0.0])
    assert trust_conclusions(records()) == [
        "Linear, q = 0.1: the mean false discovery proportion of the goal 'discoveries' is at most "
        "q plus 2 standard errors in 1 of 2 scenarios (not in Weak signal: 0.305, SE 0.005); one "
        "split in 2, 20 splits in 2.",
        "Linear, q = 0.1: the goal 'discoveries' has at least the power of one split in 1 of 2 "
        "scenarios (not in Weak signal: difference −0.100, SE 0.000).",
        "Linear, q = 0.1: the goal 'discoveries' has at least 0.9 times the power of rivals that "
        "keep their rate: 20 splits in 0 of 2 scenarios (not in Baseline: 0.810, SE 0.010; Weak "
        "signal: 0.410, SE 0.010).",
        "Linear, q = 0.1: the goal 'discoveries' has at least 0.9 times the power of the best "
        "possible, which knows how the data were drawn, in 1 of 2 scenarios (not in Weak signal: "
        "0.410, SE 0.010).",
        "Linear, q = 0.1: 95% intervals of columns named and truly zero have 93% to 97% coverage "
        "in 1 of 2 scenarios (not in Weak signal: 0.850, SE 0.000).",
    ]
    reported = "\n".join(trust_lines(records()))
    assert "0.085 (0.005)" in reported
    assert "-0.100 (0.000)" in reported


def test_what_holds_at_several_rates_is_told_once_and_many_exceptions_by_their_ends() -> None:
    rows = records()
    ours = rows[rows["method"] == OURS]
    many = [ours[ours["scenario"] == "baseline"]]
    for k in range(5):
        own = ours[ours["scenario"] == "weak-signal"]
        many.append(own.assign(scenario=f"weak-{k}", coverage_zero=0.5 + 0.1 * k))
    first = pd.concat(many)
    reported = trust_conclusions(pd.concat([first, first.assign(rate=0.2)]))
    assert len(reported) == 2
    assert reported[1] == (
        "Linear, q = 0.1 and q = 0.2: 95% intervals of columns named and truly zero have 93% to "
        "97% coverage in 1 of 6 scenarios (the others range from weak-0: 0.500, SE 0.000, to "
        "weak-4: 0.900, SE 0.000)."
    )


@pytest.mark.standard
def test_the_command_runs_and_concludes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "few.toml"
    file.write_text("[few]\nsizes = [60, 60]\np = 30\nnonzeros = 4\nvalidation = 40\ntest = 10\n")
    out = str(tmp_path / "out")
    run = ["study", "run", "--study", "trust", "--scenario-file", str(file), "--out", out]
    assert main([*run, "--replicates", "2", "--workers", "1"]) == 0
    assert set(Store(Path(out)).table()["method"]) == set(METHODS)
    capsys.readouterr()
    assert main(["study", "summary", out]) == 0
    reported = capsys.readouterr().out
    assert "the mean false discovery proportion of the goal 'discoveries' is" in reported
    assert "Linear, q = 0.2: discoveries minus one split, paired" in reported
