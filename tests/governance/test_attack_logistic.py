"""Logistic cells: gradients at chosen models are linear equations in how many rows have each value.

No rule withstands this where columns have few values. The test states what it recovers, and that a
site can stop it with `max_numbers`.
"""

from pathlib import Path

import numpy as np

from fedlasso import FedLassoError, Site
from fedlasso.federation import decode, encode
from fedlasso.governance import Audit, Policy
from fedlasso.governance.guard import GuardedSite
from fedlasso.governance.officer_summary import find_unusual
from fedlasso.numerics import Array
from fedlasso.sites import GradientAt
from fedlasso.sites.questions import GradientSum

N = 420
AGES = np.arange(40, 90)
# Every combination of age, sex and smoker, and a column of ones for the intercept.
CELLS = np.array([(a, s, k, 1.0) for a in AGES for s in (0, 1) for k in (0, 1)])


def draw() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    age = np.clip(np.rint(rng.normal(65, 10, N)), AGES[0], AGES[-1])
    X = np.column_stack([age, rng.random(N) < 0.5, rng.random(N) < 0.3]).astype(float)
    return X, (rng.random(N) < 0.4).astype(float)


def models() -> list[Array]:
    """Models that change from zero to one within a few years, elsewhere for each sex and habit."""
    rng = np.random.default_rng(1)
    found = []
    for at in np.linspace(42, 88, 160):
        sex, smoker = rng.uniform(-10, 10, 2)
        found.append(np.array([1.0, sex, smoker, -at - (sex + smoker) / 2]))
    return found


def count_cells(folder: Path, most: float) -> tuple[Array, Array]:
    """The rows of every cell as the attack finds them, and the true ones."""
    X, y = draw()
    site = Site("a", X, y, loss="binomial", intercept=True, raw=True)
    policy = Policy(max_numbers=most)
    door = GuardedSite(site, policy, Audit(folder / "audit.jsonl"), "ab" * 16, data="ef" * 16)
    equations, answers = [], []
    for b in models():
        try:
            reply = decode(door.answer_bytes(encode(GradientAt(b))))
        except FedLassoError:
            continue
        assert isinstance(reply, GradientSum)
        # Each sum has an unknown constant: that of the column times the response.
        mean = 1 / (1 + np.exp(-CELLS @ b))
        equations.append(np.hstack([CELLS.T * mean, -np.eye(4)]))
        answers.append(reply.gradient)
    found = np.linalg.lstsq(np.vstack(equations), np.concatenate(answers), rcond=1e-13)[0]
    ones = np.column_stack([X, np.ones(N)])
    true = np.array([(ones == cell).all(axis=1).sum() for cell in CELLS])
    return np.rint(found[:-4]), true


def test_rows_of_every_combination_are_told_by_default(tmp_path: Path) -> None:
    found, true = count_cells(tmp_path, Policy().max_numbers)
    assert (true == 1).sum() > 40
    np.testing.assert_array_equal(found, true)
    # The site's report marks it.
    (line,) = find_unusual(list(Audit(tmp_path / "audit.jsonl").entries()))
    assert "answers at models that the coordinator chose (GradientAt)" in line


def count_hits(folder: Path, most: float) -> tuple[int, float]:
    """Single rows found, and by chance: as many cells called single, drawn from all."""
    found, true = count_cells(folder, most)
    single = true == 1
    return int((found[single] == 1).sum()), float(single.sum() * (found == 1).mean())


def test_a_limit_that_fits_need_is_not_enough(tmp_path: Path) -> None:
    hits, chance = count_hits(tmp_path, 0.2)
    assert hits > 2 * chance


def test_a_site_that_sends_few_numbers_keeps_them(tmp_path: Path) -> None:
    hits, chance = count_hits(tmp_path, 0.02)
    assert hits <= chance + 3 * np.sqrt(chance)
