"""Fits by every goal run under the default policy, several times, to the certificate they had."""

import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.deploy.default_data import (
    STUDIES,
    Study,
    fit_alone,
    fit_by_default,
    visits,
    wide_classes,
)
from helpers.deploy.doors import DoorLine, make_doors
from helpers.governance.authority import Authority
from helpers.natural_units import respond
from helpers.nets import SITES, in_process, opening
from sklearn.datasets import load_breast_cancer, load_diabetes

from fedlasso import FedLassoError
from fedlasso.deploy.network import Network
from fedlasso.federation import Ledger
from fedlasso.fitting import GOALS, Settings
from fedlasso.governance import Door, Policy
from fedlasso.models import ModelDocument, NetworkSource, make_model
from fedlasso.numerics import Array

# Discoveries ask sites one by one where these differ, which masked sites do not answer.
MODELS = [goal for goal in GOALS if goal != "discoveries"]


def write_sites(folder: Path, X: Array, y: Array, names: list[str]) -> dict[str, Path]:
    """Rows in turn at three sites."""
    paths = {}
    for k, site in enumerate(SITES):
        frame = pd.DataFrame(X[k::3], columns=names)
        frame["y"] = y[k::3]
        paths[site] = folder / f"{site}.csv"
        frame.to_csv(paths[site], index=False)
    return paths


@pytest.fixture
def diabetes(tmp_path: Path) -> dict[str, Path]:
    data = load_diabetes(scaled=False)
    return write_sites(tmp_path, data.data, data.target, list(data.feature_names))


@pytest.fixture
def wide(tmp_path: Path) -> dict[str, Path]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((360, 600))
    y = X[:, :10].sum(axis=1) + rng.standard_normal(360)
    return write_sites(tmp_path, X, y, [f"x{k}" for k in range(600)])


def fit_both(
    tables: dict[str, Path], doors: dict[str, Door], settings: Settings, drop: tuple[str, ...] = ()
) -> tuple[ModelDocument, ModelDocument]:
    """The model of a network of guarded doors, and of the same sites without a policy."""
    network = Network(DoorLine(doors), list(doors), 10.0)
    asked = NetworkSource("project", secrets.token_hex(16), "y", drop=drop)
    source = network.open(asked, settings)
    assert source.schema is not None
    guarded = make_model(Ledger(network), settings, source.schema)
    join = opening(source.schema, family=settings.family)
    alone = make_model(in_process(tables, join), settings, source.schema)
    return guarded, alone


# A site without a policy would take twenty folds for selection, and this one has rows for ten.
@pytest.fixture(params=["clear", "masked"])
def authority(request: pytest.FixtureRequest, tmp_path: Path) -> Authority | None:
    """Who signs the sites' certificates, where their sums are masked."""
    return Authority(tmp_path / "authority") if request.param == "masked" else None


@pytest.mark.full
@pytest.mark.parametrize("how", [{"cv": 10}, {"validation": 0.2}])
def test_every_goal_on_diabetes(
    diabetes: dict[str, Path], how: dict[str, Any], authority: Authority | None
) -> None:
    # A site's own rows count alone where sums are clear, and nine fits send more than one or two.
    policy = None if authority else Policy(sums="clear", max_numbers=3.0)
    doors = make_doors(diabetes, policy, authority)
    for goal in MODELS:
        for drop in ((), ("bp",), ("s1", "s2")):
            settings = Settings(goal=goal, **how)
            guarded, alone = fit_both(diabetes, doors, settings, drop)
            assert guarded == alone
    used = doors["a"].lifetime
    assert used.busiest("candidates") < Policy().max_candidates
    assert used.busiest("refusals") == 0


@pytest.mark.standard
def test_two_classes_by_columns_in_natural_units(tmp_path: Path) -> None:
    data = load_diabetes(scaled=False)
    y = (data.target > 140).astype(int)
    tables = write_sites(tmp_path, data.data[:, :5], y, list(data.feature_names[:5]))
    doors = make_doors(tables)
    settings = Settings(family="binomial", goal="prediction", validation=0.2)
    guarded, alone = fit_both(tables, doors, settings)
    assert guarded == alone
    assert doors["a"].lifetime.busiest("refusals") == 0


NARROW = {name: study for name, study in STUDIES.items() if study is not wide_classes}


@pytest.mark.full
@pytest.mark.parametrize("study", [*NARROW.values(), visits], ids=[*NARROW, "visits"])
def test_default_fits_of_four_families(study: Callable[[], Study], tmp_path: Path) -> None:
    data = study()
    tables = data.write(tmp_path / "tables")
    doors = make_doors(tables, None, Authority(tmp_path / "authority"))
    guarded = fit_by_default(data, doors)
    alone = fit_alone(data, tables, guarded)
    assert guarded.coefficients == alone.coefficients
    assert guarded.certificate == alone.certificate
    assert guarded == alone
    assert guarded.certificate.relative_gap <= 1e-6
    assert any(row.value for row in guarded.coefficients)
    for door in doors.values():
        assert door.lifetime.busiest("refusals") == 0


@pytest.mark.full
def test_a_policy_that_refuses_some_models_leaves_the_same_certificate(tmp_path: Path) -> None:
    """With more columns than rows models of the search have more columns than sites allow."""
    data = wide_classes()
    tables = data.write(tmp_path / "tables")
    doors = make_doors(tables, None, Authority(tmp_path / "authority"))
    guarded = fit_by_default(data, doors)
    alone = fit_alone(data, tables, guarded)
    for model in (guarded, alone):
        assert model.certificate.relative_gap <= 1e-6
    assert guarded.penalty == alone.penalty
    assert [row.name for row in guarded.coefficients] == [row.name for row in alone.coefficients]
    np.testing.assert_allclose(
        [row.value for row in guarded.coefficients],
        [row.value for row in alone.coefficients],
        rtol=0, atol=1e-4,
    )  # fmt: skip
    assert doors["a"].lifetime.busiest("refusals") == 0


@pytest.mark.full
def test_clear_sums_use_up_the_default_budget(tmp_path: Path) -> None:
    """What a site sends in clear is about its own records only."""
    data = STUDIES["breast cancer, two classes"]()
    doors = make_doors(data.write(tmp_path / "tables"))
    with pytest.raises(FedLassoError, match="would exceed 90% of its rows times columns"):
        fit_by_default(data, doors)


@pytest.mark.full
@pytest.mark.parametrize("how", [{}, {"validation": 0.2}], ids=["folds", "holdout"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_nearly_separable_classes_are_not_refused(
    seed: int, how: dict[str, Any], tmp_path: Path
) -> None:
    """Held-out rows have one or two effective rows there, and the models are judged on all rows."""
    data = load_breast_cancer()
    order = np.random.default_rng(seed).permutation(len(data.target))
    names = [f"x{k}" for k in range(data.data.shape[1])]
    tables = write_sites(tmp_path, data.data[order], data.target[order], names)
    doors = make_doors(tables, None, Authority(tmp_path / "authority"))
    guarded, _ = fit_both(tables, doors, Settings(family="binomial", **how))
    assert guarded.certificate is not None
    assert guarded.certificate.relative_gap <= 1e-6
    assert all(door.lifetime.busiest("refusals") == 0 for door in doors.values())


@pytest.mark.full
def test_every_goal_on_many_columns(wide: dict[str, Path], authority: Authority | None) -> None:
    policy = None if authority else Policy(sums="clear", max_numbers=3.0)
    doors = make_doors(wide, policy, authority)
    for goal in MODELS:
        guarded, alone = fit_both(wide, doors, Settings(goal=goal, validation=0.2))
        assert guarded == alone
    assert doors["a"].lifetime.busiest("refusals") == 0


@pytest.mark.full
@pytest.mark.parametrize("family", ["binomial", "poisson", "cox"])
def test_curved_fits_on_many_columns_go_on_without_further_second_derivatives(
    family: str, tmp_path: Path
) -> None:
    """A second fit of the same file selects other columns, whose second derivatives are refused."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((240, 300))
    names = [f"x{k}" for k in range(300)]
    tables: dict[str, Path] = {}
    for k, site in enumerate(SITES):
        own = X[k::3]
        frame = pd.DataFrame(own, columns=names)
        for target, first in (("y", 0), ("z", 40)):
            eta = own[:, first : first + 6].sum(axis=1)
            frame[target] = respond(family, eta, np.random.default_rng(k + first))
        if family == "cox":
            for target in ("y", "z"):
                frame[f"{target} event"] = (frame[target] > 0).astype(int)
                frame[target] = frame[target].abs()
        tables[site] = tmp_path / f"{site}.csv"
        frame.to_csv(tables[site], index=False)
    policy = Policy(max_numbers=9.0, max_candidates=5000)
    doors = make_doors(tables, policy, Authority(tmp_path / "authority"))
    refused = []
    for target in ("y", "z"):
        network = Network(DoorLine(doors), list(doors), 10.0)
        roles: dict[str, Any] = (
            {"time": target, "event": f"{target} event"} if family == "cox" else {}
        )
        roles = roles or {"target": target}
        settings = Settings(family=family)
        asked = NetworkSource("project", secrets.token_hex(16), columns=tuple(names), **roles)
        source = network.open(asked, settings)
        assert source.schema is not None
        model = make_model(Ledger(network), settings, source.schema)
        assert model.certificate is not None
        # Without second derivatives the second fit may use up its uploads.
        assert model.certificate.relative_gap <= 1e-6
        entries = [e for e in doors["a"].audit.entries() if e.verdict == "refused"]
        refused.append(sum(e.question == "CurvatureAt" for e in entries))
    assert refused[0] == 0 < refused[1]


def test_discoveries_on_diabetes(diabetes: dict[str, Path], authority: Authority | None) -> None:
    """Sites whose sums are masked tell nothing of themselves, and the pooled answer is the same."""
    doors = make_doors(diabetes, None, authority)
    settings = Settings(goal="discoveries", cv=10, intervals=("age",))
    guarded, alone = fit_both(diabetes, doors, settings)
    if authority is None:
        assert guarded == alone
        return
    assert guarded.coefficients == alone.coefficients
    assert guarded.certificate == alone.certificate
    assert guarded.trust is not None
    assert alone.trust is not None
    for masked, clear in (
        (guarded.trust.found, alone.trust.found),
        (guarded.trust.named, alone.trust.named),
    ):
        assert clear
        bare = [replace(row, sites=(), heterogeneity=None, i_squared=None) for row in clear]
        assert list(masked) == bare
    assert any("not shown" in note for note in guarded.trust.notes)
