"""Attack 9, and others by few rows: where one patient stands apart, sums tell the patient."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.governance.victims import Victim, distance, draw_records

from fedlasso.governance import Policy
from fedlasso.governance.door_messages import Refusal
from fedlasso.numerics import Array
from fedlasso.numerics.triangles import unpack
from fedlasso.sites import FoldMoments, GradientAt
from fedlasso.sites.fold_assignment import FoldDraw
from fedlasso.sites.views import ColumnSums

N, P = 150, 4
ANY = Policy(min_cell_rows=0, min_part_cell_rows=0)


def marked(ones: int, seed: int = 1) -> tuple[Array, Array]:
    """Records whose last column is one for a few patients, the first ones."""
    X, y = draw_records(N, P, seed)
    X[:, -1] = 0.0
    X[:ones, -1] = 1.0
    return X, y


def two_gradients(victim: Victim) -> Array:
    """Sums of the columns over the rows whose last column is one."""
    replies: list[Any] = [victim.ask(GradientAt(b)) for b in (np.zeros(P), np.eye(P)[-1])]
    found: Array = replies[1].gradient - replies[0].gradient
    return found


def test_a_column_with_a_single_one_is_not_asked_about(tmp_path: Path) -> None:
    X, y = marked(1)
    before = Victim(tmp_path / "before", X, y, ANY).opened()
    np.testing.assert_allclose(two_gradients(before), X[0], atol=1e-8)
    for ones in (1, 4, N - 1, N - 4):
        after = Victim(tmp_path / f"after{ones}", *marked(ones))
        refused = after.open()
        assert isinstance(refused, Refusal)
        assert refused.text == (
            "columns 'x3' differ from their commonest value in fewer than 5 rows here; leave them "
            "out with --drop, or group their values"
        )
        after.opened(*after.columns[:-1])
    for ones in (0, 5, N):
        Victim(tmp_path / f"fine{ones}", *marked(ones)).opened()


def test_a_response_that_one_patient_has_is_not_asked_about(tmp_path: Path) -> None:
    X, _ = draw_records(N, P, 2)
    y = np.zeros(N)
    y[9] = 1.0
    before: Any = Victim(tmp_path / "before", X, y, ANY).opened().ask(GradientAt(np.zeros(P)))
    np.testing.assert_allclose(-before.gradient, X[9], atol=1e-8)
    refused = Victim(tmp_path / "after", X, y).open()
    assert isinstance(refused, Refusal)
    assert refused.text.startswith("columns 'y' differ from their commonest value")


def lone_patients(victim: Victim) -> list[Array]:
    """Records from folds in which the last column is one in a single row."""
    victim.opened()
    reply: Any = victim.ask(FoldMoments("folds 10 0", on=victim.view()))
    if isinstance(reply, Refusal):
        return []
    folds = [unpack(packed, P + 2) for packed in reply.moments]
    return [A[1:, -2] for A in folds if round(A[0, -2]) == 1]


def test_no_fold_has_a_single_row_at_a_value(tmp_path: Path) -> None:
    X, y = marked(12, seed=3)
    before = Victim(tmp_path / "before", X, y, ANY)
    found = np.array(lone_patients(before))
    assert len(found) >= 1
    np.testing.assert_allclose(
        distance(found[:, [0, 1, 2, 4]], before.rows[:, [0, 1, 2, 4]]), 0, atol=1e-8
    )
    assert not lone_patients(Victim(tmp_path / "after", X, y))


def missing_rows(victim: Victim) -> Array:
    """Sums over the rows at which the last column is missing, by two guesses at what is missing.

    A missing value is at the mean that whoever asks has given, so that two means make a column that
    is not zero at those rows alone.
    """
    sums: Any = victim.ask(ColumnSums(missing=True))
    found = []
    for mean in (40.0, 60.0):
        means = np.zeros(P)
        means[-1] = mean
        reply: Any = victim.ask(GradientAt(np.eye(P)[-1], on=victim.view("", means)))
        base: Any = victim.ask(GradientAt(np.zeros(P), on=victim.view("", means)))
        found.append(reply.gradient - base.gradient)
    # sum over present rows of x_j (x_k - mean): its slope in the mean is minus their sum of x_j.
    present = (found[0] - found[1]) / 20.0
    return np.asarray((sums.sums - present)[:-1])


def test_a_single_missing_value_is_a_rare_level(tmp_path: Path) -> None:
    X, y = draw_records(N, P, 4)
    for holes in (1, 6):
        gaps = X.copy()
        gaps[:holes, -1] = np.nan
        before = Victim(tmp_path / f"before{holes}", gaps, y, ANY).opened(missing="mean")
        np.testing.assert_allclose(missing_rows(before), X[:holes, :-1].sum(axis=0), rtol=1e-6)
    gaps[1:6, -1] = 50.0
    refused = Victim(tmp_path / "after", gaps, y).open(missing="mean")
    assert refused.text.startswith("columns 'x3' are missing in fewer than 5 rows here; leave")


@pytest.mark.parametrize("split", ["holdout 0.2 0", "half 1 0", "fold 1 of 5 0"])
def test_no_part_of_a_split_has_few_rows_at_a_value(split: str, tmp_path: Path) -> None:
    """The site draws again until none has, or says that it cannot."""
    answered = 0
    for seed in range(12):
        X, y = marked(14, seed)
        victim = Victim(tmp_path / str(seed), X, y).opened()
        if isinstance(victim.ask(ColumnSums(split)), Refusal):
            continue
        answered += 1
        guard = victim.door._site
        assert guard is not None
        parts = guard.site.draw.divide(split, N)
        ones = {purpose: int(X[rows, -1].sum()) for purpose, rows in parts.items()}
        assert 1 not in ones.values()
    assert answered >= 6


def lone_in_the_rest(victim: Victim, splits: list[str]) -> int:
    """How many splits leave one row at the rare value among the rows that do not train.

    Sums over all rows minus sums over those that train are sums over the others.
    """

    def at_value(split: str) -> Any:
        view = victim.view(split)
        one = victim.ask(GradientAt(np.eye(P)[-1], on=view))
        none = victim.ask(GradientAt(np.zeros(P), on=view))
        return None if isinstance(one, Refusal) else one.gradient - none.gradient

    everybody = at_value("")
    reported = [found for split in splits if (found := at_value(split)) is not None]
    return sum(round(float((everybody - found)[-1])) == 1 for found in reported)


def test_the_rows_that_a_split_leaves_out_are_not_few_at_a_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = marked(6)
    splits = [f"fold {k} of {n} 0" for n in (5, 7) for k in range(1, n + 1)]
    assert lone_in_the_rest(Victim(tmp_path / "after", X, y).opened(), splits) == 0
    # As it would be if atoms were not looked at.
    monkeypatch.setattr(FoldDraw, "_suits", lambda self, atoms: True)
    assert lone_in_the_rest(Victim(tmp_path / "before", X, y).opened(), splits) > 0


def lone_missing(victim: Victim, splits: list[str]) -> int:
    """How many splits leave out one row at which the last column is missing."""
    everybody: Any = victim.ask(ColumnSums(missing=True))
    reported = [victim.ask(ColumnSums(split, missing=True)) for split in splits]
    left = [everybody.missing[-1] - t.missing[-1] for t in reported if not isinstance(t, Refusal)]
    return sum(round(float(count)) == 1 for count in left)


def test_the_rows_that_a_split_leaves_out_are_not_missing_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = draw_records(N, P, 4)
    X[:6, -1] = np.nan
    splits = [f"holdout 0.2 {seed}" for seed in range(24)]
    assert lone_missing(Victim(tmp_path / "after", X, y).opened(missing="mean"), splits) == 0
    monkeypatch.setattr(
        "fedlasso.sites.fold_assignment.few_missing",
        lambda table, rows, cell: np.zeros(table.p, bool),
    )
    assert lone_missing(Victim(tmp_path / "before", X, y).opened(missing="mean"), splits) > 0
