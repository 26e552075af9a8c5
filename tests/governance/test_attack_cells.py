"""Cells of a few rows: by rank of chosen models, by time, and by slopes of a recalibration.

Chance is what a guess of the same kind gives: records, or differences of two, whose columns are
shuffled independently of each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.governance.victims import chance, distance

from fedlasso import FedLassoError, Site
from fedlasso.federation import Request, decode, encode
from fedlasso.governance import Audit, Policy
from fedlasso.governance.guard import GuardedSite
from fedlasso.numerics import Array
from fedlasso.sites import BaselineAt, assessing, cells, inference, recalibration
from fedlasso.sites.assessing import GroupsAt, PairsAt, RecalibrationAt, ScoreRanges
from fedlasso.sites.cells import level_rows
from fedlasso.tables.text_columns import common_levels
from fedlasso.tables.values import from_cells

N, P = 60, 6
ONE = np.zeros(1)
Patch = pytest.MonkeyPatch


@dataclass
class Victim:
    """A site behind its policy, and its records."""

    door: GuardedSite
    X: Array
    y: Array

    def ask(self, request: Request[Any]) -> Any:
        return decode(self.door.answer_bytes(encode(request)))


def victim(folder: Path, loss: str = "quadratic", y: Array | None = None, **rules: Any) -> Victim:
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(4)
    X = rng.standard_normal((N, P))
    if y is None:
        y = X[:, 0] + rng.standard_normal(N)
        if loss == "binomial":
            y = (y > 0).astype(float)
        if loss == "cox":
            y = rng.exponential(np.exp(-X[:, 0])) * rng.choice([1, -1], N, p=[0.7, 0.3])
    site = Site("a", X, y, loss=loss, intercept=loss == "binomial", raw=True)
    policy = Policy(max_candidates=10**6, max_numbers=1e6, **rules)
    door = GuardedSite(site, policy, Audit(folder / "audit.jsonl"), "ab" * 16)
    return Victim(door, X, y)


def model(victim: Victim, b: Array) -> Array:
    """The model as a question has it: an intercept of zero where the site has one."""
    width = len(victim.door.columns)
    return np.append(b, np.zeros(width - len(b)))[:, None]


def ranges(victim: Victim, b: Array) -> Any:
    return victim.ask(ScoreRanges(model(victim, b), ONE))


def no_rounding(patch: Patch) -> None:
    patch.setattr(cells, "ROW_STEP", 0.0)
    patch.setattr(cells, "EVENT_STEP", 0.0)
    patch.setattr(assessing, "EVENT_STEP", 0.0)


def no_cells(patch: Patch) -> None:
    patch.setattr(assessing, "least_rows", lambda site: 1)
    for module in (cells, assessing):
        patch.setattr(module, "SLOTS", N)


def cell_sums(asked: Victim, base: Array, step: float) -> Array:
    """Sums of all columns over the cells of a model, by moving its coefficients a little."""
    start = ranges(asked, base).expected
    moved = [ranges(asked, base + step * unit).expected for unit in np.eye(P)]
    return np.column_stack([(own - start) / step for own in moved])


def single_rows(folder: Path, step: float) -> tuple[Array, Array]:
    """Ask p + 1 questions about cells, and take what is in each for a record."""
    asked = victim(folder)
    base = np.random.default_rng(1).standard_normal(P)
    return cell_sums(asked, base, step), asked.X


def test_score_ranges_told_every_record(tmp_path: Path, monkeypatch: Patch) -> None:
    no_cells(monkeypatch)
    no_rounding(monkeypatch)
    found, X = single_rows(tmp_path, 1e-7)
    assert distance(X, found).max() < 1e-6


@pytest.mark.parametrize("step", [1e-7, 1e-2, 1.0])
def test_score_ranges_tell_no_record(tmp_path: Path, step: float) -> None:
    found, X = single_rows(tmp_path, step)
    found = found[np.abs(found).sum(axis=1) > 0]
    assert len(found) == 0 or np.median(distance(found, X)) > chance(X, len(found))


@pytest.mark.parametrize("off", [no_cells, no_rounding])
def test_each_of_two_defences_keeps_records(
    tmp_path: Path, monkeypatch: Patch, off: Callable[[Patch], None]
) -> None:
    off(monkeypatch)
    found, X = single_rows(tmp_path, 1e-7)
    assert distance(found, X).min() > 0.1


def differences(folder: Path, step: float) -> tuple[Array, Array]:
    """Turn a model until two rows change places, and subtract what cells hold before and after."""
    asked = victim(folder)
    rng = np.random.default_rng(2)
    one, other = np.linalg.qr(rng.standard_normal((P, 2)))[0].T
    found = []
    before = None
    for angle in np.linspace(0, 0.15, 30):
        sums = cell_sums(asked, np.cos(angle) * one + np.sin(angle) * other, step)
        below = np.cumsum(sums, axis=0)[:-1]
        if before is not None:
            moved = below - before
            # Smaller ones are no difference of two records.
            found += list(moved[np.linalg.norm(moved, axis=1) > 1])
        before = below
    every = (asked.X[:, None, :] - asked.X[None, :, :]).reshape(-1, P)
    return np.array(found).reshape(-1, P), every[np.abs(every).sum(axis=1) > 0]


def test_rows_that_change_places_were_told(tmp_path: Path, monkeypatch: Patch) -> None:
    no_rounding(monkeypatch)
    found, every = differences(tmp_path, 1e-7)
    assert (distance(found, every) < 1e-5).sum() >= 10


@pytest.mark.standard
@pytest.mark.parametrize("step", [1e-7, 1e-2, 1.0])
def test_rows_that_change_places_tell_nothing(tmp_path: Path, step: float) -> None:
    found, every = differences(tmp_path, step)
    assert len(found) == 0 or np.median(distance(found, every)) > chance(every, len(found))


def test_shifted_and_scaled_models_are_rounded_alike(tmp_path: Path) -> None:
    """Else many of them would find how near a sum is to the next step of rounding."""
    asked = victim(tmp_path)
    b = np.random.default_rng(2).standard_normal(P)
    eta = asked.X @ b
    first = ranges(asked, b).expected
    for scale, shift in ((1.3, 0.0), (1.9, 0.4), (1.0, 0.01), (1.0, 7.0)):
        own = asked.ask(ScoreRanges(model(asked, scale * b), shift + ONE))
        expected = scale * first + shift * own.rows
        np.testing.assert_allclose(own.expected, expected, atol=1e-9 * np.abs(eta).sum())


def crossings(folder: Path) -> tuple[int, int]:
    """Turn a model slightly until two patients change thirds, and read time and status of both."""
    asked = victim(folder, "cox")
    when = cells.place_times(np.abs(asked.y), 0.05)
    known = right = 0
    one, other = np.eye(P)[:2]
    before = None
    for angle in np.linspace(0, 3, 60):
        b = np.cos(angle) * one + np.sin(angle) * other
        sums = asked.ask(GroupsAt(model(asked, b), ONE, length=0.05))
        table = np.array([sums.events[2], sums.censored[2]])
        highest = set(np.argsort(asked.X @ b)[-20:])
        if before is not None:
            came, went = highest - before[1], before[1] - highest
            moved = table - before[0]
            expected = np.zeros_like(moved)
            for row, sign in [(row, 1) for row in came] + [(row, -1) for row in went]:
                expected[int(asked.y[row] < 0), when[row]] += sign
            known += len(came) > 0
            right += len(came) > 0 and np.array_equal(moved, expected)
        before = table, highest
    return known, right


def test_patients_who_change_thirds_were_told(tmp_path: Path, monkeypatch: Patch) -> None:
    no_rounding(monkeypatch)
    monkeypatch.setattr(assessing, "least_rows", lambda site: 0)
    known, right = crossings(tmp_path)
    assert known == right >= 10


def test_patients_who_change_thirds_tell_nothing(tmp_path: Path) -> None:
    known, right = crossings(tmp_path)
    assert known >= 10
    # Chance: patients of equal status in the same interval change places, and nothing is seen.
    assert right <= 1


def test_events_are_counted_in_pairs(tmp_path: Path) -> None:
    """A cell whose number of events changes by one says that a row with an event came or went."""
    asked = victim(tmp_path, "cox")
    seen = [asked.ask(GroupsAt(model(asked, unit), ONE, length=0.25)).events for unit in np.eye(P)]
    assert all((np.cumsum(own, axis=1) % 2 == 0).all() for own in seen)
    assert np.any(seen)


def no_limits(patch: Patch) -> None:
    patch.setattr(recalibration, "LARGEST_SLOPE", np.inf)
    patch.setattr(recalibration, "LARGEST_INTERCEPT", np.inf)
    patch.setattr(recalibration, "EFFECTIVE_ROWS", 0.0)


def recover_scores(folder: Path, slope: float) -> tuple[Array, Array]:
    """Read single predictions of a model from sums that are steps in the intercept."""
    asked = victim(folder, "binomial")
    b = np.random.default_rng(5).standard_normal(P)
    edges = np.linspace(-3.5, 3.5, 200)
    sums = []
    for edge in edges:
        own = RecalibrationAt(model(asked, b), ONE, intercept=-slope * edge, slope=slope)
        reply = asked.ask(own)
        sums.append(reply.slopes[0])
    moved = -np.diff(np.array(sums), axis=0)
    single = np.abs(moved[:, 0] - 1) < 1e-3
    return moved[single, 1] / moved[single, 0], asked.X @ b


def test_steep_recalibrations_told_predictions(tmp_path: Path, monkeypatch: Patch) -> None:
    no_limits(monkeypatch)
    found, true = recover_scores(tmp_path, 1e4)
    assert len(found) >= N / 2
    assert np.abs(found[:, None] - true).min(axis=1).max() < 1e-2


def test_a_slope_beyond_use_is_refused(tmp_path: Path) -> None:
    asked = victim(tmp_path, "binomial")
    b = model(asked, np.ones(P))
    for question in (
        RecalibrationAt(b, ONE, slope=17.0),
        RecalibrationAt(b, ONE, slope=-17.0),
        RecalibrationAt(b, ONE, intercept=61.0),
        RecalibrationAt(b, ONE, large=-61.0),
    ):
        with pytest.raises(FedLassoError, match="an intercept beyond 60 or slope beyond 16"):
            asked.ask(question)
    # The reason follows from the question alone, so it is stated and no refusal is counted.
    assert not any("refusals" in entry.spent for entry in asked.door.audit.entries())


@pytest.mark.parametrize("slope", [1.0, 16.0])
def test_slopes_within_bounds_tell_no_prediction(tmp_path: Path, slope: float) -> None:
    found, _ = recover_scores(tmp_path, slope)
    assert len(found) == 0


def test_the_curvature_of_a_steep_model_rests_on_a_few_rows(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    """Where the steps of a large model are, nothing is answered."""
    asked = victim(tmp_path, "binomial")
    b = model(asked, 2 * np.random.default_rng(5).standard_normal(P))
    edges = np.linspace(-50, 50, 20)
    points = [RecalibrationAt(b, ONE, intercept=edge, slope=12.0) for edge in edges]
    assert not any(asked.ask(point).curvature[0].any() for point in points)
    assert all(asked.ask(point).curvature[1].any() for point in points[:1])
    monkeypatch.setattr(recalibration, "EFFECTIVE_ROWS", 0.0)
    asked = victim(tmp_path / "before", "binomial")
    assert all(asked.ask(point).curvature[0].any() for point in points)


def ranks_of_one(folder: Path) -> tuple[Array, Array]:
    """With one case at a site, its concordance is its rank by any model."""
    y = np.zeros(N)
    y[17] = 1
    asked = victim(folder, "binomial", y)
    found = [asked.ask(PairsAt(model(asked, unit), ONE)).concordant for unit in np.eye(P)]
    return np.array(found), (asked.X[17] > asked.X).sum(axis=0)


def test_the_rank_of_a_single_case_was_told(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(assessing, "CELL_ROWS", 1)
    found, ranks = ranks_of_one(tmp_path)
    np.testing.assert_array_equal(found, ranks)


def test_a_site_with_few_cases_counts_no_pairs(tmp_path: Path) -> None:
    found, _ = ranks_of_one(tmp_path)
    assert not found.any()


def test_equal_predictions_are_not_cut_by_the_order_of_rows(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    """All rows of a model without columns have the same prediction."""
    no_rounding(monkeypatch)
    asked = victim(tmp_path)
    observed = ranges(asked, np.zeros(P)).observed
    found = observed[observed != 0]
    np.testing.assert_allclose(found, asked.y.sum() / len(found))


def hazard_steps(folder: Path) -> tuple[Array, Array]:
    """Bisect times until every event of a site has a step of the baseline hazard of its own."""
    asked = victim(folder, "cox", allow=("BaselineAt",))
    edges = np.linspace(0, np.abs(asked.y).max() + 0.01, 4000)
    hazard = asked.ask(BaselineAt(np.zeros(P), edges)).hazard
    return edges[1:][np.diff(hazard) > 0], np.sort(asked.y[asked.y > 0])


def test_a_baseline_told_the_time_of_every_event(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(inference, "floor_times", lambda asked, times: asked)
    monkeypatch.setattr(inference, "join_events", lambda counts, least: np.arange(len(counts) + 1))
    found, true = hazard_steps(tmp_path)
    assert len(found) > 0.9 * len(true)
    assert np.abs(found[:, None] - true).min(axis=1).max() < 1e-2


def test_a_baseline_has_steps_of_several_events(tmp_path: Path) -> None:
    found, true = hazard_steps(tmp_path)
    times = victim(tmp_path / "again", "cox").y
    assert len(found) <= len(true) // 5
    # They are where the grid of the site has its cuts, to the distance of the times asked about.
    width = cells.time_width(cells.TIME_FLOOR * float(np.abs(times).mean()))
    near = np.abs(found - width * np.rint(found / width))
    assert near.max() < 2 * np.abs(times).max() / 4000 < width / 4


def test_numbers_of_rows_of_a_level_are_known_to_a_factor_of_two() -> None:
    """Any minimum number of rows would find the rows of every level by bisection."""
    rng = np.random.default_rng(0)
    for rows in rng.integers(10, 2000, 20).tolist():
        texts = from_cells(["level"] * rows + ["another"] * 10)
        least = [k for k in range(1, 4000) if "level" in common_levels(texts, level_rows(k))]
        assert level_rows(max(least)) <= rows < 2 * level_rows(max(least))
        assert max(least) in [10 * 2**k for k in range(9)]


def test_a_policy_asks_for_larger_cells(tmp_path: Path) -> None:
    asked = victim(tmp_path, min_cell_rows=14)
    rows = ranges(asked, np.ones(P)).rows
    assert rows[rows > 0].tolist() == [15.0] * 4


def test_predictions_that_differ_by_rounding_are_equal() -> None:
    scores = np.append(np.full(20, 0.1 + 0.2), np.full(20, 0.3))
    halves = np.array(list(cells.weigh_ranks(scores, cells.rank_ends(40, 2))))
    np.testing.assert_allclose(halves, 0.5)


def test_short_intervals_of_time_are_joined() -> None:
    """Else cells of any length would locate the times of single rows."""
    times = np.random.default_rng(0).exponential(1.0, 200)
    place = cells.place_times(times, 1e-6)
    width = cells.time_width(1e-6)
    # The first cut of the site's grid is beyond all intervals of that length.
    assert width * cells.STRETCHES < cells.TIME_FLOOR * times.mean()
    assert set(place) == {cells.STRETCHES - 1}


def test_recalibrations_have_few_bits(tmp_path: Path) -> None:
    asked = victim(tmp_path, "binomial")
    b = np.random.default_rng(5).standard_normal(P)
    question = RecalibrationAt(model(asked, b), ONE, intercept=0.3, slope=0.7)
    reply = asked.ask(question)
    eta = asked.X @ b
    residual = 1 / (1 + np.exp(-(0.3 + 0.7 * eta))) - asked.y
    for found, terms in zip(reply.slopes[0], (residual, residual * eta), strict=True):
        step = 2.0 ** (np.frexp(np.linalg.norm(terms))[1] - 12)
        assert found == step * np.rint(found / step)
        assert 0 < abs(found - terms.sum()) <= step / 2
