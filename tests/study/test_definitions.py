"""The studies beyond the paper's: what they read, charge and conclude."""

import numpy as np
import pandas as pd
import pytest
from helpers.study.small import SMALL

from fedlasso.study import STUDIES, PaperStudy, Scenario
from fedlasso.study.literature import LiteratureStudy
from fedlasso.study.paper import EpochStudy, JointTuningStudy, SiteEffectsStudy, TunedStudy
from fedlasso.study.whole import WholeStudy

K, P = 3, 30


def outcomes(study: object, scenario: Scenario = SMALL) -> pd.DataFrame:
    frame = pd.DataFrame(study.replicate(scenario, 0))  # type: ignore[attr-defined]
    return frame[frame["record"] == "outcome"]


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_every_definition_is_known_by_its_name(name: str) -> None:
    assert STUDIES[name].name == name


@pytest.fixture(scope="module")
def literature() -> pd.DataFrame:
    return outcomes(LiteratureStudy(seed=3))


def test_no_procedure_is_read_beyond_its_uploads(literature: pd.DataFrame) -> None:
    assert (literature["training_upload_bytes"] <= literature["budget"] * 8 * K * P).all()
    counts = literature.groupby("method").size()
    assert set(counts) == {5}


def test_reading_at_one_budget_is_not_charged_to_the_next(literature: pd.DataFrame) -> None:
    cd = literature[literature["method"] == "CD"].set_index("budget")
    assert (cd["upload_bytes"] - cd["training_upload_bytes"] == 8 * K * (2 + 3)).all()
    assert cd["rounds"].to_dict() == {5: 5, 10: 10, 20: 20, 30: 30, 100: 100}


def test_a_budget_alone_gives_the_same_row(literature: pd.DataFrame) -> None:
    alone = outcomes(LiteratureStudy(seed=3, methods=("DA", "Secant"), budgets=(20,)))
    both = literature[literature["method"].isin(["DA", "Secant"]) & (literature["budget"] == 20)]
    columns = [c for c in alone if not c.startswith("seconds") and c != "uploads_needed"]
    pd.testing.assert_frame_equal(
        alone[columns].reset_index(drop=True), both[columns].reset_index(drop=True)
    )


def test_uploads_needed_is_missing_where_the_optimum_is_not_reached(
    literature: pd.DataFrame,
) -> None:
    last = literature[literature["budget"] == 100].set_index("method")
    assert np.isnan(last.loc["CD", "uploads_needed"])
    assert last.loc["Secant", "uploads_needed"] <= 100
    assert last.loc["Secant", "relative_gap"] <= 1e-8
    # All three paths are charged, whichever of them arrived.
    assert last.loc["FedDR", "uploads_needed"] % 3 == 0
    reported = "\n".join(LiteratureStudy.conclude(literature))
    gaps, _, needed = reported.partition("uploads to a relative gap")
    assert [line.split()[0] for line in gaps.splitlines()[4:]] == list(last.index)
    assert " Secant " in needed
    assert " CD " not in needed
    expected = last.loc["Secant", "uploads_needed"]
    assert f"{expected:.3g} ({expected:.3g})" in needed


def test_goals_stand_beside_the_papers_four() -> None:
    study = TunedStudy(seed=3, epochs=(1, 5))
    rows = outcomes(study)
    goals = rows[rows["method"].str.startswith("goal:")]
    assert list(goals["method"]) == [
        "goal:prediction",
        "goal:prediction:training",
        "goal:selection",
        "goal:selection:training",
        "goal:objective",
    ]
    both = goals.set_index("method")
    for goal in ("goal:prediction", "goal:selection"):
        assert both.loc[goal, "test_mse"] != both.loc[f"{goal}:training", "test_mse"]
        assert both.loc[goal, "upload_bytes"] == both.loc[f"{goal}:training", "upload_bytes"]
    assert (goals["training_upload_bytes"] <= 100 * 8 * K * P).all()
    paper = outcomes(PaperStudy(seed=3, epochs=(1, 5), budgets=(100,)))
    paper = paper[paper["panel"] == "upload"]
    columns = ["method", "epochs", "rule", "f1", "test_mse", "upload_bytes"]
    rest = rows[~rows["method"].str.startswith("goal:")]
    assert rest[columns].values.tolist() == paper[columns].values.tolist()


def test_conclusions_compare_with_the_best_of_the_others() -> None:
    def row(method: str, replicate: int, f1: float, mse: float) -> dict[str, object]:
        return {
            "scenario": "s", "replicate": replicate, "method": method, "epochs": 1, "rule": "min",
            "f1": f1, "test_mse": mse,
        }  # fmt: skip

    rows = pd.DataFrame(
        [row("CD", r, 0.2, 3.0) for r in (0, 1)]
        + [row("DA", r, 0.5, 2.0) for r in (0, 1)]
        + [row("goal:prediction", r, 0.1, 1.0 + r) for r in (0, 1)]
        + [row("goal:prediction:training", r, 0.1, 2.1) for r in (0, 1)]
        + [row("goal:selection", r, 0.4, 9.0) for r in (0, 1)]
    )
    fair, worse, prediction, first, selection, second = TunedStudy.conclude(rows)
    assert fair.startswith("prediction goal, training rows has better mean test_mse")
    assert fair.endswith("0 of 1 scenarios")
    assert "2.1 against DA (E = 1) 2, difference +0.1" in worse
    assert prediction.startswith("prediction goal, all rows has")
    assert prediction.endswith("1 of 1 scenarios")
    assert "1.5 against DA (E = 1) 2, difference -0.5 (SE 0.5)" in first
    assert selection.endswith("0 of 1 scenarios")
    assert "not better" in second


def test_epochs_at_fixed_work() -> None:
    rows = outcomes(EpochStudy(seed=3, epochs=(1, 2, 10), methods=("CD", "DA")))
    assert set(rows["panel"]) == {"work"}
    assert set(rows["local_steps"]) == {500}


def test_joint_tuning_spends_no_more_uploads_and_chooses_a_penalty() -> None:
    rows = outcomes(JointTuningStudy(seed=3, epochs=(1,)))
    joint = rows[rows["tuning"] == "joint"]
    assert (joint["training_upload_bytes"] <= 100 * 8 * K * P).all()
    assert set(joint["penalty_multiple"]) <= {0.25, 0.5, 1.0, 2.0, 4.0}
    assert len(joint) == 4 * 2
    assert len(rows) == 2 * len(joint)


def test_site_effects_leave_the_common_truth_and_the_other_draws_alone() -> None:
    plain = Scenario("same", sizes=(20, 16), p=30, nonzeros=4, validation=8, test=10)
    with_effects = Scenario(
        "same", sizes=(20, 16), p=30, nonzeros=4, validation=8, test=10, deviations=5
    )
    a, b = (s.draw(s.generator(1, 0)) for s in (plain, with_effects))
    assert np.array_equal(a.truth, b.truth)
    assert not np.allclose(a.training[0][1], b.training[0][1])
    assert list(SiteEffectsStudy.scenarios) == [f"deviating-{n}" for n in (0, 5, 15, 30)]
    rows = outcomes(SiteEffectsStudy(seed=3, epochs=(1,)), with_effects)
    assert len(rows) == 4 * 2 * 2


def test_the_whole_story_is_on_the_papers_draws() -> None:
    study = WholeStudy(seed=3, epochs=(1, 5))
    records = pd.DataFrame(study.replicate(SMALL, 0))
    rows = records[records["record"] == "outcome"]
    four = rows[rows["method"].isin(study.methods)]
    paper = outcomes(PaperStudy(seed=3, epochs=(1, 5)))
    columns = ["method", "epochs", "budget", "panel", "rule", "f1", "relative_gap", "upload_bytes"]
    assert four[columns].values.tolist() == paper[columns].values.tolist()
    others = rows[~rows["method"].isin(study.methods)]
    assert set(others["method"]) == {
        "Secant",
        "SecantWS",
        *(f"goal:{goal}" for goal in study.goals),
        "goal:prediction:training",
        "goal:selection:training",
    }
    # A bill within the budget, and rows under the joint limits only where the steps keep to them.
    assert (others["training_upload_bytes"] <= others["budget"] * 8 * K * P).all()
    joint = others[others["panel"] == "joint"]
    assert (joint["local_steps"] <= 5 * joint["budget"]).all()
    assert not others.duplicated(["method", "budget", "panel", "rule"]).any()
    own = rows["method"].str.startswith(("goal:prediction", "goal:selection"))
    assert rows.loc[own, "relative_gap"].isna().all()
    assert rows.loc[~own, "relative_gap"].notna().all()


def test_traces_meet_the_outcomes_where_both_are_read() -> None:
    study = WholeStudy(seed=3, epochs=(5,), goals=())
    records = pd.DataFrame(study.replicate(SMALL, 0))
    traces = records[records["record"] == "trace"].set_index(["method", "uploads"])["relative_gap"]
    rows = records[(records["record"] == "outcome") & (records["panel"] == "upload")]
    for method in ("CD", "Secant", "SecantWS"):  # one candidate each
        for budget in study.budgets:
            own = rows[(rows["method"] == method) & (rows["budget"] == budget)]
            assert set(own["relative_gap"]) == {traces[method, budget]}
    assert traces["Secant"].is_monotonic_decreasing
    assert traces["DA"].index.min() == 5  # five candidates: no round is paid for before
