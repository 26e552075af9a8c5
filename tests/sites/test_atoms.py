"""Atoms: splits are drawn with the site's secret, and another seed gives the same folds."""

import numpy as np

from fedlasso.numerics import Table
from fedlasso.sites import atoms
from fedlasso.sites.fold_assignment import FoldDraw

ROWS = 400
SECRETS = [bytes([k]) for k in range(8)]
SPLITS = ("holdout 0.5 0", "half 1 0")


def draw(secret: bytes) -> FoldDraw:
    columns = np.random.default_rng(0).standard_normal((ROWS, 2))
    return FoldDraw("a", secret, (Table(columns),))


def test_who_knows_no_secret_knows_no_part_of_a_split() -> None:
    for split in SPLITS:
        chosen = [atoms.choose_atoms(split, 20, 0, secret)["training"] for secret in SECRETS]
        assert len({tuple(sorted(own)) for own in chosen}) == len(SECRETS)
        again = atoms.choose_atoms(split, 20, 0, SECRETS[0])["training"]
        np.testing.assert_array_equal(again, chosen[0])


def test_rows_are_cut_with_the_secret() -> None:
    cuts = {draw(secret).finest.tobytes() for secret in SECRETS}
    assert len(cuts) == len(SECRETS)


def test_another_seed_or_another_fit_gives_the_same_folds() -> None:
    for count in (2, 5, 10):
        first, *others = (
            [own.tolist() for own in draw(b"secret").fold_rows(f"folds {count} {seed}", ROWS)]
            for seed in range(6)
        )
        assert all(other == first for other in others)
        assert sorted(row for own in first for row in own) == list(range(ROWS))


def test_every_part_of_every_split_is_a_union_of_atoms() -> None:
    cut = draw(b"secret")
    for split in (*SPLITS, "fold 2 of 5 3", "holdout 0.2 9"):
        for rows in cut.divide(split, ROWS).values():
            inside = np.bincount(cut.atoms[rows], minlength=20)
            assert set(inside) <= {0, ROWS // 20}
