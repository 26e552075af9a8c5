"""Attacks by the coordinator on real processes with the default policy, and what they leave.

The coordinator alone asks; sums are masked. Chance is what guesses of the same kind give: records
whose columns are shuffled.
"""

import secrets
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("nvflare")

from helpers.governance.victims import distance
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


def draw() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    age = np.clip(np.rint(rng.normal(65, 10, N)), AGES[0], AGES[-1])
    X = np.column_stack([age, rng.random(N) < 0.5, rng.random(N) < 0.3]).astype(float)
    return X, (rng.random(N) < 0.4).astype(float)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFederation]:
    base = tmp_path_factory.mktemp("live")
    X, y = draw()
    tables = {}
    for k, site in enumerate(SITES):
        tables[site] = base / f"{site}.csv"
        frame = pd.DataFrame(X[k::4], columns=["age", "sex", "smoker"])
        frame.assign(y=y[k::4]).to_csv(tables[site], index=False)
    with LocalFederation(base / "project", tables) as federation:
        yield federation


def open_fit(network: Network, local: LocalFederation) -> tuple[Viewed, Scaling]:
    """All rows, as the sites standardise them."""
    source = NetworkSource(str(local.folder), secrets.token_hex(16), "y")
    network.open(source, Settings(family="binomial"))
    return standardise(Ledger(network))


def find_cells(view: Viewed, scaling: Scaling) -> Array:
    """How many rows have each combination, from gradients at chosen models."""
    cells = (CELLS - scaling.means) * scaling.factors
    rng = np.random.default_rng(1)
    equations, answers = [], []
    for at in np.linspace(42, 88, 160):
        sex, smoker = rng.uniform(-10, 10, 2)
        b = np.array([1.0, sex, smoker, 0.0]) / scaling.factors
        b[-1] = -at - (sex + smoker) / 2 + np.append([1.0, sex, smoker], 0) @ scaling.means
        mean = 1 / (1 + np.exp(-cells @ b))
        equations.append(np.hstack([cells.T * mean, -np.eye(4)]))
        answers.append(view.total(GradientAt(b)).gradient)
    found = np.linalg.lstsq(np.vstack(equations), np.concatenate(answers), rcond=1e-13)[0]
    return np.asarray(np.rint(found[:-4]))


def cell_sums(view: Viewed, step: float) -> Array:
    """Sums of the columns over cells of ranks, by moving a model a little along each column."""
    base = np.array([1.0, 0.3, 0.2, 0.0])
    one = np.zeros(1)
    start = view.total(ScoreRanges(base[:, None], one))
    units = np.eye(4)[:3]
    moved = [view.total(ScoreRanges((base + step * u)[:, None], one)) for u in units]
    return np.column_stack([(own.expected - start.expected) / step for own in moved])


def test_what_the_coordinator_alone_recovers(
    local: LocalFederation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X, _ = draw()
    with connect(local.folder, start=START) as network:
        view, scaling = open_fit(network, local)
        assert network.masked
        sums = cell_sums(view, 1e-6)
        rows = (X - scaling.means[:3]) * scaling.factors[:3]
        rng = np.random.default_rng(0)
        guesses = np.column_stack([rng.permutation(column) for column in rows.T])[: len(sums)]
        # No sum over a cell of ranks is a record.
        assert np.median(distance(sums, rows)) > np.median(distance(guesses, rows))
        # No rule withstands this: the page says so.
        found = find_cells(view, scaling)
    ones = np.column_stack([X, np.ones(N)])
    true = np.array([(ones == cell).all(axis=1).sum() for cell in CELLS])
    np.testing.assert_array_equal(found, true)
    # A fit of fewer sites would give the others' own sums.
    out = tmp_path / "fewer"
    given = ("--target", "y", "--family", "binomial", "--penalty", "0.1", "--start", START)
    assert run("federation", "fit", local.folder, *given, "--out", out, "--sites", "a,b,c") != 0
    assert "takes part with a, b, c, d only" in capsys.readouterr().err
