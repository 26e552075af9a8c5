"""Attacks by the coordinator on real processes with the default policy, and what they leave.

The coordinator alone asks; sums are masked. Chance is how near what was found is to records whose
columns are shuffled: the first percentile of the median distance.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("nvflare")

from helpers.governance.victims import distance, shuffle_columns
from helpers.nets import run

from fedlasso.deploy.network import Network
from fedlasso.deploy.nvflare.line import connect
from fedlasso.deploy.nvflare.local import START, LocalFederation
from fedlasso.federation import Ledger
from fedlasso.fitting import Settings
from fedlasso.models import NetworkSource
from fedlasso.numerics import Array
from fedlasso.sites import GradientAt, Viewed, standardise
from fedlasso.sites.assessing import ScoreRanges
from fedlasso.sites.standardising import Scaling

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.full]
SITES = ("a", "b", "c", "d")
N = 420
AGES = np.arange(40, 90)
CELLS = np.array([(a, s, k, 1.0) for a in AGES for s in (0, 1) for k in (0, 1)])
FEW = ("age", "sex", "smoker")
# Columns in which no two records are alike.
MEASURED = tuple(f"x{k}" for k in range(6))
ONE = np.zeros(1)


def draw() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    age = np.clip(np.rint(rng.normal(65, 10, N)), AGES[0], AGES[-1])
    X = np.column_stack([age, rng.random(N) < 0.5, rng.random(N) < 0.3]).astype(float)
    return X, (rng.random(N) < 0.4).astype(float)


def measure() -> Array:
    return np.random.default_rng(2).standard_normal((N, len(MEASURED))).round(6)


@contextmanager
def federate(folder: Path, X: Array, columns: Sequence[str], y: Array) -> Iterator[LocalFederation]:
    tables = {}
    for k, site in enumerate(SITES):
        tables[site] = folder / f"{site}.csv"
        frame = pd.DataFrame(X[k::4], columns=list(columns))
        frame.assign(y=y[k::4]).to_csv(tables[site], index=False)
    with LocalFederation(folder / "project", tables) as federation:
        yield federation


def open_fit(network: Network, local: LocalFederation, family: str) -> tuple[Viewed, Scaling]:
    """All rows, as the sites standardise them."""
    source = NetworkSource(str(local.folder), secrets.token_hex(16), "y")
    network.open(source, Settings(family=family))
    assert network.masked
    return standardise(Ledger(network))


def find_cells(view: Viewed, scaling: Scaling) -> Array:
    """How many rows have each combination, from gradients at chosen models."""
    cells = (CELLS - scaling.means) * scaling.factors
    rng = np.random.default_rng(1)
    equations, answers = [], []
    # Steeper models and those of the oldest rest on few rows, and are refused.
    for at in np.linspace(50, 80, 240):
        slopes = 0.5 * np.append(1.0, rng.uniform(-10, 10, 2))
        middle = np.array([at, 0.5, 0.5])
        b = np.append(slopes, slopes @ (scaling.means[:3] - middle)) / scaling.factors
        mean = 1 / (1 + np.exp(-cells @ b))
        equations.append(np.hstack([cells.T * mean, -np.eye(4)]))
        answers.append(view.total(GradientAt(b)).gradient)
    found = np.linalg.lstsq(np.vstack(equations), np.concatenate(answers), rcond=1e-13)[0]
    return np.asarray(np.rint(found[:-4]))


def rank_sums(view: Viewed, base: Array, step: float) -> tuple[Array, Array]:
    """Sums of the columns over ranks, by moving a model a little along each, and rows of ranks."""
    start = view.total(ScoreRanges(base[:, None], ONE))
    units = np.eye(len(base))
    moved = [view.total(ScoreRanges((base + step * u)[:, None], ONE)) for u in units]
    sums = np.column_stack([(own.expected - start.expected) / step for own in moved])
    return sums[start.rows > 0], start.rows[start.rows > 0]


def nearest(found: Array, rows: Array) -> float:
    return float(np.median(distance(found, rows)))


def by_chance(found: Array, rows: Array, kind: Callable[[Array], Array]) -> float:
    """How near it is to other records, or their differences: those with shuffled columns."""
    rng = np.random.default_rng(0)
    medians = [nearest(found, kind(shuffle_columns(rows, rng))) for _ in range(50)]
    return float(np.quantile(medians, 0.01))


def pairs_of(rows: Array) -> Array:
    """Differences of any two records of one site."""
    own = [rows[k::4] for k in range(4)]
    every = np.vstack([(a[:, None] - a[None]).reshape(-1, a.shape[1]) for a in own])
    return np.asarray(every[np.abs(every).sum(axis=1) > 0])


def check_ranges(view: Viewed, scaling: Scaling) -> None:
    """No mean over a rank, and no difference of two models' cumulative sums, is a record's."""
    p = len(MEASURED)
    rows = (measure() - scaling.means) * scaling.factors
    one, other = np.linalg.qr(np.random.default_rng(1).standard_normal((p, 2)))[0].T
    below = []
    for angle in (0.0, 0.02):
        sums, counts = rank_sums(view, np.cos(angle) * one + np.sin(angle) * other, 1.0)
        means = sums / counts[:, None]
        assert nearest(means, rows) > by_chance(means, rows, np.asarray)
        below.append(np.cumsum(sums, axis=0)[:-1])
    moved = below[1] - below[0]
    # Smaller ones are no difference of two records.
    moved = moved[np.linalg.norm(moved, axis=1) > 1]
    assert len(moved) > 0
    assert nearest(moved, pairs_of(rows)) > by_chance(moved, rows, pairs_of)


def test_ranks_by_chosen_models_give_no_record(tmp_path: Path) -> None:
    _, y = draw()
    with (
        federate(tmp_path, measure(), MEASURED, y) as local,
        connect(local.folder, start=START) as network,
    ):
        check_ranges(*open_fit(network, local, "linear"))


def test_gradients_at_chosen_models_give_rows_of_every_combination(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y = draw()
    with federate(tmp_path, X, FEW, y) as local:
        with connect(local.folder, start=START) as network:
            # No rule withstands this: the page says so.
            found = find_cells(*open_fit(network, local, "binomial"))
        ones = np.column_stack([X, np.ones(N)])
        true = np.array([(ones == cell).all(axis=1).sum() for cell in CELLS])
        assert (found == true).mean() > 0.9
        single = true == 1
        hits = (found[single] == 1).sum()
        by_guess = single.sum() * (found == 1).mean()
        assert hits > by_guess + 3 * np.sqrt(by_guess)
        # A fit of fewer sites would give the others' own sums.
        given = ("--target", "y", "--family", "binomial", "--penalty", "0.1", "--start", START)
        fit = ("federation", "fit", local.folder, *given, "--out", tmp_path / "fewer")
        assert run(*fit, "--sites", "a,b,c") != 0
        assert "takes part with a, b, c, d only" in capsys.readouterr().err
