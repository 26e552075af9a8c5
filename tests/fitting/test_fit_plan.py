"""Plans: what is chosen before the first question never costs more than what was given."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedlasso import FedLassoError
from fedlasso.fitting import GOALS
from fedlasso.fitting.budget import MOST_BYTES
from fedlasso.fitting.evidence.moment_evidence import vectors_of
from fedlasso.fitting.evidence.split_evidence import SCALING
from fedlasso.fitting.fit_plan import EMPTY_FOLDS, FOLD_COUNTS, MORE_FOLDS, make_plan
from fedlasso.sites import count_numbers

more = st.booleans()
columns = st.integers(1, 3000)
row_counts = st.integers(4, 10**6)
CANDIDATES = (MORE_FOLDS, *FOLD_COUNTS)


@given(p=columns, rows=row_counts, many=more, uploads=st.integers(1, 5000))
def test_no_plan_costs_more_than_was_given(p: int, rows: int, many: bool, uploads: int) -> None:
    plan = make_plan(p, rows, more_folds=many, uploads=uploads)
    assert plan.uploads <= uploads
    assert 1 <= plan.folds <= rows
    fewest = SCALING + vectors_of(p, min(FOLD_COUNTS[-1], rows))
    assert (plan.how == "moments") == (fewest <= uploads)
    if plan.how == "moments":
        assert plan.uploads == SCALING + vectors_of(p, plan.folds)
        assert plan.folds in {min(count, rows) for count in CANDIDATES}
        assert f"{vectors_of(p, plan.folds)} vectors of {p} numbers per site" in plan.words
    if plan.how == "holdout":
        assert f"at most {uploads} vectors of {p} numbers per site, because" in plan.words
        assert f"would take {fewest} uploads" in plan.words
        (buys,) = re.findall(r"cross-validation would take (\d+) uploads", plan.words)
        # What more uploads would buy is what the plan with so many is.
        assert int(buys) > uploads
        assert make_plan(p, rows, more_folds=many, uploads=int(buys)).how != "holdout"


@given(p=columns, rows=row_counts, many=more)
def test_without_a_number_of_uploads_moments_have_a_size(p: int, rows: int, many: bool) -> None:
    plan = make_plan(p, rows, more_folds=many)
    fewest = SCALING + vectors_of(p, min(FOLD_COUNTS[-1], rows))
    assert (plan.how == "moments") == (8 * p * fewest <= MOST_BYTES)
    if plan.how == "moments":
        assert 8 * p * plan.uploads <= MOST_BYTES
        assert "MB)" in plan.words
    else:
        assert "MB per site" in plan.words


@given(p=columns, rows=st.integers(20, 10**6), uploads=st.none() | st.integers(1, 5000))
def test_more_folds_never_come_with_fewer_uploads(p: int, rows: int, uploads: int | None) -> None:
    plan = make_plan(p, rows, uploads=uploads)
    more = make_plan(p, rows, uploads=None if uploads is None else 2 * uploads)
    if plan.how == "moments":
        assert more.how == "moments"
        assert more.folds >= plan.folds


def test_twenty_folds_where_rows_are_few_or_columns_are_selected() -> None:
    assert make_plan(13, 199).folds == 20
    assert make_plan(13, 200).folds == 10
    folds = {
        name: make_plan(13, 200, more_folds=goal.more_folds).folds for name, goal in GOALS.items()
    }
    assert folds == {"prediction": 10, "selection": 20, "objective": 10, "discoveries": 10}
    assert make_plan(13, 7).folds == 7
    # A number that somebody wants is the one.
    assert make_plan(13, 100, more_folds=True, cv=3).folds == 3


@given(p=columns, rows=row_counts, many=more, cv=st.integers(2, 50), uploads=st.integers(1, 5000))
def test_folds_that_were_asked_for_are_made_or_refused(
    p: int, rows: int, many: bool, cv: int, uploads: int
) -> None:
    fits = SCALING + vectors_of(p, min(cv, rows)) <= uploads
    refusal = ""
    try:
        plan = make_plan(p, rows, more_folds=many, cv=cv, uploads=uploads)
    except FedLassoError as error:
        refusal = str(error)
    if refusal:
        assert not fits
        assert refusal.startswith(f"{cv} folds take ")
        assert refusal.endswith("give more `uploads`, fewer folds (`cv`), or a `penalty`")
        assert f"`uploads` is {uploads};" in refusal
        assert "\n" not in refusal
    else:
        assert plan.uploads <= uploads
        assert plan.how != "holdout"
        assert (plan.how == "moments") == fits
        assert plan.folds == min(cv, rows) or not fits


def test_ten_folds_of_600_columns_are_refused_with_20_uploads() -> None:
    with pytest.raises(FedLassoError, match=r"^10 folds take \d+ uploads or more with 600 columns"):
        make_plan(600, 500, cv=10, uploads=20)


@given(p=st.integers(1, 200), rows=row_counts, many=more)
def test_a_refused_number_of_folds_leads_to_the_next_plan(p: int, rows: int, many: bool) -> None:
    refused: dict[int, str] = {}
    # However small the table, every plan differs from those that were refused.
    for _ in CANDIDATES:
        plan = make_plan(p, rows, more_folds=many, refused=refused)
        if plan.how != "moments":
            break
        assert plan.folds not in refused
        assert not refused or plan.folds < min(refused)
        refused[plan.folds] = f"site 'a' does not tell moments of {plan.folds} folds"
    plan = make_plan(p, rows, more_folds=many, refused=refused)
    assert plan.how != "moments"
    assert f"because {next(iter(refused.values()))}" in plan.words


@given(p=st.integers(1, 100), rows=row_counts, cv=st.integers(2, 30))
def test_refused_folds_that_were_asked_for_are_not_asked_for_again(
    p: int, rows: int, cv: int
) -> None:
    folds = make_plan(p, rows, cv=cv).folds
    with suppress(FedLassoError):
        plan = make_plan(p, rows, cv=cv, refused={folds: "site 'a' refuses"})
        assert plan.how != "moments"


@pytest.mark.parametrize("p", [1, 2, 13, 600])
@pytest.mark.parametrize("folds", [1, 5, 10])
def test_vectors_are_counted_in_whole_ones(p: int, folds: int) -> None:
    vectors = vectors_of(p, folds)
    assert (vectors - 1) * p < folds * count_numbers(p) <= vectors * p


def test_few_rows_of_many_columns_are_cross_validated_by_gradients() -> None:
    for rows in (10, 25, 60, 199):
        plan = make_plan(3051, rows)
        assert (plan.how, plan.folds) == ("folds", 10)
        assert plan.uploads <= 1100
    assert make_plan(3051, 200).how == "holdout"
    assert make_plan(3051, 25, uploads=400).folds == 5
    assert make_plan(3051, 25, uploads=100).how == "holdout"


@pytest.mark.parametrize("rows", [90, 300])
def test_sites_of_few_parts_are_held_out_in_part(rows: int) -> None:
    empty = dict.fromkeys((20, 10, 5, 3, 2), EMPTY_FOLDS)
    plan = make_plan(13, rows, refused=empty)
    assert plan.how == "holdout"
    assert EMPTY_FOLDS in plan.words
