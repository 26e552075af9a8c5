"""Held-out errors of steep models are sums over the rows on one side of a threshold.

Errors at neighbouring models are subtracted, which gives sums of columns over those rows; where one
more row is on that side, another difference gives its record. Chance is the distance of records
whose columns are shuffled independently of each other.
"""

import secrets
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.deploy.doors import DoorLine, make_doors
from helpers.governance.authority import Authority
from helpers.governance.victims import chance, distance
from helpers.nets import SITES

from fedlasso import FedLassoError, Site
from fedlasso.deploy.network import Network
from fedlasso.federation import Ledger, decode, encode
from fedlasso.fitting import Settings
from fedlasso.governance import Audit, Policy
from fedlasso.governance.guard import GuardedSite
from fedlasso.models import NetworkSource
from fedlasso.numerics import Array
from fedlasso.sites import held_out, standardise
from fedlasso.sites.assessing import PairsAt, PredictionErrors, RecalibrationAt, ScoreRanges
from fedlasso.sites.rows import all_folds
from fedlasso.sites.trials import DeviancesAt

P = 5
STEEP = 60.0
SPLIT = "holdout 0.2 0"
# Half the distance of the models that are subtracted, in units of a column.
FINE = 1e-4
Patch = pytest.MonkeyPatch
# Returns the errors of models (columns), whose linear predictors are shifted.
Ask = Callable[[Array, Array], Array]


def draw(rows: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((rows, P)), 3)
    return X, (rng.random(rows) < 1 / (1 + np.exp(-X[:, 0]))).astype(float)


def steal(ask: Ask, columns: int, slope: float = STEEP, width: float = FINE) -> Array:
    """Return what the attack takes for records, until it is refused.

    Thresholds move from either end of some columns towards the middle.
    """
    found: list[Array] = []
    near = 0.01 if width == FINE else 0.3
    try:
        for column in range(columns):
            for side in (1.0, -1.0):
                edges = side * np.linspace(3.3, 1.4, 48)
                errors = ask(*models_at(column, slope, edges))
                # Minus the rows beyond each threshold, and a constant.
                counts = np.diff(errors) / np.diff(edges) / slope / 2
                flat = [
                    (at, round(count))
                    for at, count in zip((edges[1:] + edges[:-1]) / 2, counts, strict=True)
                    if abs(count - round(count)) < near
                ]
                for (one, few), (other, more) in pairwise(flat):
                    if abs(few - more) == 1:
                        sums = [sums_beyond(ask, column, slope, at, width) for at in (one, other)]
                        found.append((sums[1] - sums[0]) / (few - more))
                        break
    except FedLassoError:
        pass
    return np.array(found).reshape(-1, P)


def models_at(column: int, slope: float, edges: Array) -> tuple[Array, Array]:
    """Return models that change from zero to one at thresholds of a column, and their shifts."""
    models = np.zeros((P, len(edges)))
    models[column] = slope
    return models, -slope * edges


def sums_beyond(ask: Ask, column: int, slope: float, at: float, width: float) -> Array:
    """Return sums of all columns over the rows beyond a threshold, less a constant."""
    models, shifts = models_at(column, slope, np.full(2 * P, at))
    models[:, :P] += slope * width * np.eye(P)
    models[:, P:] -= slope * width * np.eye(P)
    errors = ask(models, shifts)
    return np.asarray((errors[:P] - errors[P:]) / (4 * width * slope))


def no_better_than_chance(found: Array, rows: Array) -> bool:
    return len(found) == 0 or bool(np.median(distance(found, rows)) > chance(rows, len(found)))


def no_rounding(patch: Patch) -> None:
    patch.setattr(held_out, "ERROR_BITS", 52)


def ask_one(folder: Path, **rules: Any) -> tuple[Ask, Array]:
    """A site of 200 rows that is asked about one model at a time, with the threshold as a shift."""
    X, y = draw(200, 0)
    site = Site("a", X, y, loss="binomial", intercept=True, raw=True, secret=b"secret")
    folder.mkdir(exist_ok=True)
    door = GuardedSite(site, Policy(**rules), Audit(folder / "audit.jsonl"), "ab" * 16)

    def ask(models: Array, shifts: Array) -> Array:
        errors = []
        for b, shift in zip(models.T, shifts, strict=True):
            question = PredictionErrors(np.append(b, 0.0)[:, None], np.array([shift]))
            reply: Any = decode(door.answer_bytes(encode(question)))
            errors.append(reply.errors)
        return np.array(errors)

    return ask, X


def ask_masked(folder: Path, **rules: Any) -> tuple[Ask, Array]:
    """Three sites of 100 rows with masked sums, asked about their held-out rows."""
    folder.mkdir(exist_ok=True)
    names = [f"x{k}" for k in range(P)]
    tables = {}
    records = {}
    for k, site in enumerate(SITES):
        X, y = draw(100, k)
        records[site] = X
        tables[site] = folder / f"{site}.csv"
        pd.DataFrame(X, columns=names).assign(y=y.astype(int)).to_csv(tables[site], index=False)
    doors = make_doors(tables, Policy(**rules), Authority(folder / "authority"))
    network = Network(DoorLine(doors), list(doors), 10.0)
    network.open(NetworkSource("project", secrets.token_hex(16), "y"), Settings(family="binomial"))
    assert network.masked
    view, scaling = standardise(Ledger(network), SPLIT)
    rows = []
    for name, door in doors.items():
        assert door._site is not None
        rows.append(records[name][door._site.site.draw.divide(SPLIT, 100)["penalty"]])

    def ask(models: Array, shifts: Array) -> Array:
        return np.asarray(view.total(DeviancesAt(np.vstack([models, shifts]), "penalty")).errors)

    return ask, (np.vstack(rows) - scaling.means[:P]) * scaling.factors[:P]


KINDS = {"masked": (ask_masked, P), "alone": (ask_one, 2)}
WAYS = [(STEEP, FINE), (STEEP, 0.05), (20.0, 0.05), (8.0, 0.1), (3.0, 0.1)]


@pytest.mark.parametrize("kind", KINDS)
def test_errors_of_steep_models_told_records(kind: str, tmp_path: Path, monkeypatch: Patch) -> None:
    no_rounding(monkeypatch)
    victim, columns = KINDS[kind]
    ask, rows = victim(tmp_path, min_effective_rows=0)
    found = steal(ask, columns)
    assert len(found) >= 3
    assert distance(found, rows).max() < 0.02


ROUNDED = pytest.param({"min_effective_rows": 0}, id="rounded", marks=pytest.mark.standard)


@pytest.mark.parametrize("rules", [pytest.param({}, id="default"), ROUNDED])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("slope", "width"), WAYS)
def test_errors_of_models_tell_no_record(
    kind: str, rules: dict[str, Any], slope: float, width: float, tmp_path: Path
) -> None:
    victim, columns = KINDS[kind]
    ask, rows = victim(tmp_path, **rules)
    assert no_better_than_chance(steal(ask, columns, slope, width), rows)


@pytest.mark.parametrize("kind", KINDS)
def test_effective_rows_alone_keep_records(kind: str, tmp_path: Path, monkeypatch: Patch) -> None:
    no_rounding(monkeypatch)
    victim, columns = KINDS[kind]
    ask, rows = victim(tmp_path)
    assert no_better_than_chance(steal(ask, columns), rows)


def one_steep_fold(slope: float) -> tuple[Array, Array, str]:
    """Models of folds that are flat, but for the first: it is steep far from most rows."""
    split = all_folds(10, 0)
    models = np.zeros((P + 1, 10))
    models[0, 0] = slope
    return models, np.append(-slope * 2.0, np.zeros(9)), split


def test_each_model_of_a_fold_is_judged_by_itself(tmp_path: Path) -> None:
    """Flat models of other folds have many effective rows, and say nothing about their own."""
    X, y = draw(200, 0)
    site = Site("a", X, y, loss="binomial", intercept=True, raw=True, secret=b"secret")
    door = GuardedSite(site, Policy(), Audit(tmp_path / "audit.jsonl"), "ab" * 16)
    for question in (PredictionErrors, ScoreRanges, PairsAt):
        with pytest.raises(FedLassoError, match="does not answer this question"):
            door.answer_bytes(encode(question(*one_steep_fold(16.0))))
    assert door._ledger.used("refusals") == 3
    # What a recalibration makes steep is zero, as where all rows are recalibrated alike.
    flatter = one_steep_fold(1.0)
    reply: Any = decode(door.answer_bytes(encode(RecalibrationAt(*flatter, slope=16.0))))
    assert not reply.curvature[0].any()
    assert reply.curvature[1].all()
