"""A replicate's records, against outcomes computed another way."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.study.small import OTHER, SMALL, STUDY

from fedlasso import InProcess, fit
from fedlasso.fitting import rounds_within
from fedlasso.study import PaperStudy
from fedlasso.study.outcomes import support_record

REQUIRED = [
    "scenario",
    "replicate",
    "method",
    "epochs",
    "budget",
    "panel",
    "rule",
    "candidate",
    "lam",
    "f1",
    "precision",
    "recall",
    "active",
    "test_mse",
    "coef_error",
    "objective",
    "gap",
    "relative_gap",
    "stationarity",
    "upload_bytes",
    "download_bytes",
    "local_steps",
    "f1_1e6",
    "f1_1e2",
    "seconds_penalty",
    "seconds_training",
    "seconds_validation",
]


def rows(study: PaperStudy = STUDY, number: int = 0, scenario: Any = SMALL) -> pd.DataFrame:
    return pd.DataFrame(study.replicate(scenario, number))


def untimed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[[c for c in frame if not c.startswith("seconds")]].reset_index(drop=True)


def test_one_row_per_cell_with_every_column() -> None:
    frame = rows()
    outcomes = frame[frame["record"] == "outcome"]
    assert len(outcomes) == 4 * 2 * 1 * 2 * 2
    assert not outcomes.duplicated(["method", "epochs", "budget", "panel", "rule"]).any()
    assert set(REQUIRED) <= set(outcomes)
    assert not outcomes[REQUIRED].isna().any().any()
    assert (frame["record"] == "penalty").sum() == 3
    assert (frame["record"] == "reference").sum() == 1
    assert (frame["record"] == "candidate").sum() == (1 + 5 + 5 + 5) * 2 * 2


def test_what_was_not_measured_is_missing() -> None:
    outcomes = rows().query("record == 'outcome'")
    assert outcomes.query("method != 'DA'")["seconds_rate"].isna().all()
    assert (outcomes.query("method == 'DA'")["seconds_rate"] >= 0).all()


@pytest.mark.parametrize("method", ["CD", "ST", "P", "DA"])
@pytest.mark.parametrize("panel", ["upload", "joint"])
def test_every_cell_is_the_fit_that_a_user_would_run(method: str, panel: Any) -> None:
    draw = SMALL.draw(SMALL.generator(7, 0))
    X = np.vstack([X for X, _ in draw.training])
    y = np.concatenate([y for _, y in draw.training])
    outcomes = rows().query("record == 'outcome' and method == @method and panel == @panel")
    for _, row in outcomes.iterrows():
        paths = 1 if method in ("CD", "ST") else 5
        result = fit(
            InProcess(draw.sites()),
            method,
            epochs=int(row.epochs),
            rounds=rounds_within(30, panel, paths, int(row.epochs)),
            rule=row.rule,
            certified=False,
        )
        b = result.coefficients
        assert row.lam == result.problem.penalty.lam
        assert row.candidate == result.setting
        assert row.upload_bytes == result.costs.total().upload
        assert row.download_bytes == result.costs.total().download
        assert row.local_steps == result.costs.most_steps("training")
        objective = ((y - X @ b) ** 2).sum() / (2 * len(y)) + row.lam * np.abs(b).sum()
        assert row.objective == pytest.approx(objective, rel=1e-12)
        assert row.gap >= -1e-12
        errors = [(yt - Xt @ b) ** 2 for Xt, yt in draw.test]
        assert row.test_mse == pytest.approx(np.concatenate(errors).mean(), rel=1e-12)
        assert row.coef_error == pytest.approx(np.linalg.norm(b - draw.truth), rel=1e-12)


def test_a_replicate_depends_on_nothing_else() -> None:
    frame = untimed(rows(number=3))
    rows(number=1)
    rows(scenario=OTHER)
    pd.testing.assert_frame_equal(frame, untimed(rows(number=3)), check_exact=True)
    assert not np.array_equal(frame["objective"], untimed(rows(number=2))["objective"])


def test_adding_a_method_or_an_epoch_count_changes_no_other_row() -> None:
    everything = rows(PaperStudy(seed=7, epochs=(1, 5, 20), budgets=(30, 100)))
    for method in ("CD", "ST", "P", "DA"):
        alone = rows(PaperStudy(seed=7, methods=(method,), epochs=(20,), budgets=(30,)))
        same = everything.query(
            "record in ('penalty', 'reference') or "
            "(method == @method and epochs == 20 and budget == 30)"
        )
        pd.testing.assert_frame_equal(
            untimed(alone), untimed(same)[list(untimed(alone))], check_exact=True
        )


def test_diagnostics_hold() -> None:
    frame = rows()
    assert frame.query("record == 'reference'")["stationarity"].max() <= 1e-9
    assert frame.query("record == 'penalty'")["worst_gap"].max() <= 1e-10
    assert frame[frame["met"].notna()]["met"].all()


def test_support_measures() -> None:
    truth = np.array([1.0, -1.0, 0.0, 0.0])
    record = support_record(np.array([0.5, 1e-5, 5e-3, 0.0]), truth)
    assert (record["precision"], record["recall"], record["active"]) == (0.5, 0.5, 2)
    assert (record["precision_1e6"], record["recall_1e6"]) == (2 / 3, 1.0)
    assert (record["precision_1e2"], record["recall_1e2"]) == (1.0, 0.5)
    empty = support_record(np.zeros(4), truth)
    assert (empty["precision"], empty["recall"], empty["f1"], empty["active"]) == (0, 0, 0, 0)
