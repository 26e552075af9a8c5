"""Attacks 13 and 14: second moments of several fold assignments are diagonalised together.

The measure of chance is the same attack's records compared with those of another draw from the
same distribution, at the same distance.
"""

import secrets
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.deploy.doors import DoorLine, make_doors
from helpers.governance.authority import Authority
from helpers.governance.rows_of import count_matches, diagonalise, scale_to_ones
from helpers.nets import SITES, in_process, opening

from fedlasso import InProcess, Site
from fedlasso.deploy.network import Network
from fedlasso.errors import Refused
from fedlasso.federation import Ledger
from fedlasso.fitting import Settings, fit_model
from fedlasso.fitting.evidence.moment_evidence import Folded
from fedlasso.governance import Policy
from fedlasso.models import NetworkSource, make_model
from fedlasso.numerics import Array
from fedlasso.sites import standardise

ROWS, P = 60, 200


def draw_wide(seed: int) -> dict[str, tuple[Array, Array]]:
    """Records of three sites with more columns than rows."""
    rng = np.random.default_rng(seed)
    sites = {}
    for name in SITES:
        X = rng.standard_normal((ROWS, P))
        sites[name] = (X, X[:, :5].sum(axis=1) + rng.standard_normal(ROWS))
    return sites


def write(folder: Path, data: dict[str, tuple[Array, Array]]) -> dict[str, Path]:
    folder.mkdir(exist_ok=True)
    paths = {}
    for name, (X, y) in data.items():
        paths[name] = folder / f"{name}.csv"
        frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(P)])
        frame.assign(y=y).to_csv(paths[name], index=False)
    return paths


def records(data: dict[str, tuple[Array, Array]]) -> Array:
    """Standardised rows (x, y) of all sites, as the coordinator's sums describe them."""
    X = np.vstack([x for x, _ in data.values()])
    y = np.concatenate([y for _, y in data.values()])
    return np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), y - y.mean()])


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> list[Array]:
    """Second moments of folds that fits receive, as their coordinator's journal has them."""
    kept: list[Array] = []
    ask = Folded.ask

    def record(*arguments: Any, **options: Any) -> Folded:
        folded = ask(*arguments, **options)
        kept.extend(fold.products for fold in folded.folds)
        return folded

    monkeypatch.setattr(Folded, "ask", record)
    return kept


def attack(parts: list[Array]) -> Array:
    return scale_to_ones(diagonalise(parts)) if parts else np.empty((0, P + 1))


@pytest.mark.full
def test_four_ordinary_fits_leave_no_record_in_the_journal(
    tmp_path: Path, journal: list[Array]
) -> None:
    data = draw_wide(0)
    # As it was: every seed draws other folds.
    plain = InProcess([Site(name, X, y, raw=True) for name, (X, y) in data.items()])
    for seed in range(4):
        fit_model(plain, Settings(seed=seed))
    assert count_matches(attack(journal), records(data)) > 90
    journal.clear()
    tables = write(tmp_path / "tables", data)
    # The default budget is for fits of more rows, and for one or two.
    policy = Policy(max_numbers=20.0)
    doors = make_doors(tables, policy, Authority(tmp_path / "authority"))
    for seed in range(4):
        network = Network(DoorLine(doors), list(doors), 10.0)
        settings = Settings(seed=seed)
        source = network.open(NetworkSource("project", secrets.token_hex(16), "y"), settings)
        assert source.schema is not None
        said: list[str] = []
        guarded = make_model(Ledger(network), settings, source.schema, notify=said.append)
        assert any("gradients" in text for text in said)
        if not seed:
            join = opening(source.schema)
            assert guarded == make_model(in_process(tables, join), settings, source.schema)
    found = attack(journal)
    assert count_matches(found, records(data)) <= count_matches(found, records(draw_wide(1)))


@pytest.mark.standard
def test_seven_assignments_asked_for_leave_no_record(tmp_path: Path) -> None:
    data = draw_wide(0)
    counts = {}
    for secret in (b"", b"secret"):
        sites = [Site(n, X, y, raw=True, secret=secret) for n, (X, y) in data.items()]
        view, _ = standardise(InProcess(sites))
        parts: list[Any] = []
        for seed in range(7):
            try:
                parts += Folded.ask(view, 10, seed, centre=True, scale=True).folds
            except Refused:
                continue
        found = attack([part.products for part in parts])
        counts[secret] = (
            count_matches(found, records(data)),
            count_matches(found, records(draw_wide(1))),
        )
    assert counts[b""][0] > 150
    assert counts[b"secret"][0] <= counts[b"secret"][1]
