"""Choices from moments: the columns that fits to halves of the folds select."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.fitting.folded import Records, choose, draw_records
from helpers.loops import loop
from helpers.swept import swept_lasso
from numpy.typing import NDArray

from fedlasso.fitting import Rule
from fedlasso.fitting.candidates import LASSO
from fedlasso.fitting.evidence import Folded
from fedlasso.fitting.evidence.moment_evidence import ASSIGNMENTS, PLENTY
from fedlasso.fitting.goals.compared import FEWER, PAIRS, SPARE, VOTES, count_votes, cut_halves
from fedlasso.fitting.goals.prediction import ALMOST_ALL, FEWEST_PENALTIES, GAIN, find_end
from fedlasso.fitting.result import How
from fedlasso.fitting.tuning import BEYOND, SURE_BY, average_folds, judge_by_moments
from fedlasso.numerics.spike_slab import sample_posterior

by_seed = loop("seed", range(4))


def halves_of(records: Records, seed: int) -> list[NDArray[np.bool_]]:
    """Rows of every half, with the generator that cuts the moments."""
    rng = np.random.default_rng(seed)
    folds = np.unique(records.fold)
    found = []
    for _ in range(PAIRS):
        own = np.isin(records.fold, folds[rng.permutation(len(folds))[: len(folds) // 2]])
        found += [own, ~own]
    return found


@by_seed
def test_votes_are_those_of_fits_to_the_records_of_every_half(seed: int) -> None:
    records = draw_records(seed, m=80, p=6, folds=10)
    folded = replace(records.folded, seed=seed)
    votes = np.zeros(6)
    for rows in halves_of(records, seed):
        half = records.take(rows).standard
        votes += swept_lasso(half.X, half.y, 0.3).coef_ != 0
    assert np.allclose(count_votes(folded, 0.3), votes / (2 * PAIRS))


@pytest.mark.parametrize("folds", [1, 2, 3, 5, 20])
def test_two_halves_are_all_rows_and_each_has_half_of_the_folds(folds: int) -> None:
    folded = draw_records(1, m=60, p=4, folds=folds).folded
    halves = list(cut_halves(folded))
    assert len(halves) == 2 * PAIRS
    for one, other in zip(halves[::2], halves[1::2], strict=True):
        assert np.allclose(one.products + other.products, folded.whole.products)
        assert one.rows == pytest.approx(60 * (folds // 2) / folds, abs=1)


def test_the_seed_decides_the_halves() -> None:
    folded = draw_records(1, m=60, p=4, folds=20).folded
    first = [half.products for half in cut_halves(folded)]
    again = [half.products for half in cut_halves(folded)]
    other = [half.products for half in cut_halves(replace(folded, seed=1))]
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.standard
@by_seed
@pytest.mark.parametrize(
    ("goal", "rule"), [("selection", "1se"), ("prediction", "1se")], ids=["selection", "prediction"]
)
def test_selected_are_the_columns_with_votes_or_those_of_one_standard_error(
    goal: str, rule: Rule, seed: int
) -> None:
    for noise in (1.0, 5.0, 20.0):
        folded = draw_records(seed, m=80, p=10, folds=10, noise=noise).folded
        choice = choose(folded, goal, rule).choice
        lasso = choice.judged
        at = lasso.largest_within(SPARE * np.sqrt(2 / 80))
        voted = count_votes(folded, float(lasso.penalties[at])) >= VOTES
        if choice.support is None:
            assert choice.at == lasso.sparsest
        elif choice.how is How.MOST_PROBABLE:
            normal = folded.normal(folded.whole)
            likely = sample_posterior(normal, 10, np.zeros(10), folded.seed).support
            assert np.array_equal(choice.support, likely)
            assert choice.at == np.argmin(lasso.error[0])
            assert choice.error <= lasso.limit
        else:
            assert choice.at == at
            assert np.array_equal(choice.support, voted)
            assert choice.error <= lasso.limit


@by_seed
def test_strong_columns_are_selected_and_hardly_another(seed: int) -> None:
    records = draw_records(seed, m=400, p=12, folds=20, noise=0.3)
    choice = choose(records.folded, "selection", "1se").choice
    assert choice.support is not None
    assert choice.support[:3].all()
    assert choice.support[3:].sum() <= 1


@pytest.mark.standard
def test_among_many_columns_the_likeliest_are_selected_where_they_are_far_fewer() -> None:
    """Votes name many columns that have no effect, and chances do not."""
    hits = 0
    for seed in range(6):
        records = draw_records(seed, m=300, p=120, folds=10, noise=2.0)
        choice = choose(records.folded, "selection", "1se").choice
        lasso = choice.judged
        assert choice.support is not None
        if choice.how is not How.MOST_PROBABLE:
            continue
        hits += 1
        at = lasso.largest_within(SPARE * np.sqrt(2 / 300))
        voted = count_votes(records.folded, float(lasso.penalties[at])) >= VOTES
        assert 0 < choice.support.sum() <= FEWER * voted.sum()
        assert choice.error <= lasso.limit
        assert choice.how.value.startswith("the columns with the largest expected F1")
    assert hits > 0


def draw_twins(seed: int, bonus: float, m: int = 30, folds: int = 10) -> Folded:
    """Two nearly equal columns whose difference adds something to the response, or nothing."""
    rng = np.random.default_rng([seed, 13])
    common = rng.standard_normal(m)
    difference = rng.standard_normal(m)
    X = np.column_stack([common, common + 0.001 * difference])
    y = common + bonus * difference + 0.03 * rng.standard_normal(m)
    return Records(X, y, rng.permutation(np.arange(m) % folds)).folded


@pytest.mark.parametrize("noise", [0.0, 0.1, 1.0, 5.0])
def test_a_path_ends_where_one_penalty_more_explains_hardly_more(noise: float) -> None:
    records = draw_records(3, m=60, p=6, noise=noise).standard
    folded = records.folded
    normal = folded.normal(folded.whole)
    penalties = normal.largest_penalty * np.geomspace(1, 1e-5, 120)
    end = find_end(normal, penalties)
    explained = np.array(
        [
            1
            - np.mean((records.y - records.X @ swept_lasso(records.X, records.y, lam).coef_) ** 2)
            / records.y.var()
            for lam in penalties[: end + 1]
        ]
    )
    ended = (np.diff(explained) < GAIN * explained[1:]) | (explained[1:] > ALMOST_ALL)
    assert end >= FEWEST_PENALTIES
    assert ended[-1] or end == len(penalties) - 1
    assert not ended[FEWEST_PENALTIES - 1 : -1].any()


@by_seed
@pytest.mark.parametrize("bonus", [0.0, 0.005, 0.01, 0.2])
def test_beyond_the_end_of_the_path_a_penalty_must_be_far_better(seed: int, bonus: float) -> None:
    folded = draw_twins(seed, bonus)
    chosen = choose(folded, "prediction", "min")
    lasso = chosen.lasso
    end = find_end(folded.normal(folded.whole), lasso.penalties)
    plain, *others = chosen.candidates
    assert plain.at == int(np.argmin(lasso.error[0, : end + 1]))
    for other in others:
        error, se = average_folds(other.each - plain.each, lasso.rows)
        assert error < -SURE_BY * se
        assert other.error <= BEYOND * plain.error or np.argmin(lasso.error[0]) <= end
    # Where the difference of the columns says much, the path does not end too early.
    assert others or bonus < 0.2
    # The objective takes the smallest error wherever it is.
    objective = choose(folded, "objective", "min")
    assert objective.choice.at == int(np.argmin(objective.lasso.error[0]))


def test_a_smaller_error_beyond_the_end_of_the_path_may_be_luck() -> None:
    reported = []
    for seed in range(20):
        folded = draw_twins(seed, 0.0)
        choice = choose(folded, "prediction", "min").choice
        if choice.error > choice.judged.error[0].min():
            reported.append(choice.how.value)
    assert reported
    assert set(reported) == {"the smallest error before smaller penalties hardly improve the fit"}


@pytest.mark.parametrize("folds", [PLENTY, PLENTY + 1, 20])
def test_pairs_of_many_folds_have_every_row_in_every_deal(folds: int) -> None:
    folded = draw_records(2, m=60, p=4, folds=folds).folded
    paired = folded.paired()
    if folds <= PLENTY:
        assert paired is folded
        return
    count = (folds + 1) // 2
    assert len(paired.folds) == ASSIGNMENTS * count
    assert np.allclose(paired.whole.products, folded.whole.products, rtol=1e-12)
    assignments = [paired.folds[k * count : (k + 1) * count] for k in range(ASSIGNMENTS)]
    for assigned in assignments:
        total = np.sum([fold.products for fold in assigned], axis=0)
        assert np.allclose(total, folded.whole.products)
    assert not np.allclose(assignments[0][0].products, assignments[1][0].products)


def test_the_same_deal_twice_has_the_error_and_the_standard_error_of_one() -> None:
    once = draw_records(2, m=60, p=4, folds=6).folded
    twice = replace(once, folds=once.folds * 2, assignments=2)
    one = judge_by_moments(once, LASSO)
    two = judge_by_moments(twice, LASSO)
    assert np.allclose(one.penalties, two.penalties)
    assert np.allclose(one.error, two.error)
    assert np.allclose(one.se, two.se)


@by_seed
def test_prediction_is_judged_on_pairs_of_folds_and_selection_on_folds(seed: int) -> None:
    folded = draw_records(seed, m=60, p=5, folds=20).folded
    assert len(choose(folded, "prediction", "min").lasso.rows) == 10 * ASSIGNMENTS
    for goal in ("selection", "objective"):
        assert len(choose(folded, goal, "min").lasso.rows) == 20
