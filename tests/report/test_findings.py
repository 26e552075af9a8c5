"""Findings against the raw rows by another route: plain Python over the Parquet parts."""

import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from helpers.study.small import OTHER, SMALL

from fedlasso.report import Results, read_results
from fedlasso.report.findings import find
from fedlasso.study import STUDIES, Store, run_study
from fedlasso.study.whole import WholeStudy

Rows = list[dict[str, Any]]
AT = {"budget": 100, "panel": "joint", "rule": "min"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole study, small."""
    place = tmp_path_factory.mktemp("whole")
    run_study(WholeStudy(seed=3), [SMALL, OTHER], 3, Store(place), workers=1)
    return place


@pytest.fixture(scope="module")
def whole(folder: Path) -> Results:
    return read_results(folder)


@pytest.fixture(scope="module")
def raw(folder: Path) -> Rows:
    parts = sorted(folder.glob("parts/*/*.parquet"))
    rows = [row for part in parts for row in pq.ParquetFile(part).read().to_pylist()]
    return [row for row in rows if row["record"] == "outcome"]


def values(raw: Rows, metric: str, **where: Any) -> dict[int, float]:
    return {
        row["replicate"]: row[metric] for row in raw if all(row[k] == v for k, v in where.items())
    }


def reported(results: Results, name: str) -> str:
    return next(finding.text for finding in find(results) if finding.name == name)


def over_scenarios(by_scenario: dict[str, list[dict[int, float]]]) -> tuple[float, float]:
    """Mean of differences, and its standard error: cells within replicate, then scenarios."""
    means = []
    variances = []
    for cells in by_scenario.values():
        within = [statistics.fmean(cell[r] for cell in cells) for r in cells[0]]
        means.append(statistics.fmean(within))
        variances.append(statistics.variance(within) / len(within))
    return statistics.fmean(means), sum(variances) ** 0.5 / len(means)


def says(mean: float, se: float) -> tuple[str, str]:
    """The mean with as many decimals as give the standard error two digits."""
    decimals = max(0, 1 - int(f"{se:.5e}".partition("e")[2]))
    return f"{mean:+.{decimals}f}".replace("-", "−"), f"SE {se:.{decimals}f}"


@pytest.mark.parametrize(("metric", "sign"), [("relative_gap", -1), ("f1", 1)])
def test_where_dual_averaging_leads(whole: Results, raw: Rows, metric: str, sign: int) -> None:
    wins = 0
    parts: dict[str, list[dict[int, float]]] = defaultdict(list)
    for scenario in ("small", "other"):
        for epochs in (1, 5, 20):
            at = {"scenario": scenario, "epochs": epochs, **AT}
            ours = values(raw, metric, method="DA", **at)
            rivals = [values(raw, metric, method=m, **at) for m in ("CD", "ST", "P")]
            best = max(rivals, key=lambda rival: sign * statistics.fmean(rival.values()))
            difference = {r: ours[r] - best[r] for r in ours}
            wins += sign * statistics.fmean(difference.values()) > 0
            parts[scenario].append(difference)
    text = reported(whole, f"lead-{metric}")
    assert f"in {wins} of 6 combinations of scenario and E" in text
    for part in says(*over_scenarios(parts)):
        assert part in text


@pytest.mark.parametrize(
    ("goal", "metric", "sign"), [("prediction", "test_mse", -1), ("selection", "f1", 1)]
)
@pytest.mark.parametrize("fitted", [":training", ""])
def test_where_a_goal_leads(
    whole: Results, raw: Rows, goal: str, metric: str, sign: int, fitted: str
) -> None:
    wins = 0
    parts: dict[str, list[dict[int, float]]] = {}
    for scenario in ("small", "other"):
        at = {"scenario": scenario, **AT}
        ours = values(raw, metric, method=f"goal:{goal}{fitted}", **at)
        rivals = [
            values(raw, metric, method=m, epochs=e, **at)
            for m in ("CD", "ST", "P", "DA")
            for e in (1, 5, 20)
        ]
        best = max(rivals, key=lambda rival: sign * statistics.fmean(rival.values()))
        difference = {r: ours[r] - best[r] for r in ours}
        wins += sign * statistics.fmean(difference.values()) > 0
        parts[scenario] = [difference]
    training, _, everything = reported(whole, f"goal-{goal}").partition("; fitted to all rows")
    assert "fitted to the training rows only, as these are, in" in training
    text = training if fitted else everything
    assert f"in {wins} of 2 scenarios" in text
    for part in says(*over_scenarios(parts)):
        assert part in text


def count_changes(cells: list[float], mean: float) -> str:
    """In how many cells a mean goes the way that it goes on average."""
    if mean < 0:
        return f"falls in {sum(cell < 0 for cell in cells)}"
    return f"rises in {sum(cell > 0 for cell in cells)}"


@pytest.mark.parametrize("metric", ["f1", "test_mse"])
def test_what_more_epochs_change(whole: Results, raw: Rows, metric: str) -> None:
    parts: dict[str, list[dict[int, float]]] = defaultdict(list)
    for scenario in ("small", "other"):
        for method in ("CD", "ST", "P", "DA"):
            at = {"scenario": scenario, "method": method, **AT}
            few, many = (values(raw, metric, epochs=e, **at) for e in (1, 20))
            parts[scenario].append({r: many[r] - few[r] for r in few})
    cells = [statistics.fmean(cell.values()) for own in parts.values() for cell in own]
    count = count_changes(cells, over_scenarios(parts)[0])
    text = reported(whole, f"epochs-{metric}")
    assert f"{count} of 8 combinations of scenario and method" in text
    for part in says(*over_scenarios(parts)):
        assert part in text


def test_what_the_rule_trades(whole: Results, raw: Rows) -> None:
    text = reported(whole, "rule")
    for metric in ("f1", "test_mse"):
        parts: dict[str, list[dict[int, float]]] = defaultdict(list)
        for scenario in ("small", "other"):
            for method in ("ST", "P", "DA"):
                for epochs in (1, 5, 20):
                    at = {"scenario": scenario, "method": method, "epochs": epochs}
                    at |= {"budget": 100, "panel": "joint"}
                    first, second = (
                        values(raw, metric, rule=rule, **at) for rule in ("min", "1se")
                    )
                    parts[scenario].append({r: second[r] - first[r] for r in first})
        cells = [statistics.fmean(cell.values()) for own in parts.values() for cell in own]
        count = count_changes(cells, over_scenarios(parts)[0])
        of_what = "18 combinations of scenario, method and E" if metric == "f1" else "them"
        assert f"{count} of {of_what} (" in text
        for part in says(*over_scenarios(parts)):
            assert part in text


def test_how_soon_secant_arrives(whole: Results, raw: Rows) -> None:
    for method in ("Secant", "SecantWS"):
        gaps = [
            value
            for scenario in ("small", "other")
            for value in values(raw, "relative_gap", method=method, scenario=scenario, budget=30,
                                panel="joint", rule="min").values()
        ]  # fmt: skip
        near = sum(gap <= 1e-8 for gap in gaps)
        assert f"in {near} of 6 replicates" in reported(whole, f"uploads-{method}")


def test_findings_change_when_the_records_do(whole: Results) -> None:
    before = {finding.name: finding.text for finding in find(whole)}
    rows = whole.outcome
    swapped = rows.assign(f1=rows["f1"].where(rows["method"] != "DA", -1.0))
    results = Results(
        whole.manifest, swapped, whole.candidate, whole.reference, whole.penalty, whole.trace,
        whole.progress, whole.failures,
    )  # fmt: skip
    after = {finding.name: finding.text for finding in find(results)}
    assert "in 0 of 6 combinations" in after["lead-f1"]
    assert after["lead-f1"] != before["lead-f1"]
    assert after["epochs-test_mse"] == before["epochs-test_mse"]


def test_joint_tuning_says_what_its_own_contrast_found(tmp_path: Path) -> None:
    study = STUDIES["joint-tuning"](epochs=(1, 5))  # type: ignore[call-arg]
    run_study(study, [SMALL], 2, Store(tmp_path), workers=1)
    results = read_results(tmp_path)
    rows: pd.DataFrame = results.at(**results.primary)
    keys = ["method", "epochs", "replicate"]
    arms = rows.set_index(["tuning", *keys])["f1"].unstack("tuning")
    change = (arms["joint"] - arms["inherited"]).groupby(level=["method", "epochs"]).mean()
    count = count_changes(change.tolist(), float(change.mean()))
    assert f"{count} of 8 combinations" in reported(results, "tuning-f1")


def test_one_replicate_has_no_standard_error(tmp_path: Path) -> None:
    study = STUDIES["paper"](budgets=(30,))  # type: ignore[call-arg]
    run_study(study, [SMALL], 1, Store(tmp_path), workers=1)
    texts = [finding.text for finding in find(read_results(tmp_path))]
    assert texts
    assert all("nan" not in text for text in texts)
    assert any("SE unknown with one replicate" in text for text in texts)
    # In one scenario it is methods that are counted.
    assert any(" of 4 methods; average change" in text for text in texts)
