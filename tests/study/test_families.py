"""The study of families: its draws, its penalty, what it measures, and what it says."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedlasso import InProcess
from fedlasso.cli import main
from fedlasso.errors import FedLassoError
from fedlasso.fitting import fit
from fedlasso.numerics import LOSSES
from fedlasso.procedures import Newton
from fedlasso.sites import GradientAt
from fedlasso.study import SCENARIOS, Scenario, Store
from fedlasso.study.families import FamilyStudy, FamilyTrial, choose_by_path
from fedlasso.study.family_summary import count_uploads, family_conclusions, family_lines
from fedlasso.study.replicate_data import UNITS, draw_family

FEW = Scenario("few", sizes=(40, 30), p=15, nonzeros=3, validation=40, test=200)
MANY = Scenario("many", sizes=(40_000, 20_000), p=5, nonzeros=3, validation=10, test=10)
each_family = pytest.mark.parametrize("family", sorted(UNITS))


@each_family
@pytest.mark.parametrize("snr", [0.25, 1.0])
def test_linear_predictors_spread_as_the_page_says(family: str, snr: float) -> None:
    scenario = replace(MANY, snr=snr, correlations=(0.8, 0.0), scales=(1.0, 2.0))
    draw = draw_family(scenario, family, 1, 0)
    eta = np.concatenate([X @ draw.truth for X, _ in draw.training])
    assert eta.var() == pytest.approx(snr * UNITS[family] ** 2, rel=0.03)
    assert (draw.truth != 0).sum() == 3


def test_responses_follow_their_linear_predictors() -> None:
    for family in UNITS:
        draw = draw_family(MANY, family, 1, 0)
        X, y = draw.training[0]
        eta = X @ draw.truth
        assert not LOSSES[family].find_misfits(y).any()
        if family == "cox":
            assert np.signbit(y).mean() == pytest.approx(0.3, abs=0.01)
            # Hazards of events and censoring together are 10/7 of the events' own.
            assert (np.abs(y) * np.exp(eta)).mean() == pytest.approx(0.7, rel=0.03)
        else:
            high = eta > np.median(eta)
            for part in (high, ~high):
                expected = LOSSES[family].mean(eta[part]).mean()
                assert y[part].mean() == pytest.approx(expected, rel=0.03)


def test_a_draw_depends_on_seed_scenario_family_and_number_only() -> None:
    draws = [
        draw_family(FEW, "poisson", 1, 0),
        draw_family(FEW, "poisson", 1, 0),
        draw_family(FEW, "poisson", 2, 0),
        draw_family(FEW, "poisson", 1, 1),
        draw_family(FEW, "binomial", 1, 0),
        draw_family(replace(FEW, name="other"), "poisson", 1, 0),
    ]
    first, again, *others = [draw.training[0][0].tobytes() for draw in draws]
    assert first == again
    assert len({first, *others}) == 5
    assert draws[0].training[0][1].tobytes() == draws[1].training[0][1].tobytes()


def test_sites_with_truths_of_their_own_are_refused() -> None:
    with pytest.raises(FedLassoError, match="has deviations"):
        draw_family(replace(FEW, deviations=2), "cox", 1, 0)


@each_family
def test_the_penalty_predicts_the_first_validation_sample_best(family: str) -> None:
    trial = FamilyTrial(FEW, family, 3, 0)
    chosen = trial.problem.penalty.lam

    def deviance(lam: float) -> float:
        b = fit(trial.federation, Newton(tol=1e-10), penalty=lam, rounds=300).coefficients
        held_out = [site.validation("penalty") for site in trial.sites]
        return sum(float(part.errors(b).sum()) for part in held_out)

    p = len(trial.federation.columns)
    slopes = trial.federation.total(GradientAt(np.zeros(p))).gradient / trial.problem.m
    grid = np.abs(slopes).max() * np.geomspace(1.0, 0.01, 30)
    at = int(np.argmin(np.abs(grid - chosen)))
    assert grid[at] == pytest.approx(chosen, rel=1e-12)
    assert choose_by_path(trial.federation) == chosen
    nearby = [deviance(lam) for lam in grid[max(0, at - 3) : at + 4]]
    assert deviance(chosen) <= min(nearby) * (1 + 1e-3)


@pytest.mark.standard
def test_second_derivatives_that_were_corrected_stay_convex_along_a_path() -> None:
    """On this draw a path once met a matrix that curved down, and a model beyond all numbers."""
    draw = draw_family(SCENARIOS["strong-correlation"], "cox", 1015, 1)
    assert choose_by_path(InProcess(draw.sites("cox"))) > 0


@pytest.mark.full
def test_a_replicate_has_every_method_family_and_budget() -> None:
    study = FamilyStudy(seed=5)
    rows = pd.DataFrame(study.replicate(FEW, 0))
    cells = ["family", "method", "epochs", "budget"]
    assert len(rows) == 3 * (3 + 4 * 3) * 2
    assert not rows.duplicated(cells).any()
    again = pd.DataFrame(study.replicate(FEW, 0))
    timed = [name for name in rows if str(name).startswith("seconds")]
    pd.testing.assert_frame_equal(rows.drop(columns=timed), again.drop(columns=timed))
    ours = rows[rows["method"] == "Newton"]
    assert (ours["uploads_needed"] <= ours["uploads_certified"]).all()
    assert (ours.loc[ours["budget"] == 100, "relative_gap"].abs() <= 1e-8).all()
    assert (rows["relative_gap"] >= -1e-12).all()
    fista = rows[rows["method"] == "FISTA"]
    assert (fista["uploads_needed"] < fista["uploads_certified"]).all()
    voting = rows[rows["method"] == "Voting"]
    assert (voting["training_upload_bytes"] == 8 * 2 * 2 * 15).all()
    # A penalty (one), the sites' Lassos, and errors of the only candidate.
    assert (voting["round_trips"] == 3).all()
    assert (ours["trips_needed"] <= ours["round_trips"].max()).all()
    assert (fista["trips_needed"] <= 2 * fista["uploads_needed"] + 1).all()


def test_what_is_measured_is_what_the_model_does() -> None:
    trial = FamilyTrial(FEW, "poisson", 5, 0)
    study = FamilyStudy(seed=5, methods=("Newton",), families=("poisson",))
    row = pd.DataFrame(study.replicate(FEW, 0))
    b = fit(trial.federation, Newton(tol=1e-12), penalty=trial.problem.penalty.lam, rounds=300)
    X = np.vstack([X for X, _ in trial.draw.test])
    y = np.concatenate([y for _, y in trial.draw.test])
    eta = X @ b.coefficients
    logs = np.where(y > 0, y * (np.log(np.maximum(y, 1)) - eta), 0.0)
    deviance = 2 * (logs - y + np.exp(eta)).mean()
    assert row["test_deviance"].iloc[-1] == pytest.approx(deviance, rel=1e-4)
    assert row["active"].iloc[-1] == (np.abs(b.coefficients) > 1e-4).sum()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"families": ("gamma",)}, "no family is called 'gamma'"),
        ({"methods": ("nobody",)}, "no procedure is called"),
        ({"epochs": ()}, "epochs is"),
        ({"budgets": (100, 30)}, "budgets is"),
    ],
)
def test_wishes_that_make_no_sense_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(FedLassoError, match=message):
        FamilyStudy(**settings)  # type: ignore[arg-type]


def records() -> pd.DataFrame:
    """Three replicates: Newton at 10, 20 and 40 uploads, FISTA at 50, 60 and never."""
    uploads = {"Newton": (10.0, 20.0, 40.0), "FISTA": (50.0, 60.0, np.nan)}
    return pd.DataFrame(
        {
            "family": "binomial", "scenario": "baseline", "replicate": number, "method": method,
            "epochs": None, "budget": budget, "f1": 0.5,
            "uploads_needed": needed[number], "uploads_certified": needed[number] + 1,
        }
        for number in range(3)
        for method, needed in uploads.items()
        for budget in (30, 100)
    )  # fmt: skip


def test_uploads_are_counted_and_told_with_those_who_did_not_arrive() -> None:
    table = count_uploads(records()).set_index("method")
    newton = table.loc["Newton", ["n", "reached", "median", "worst"]]
    assert newton.tolist() == [3, 3, 20, 40]
    assert table.loc["FISTA", ["reached", "median", "worst"]].tolist() == [2, 60, np.inf]
    assert table.loc["FISTA", "certified_median"] == 61
    assert family_conclusions(records()) == [
        "Binomial: within 30 uploads, a relative gap of 1e−8 to the pooled optimum is reached by "
        "Newton in 2 of 3 replicates (median 20, maximum 40 uploads) and by FISTA in 0 of 3 "
        "replicates (median 60, maximum – uploads)."
    ]
    shown = "\n".join(family_lines(records()))
    assert "20 (40), 21 (41)" in shown
    assert "60 (–), 61 (–)" in shown


@pytest.mark.standard
def test_the_command_runs_and_concludes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "few.toml"
    file.write_text("[few]\nsizes = [40, 30]\np = 15\nnonzeros = 3\nvalidation = 40\ntest = 50\n")
    out = str(tmp_path / "out")
    run = ["study", "run", "--study", "families", "--scenario-file", str(file), "--out", out]
    run += ["--families", "binomial,cox", "--epochs", "1", "--replicates", "1", "--workers", "1"]
    assert main(run) == 0
    assert set(Store(Path(out)).table()["family"]) == {"binomial", "cox"}
    capsys.readouterr()
    assert main(["study", "summary", out]) == 0
    shown = capsys.readouterr().out
    for family in ("Binomial", "Cox"):
        assert f"{family}: within 30 uploads, a relative gap of 1e−8 to the pooled optimum" in shown
        assert "is reached by Newton in 1 of 1" in shown
        assert f"{family}: means over scenarios and replicates, 100 uploads" in shown


def test_other_studies_take_no_families(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "run", "--families", "cox", "--out", str(tmp_path / "out")]) == 2
    assert "takes no --families" in capsys.readouterr().err
