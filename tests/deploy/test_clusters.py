"""Clusters and site shifts across doors: the same fit as here, and what a site refuses."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.deploy.doors import Project, join_doors, make_doors
from helpers.governance.authority import Authority
from helpers.nets import FIT, KEY, same_files

from fedlasso import FederatedLasso, FedLassoError
from fedlasso.cli import main
from fedlasso.deploy.run import begin_plan, repeat_fit, run_plan
from fedlasso.fitting import Settings
from fedlasso.fitting.inference.infer import REPEATED
from fedlasso.governance import Policy
from fedlasso.models import FitPlan, NetworkSource, read_document, write_model

COLUMNS = ("x0", "x1", "x2")


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    """Sites with means of their own, and five rows per patient."""
    rng = np.random.default_rng(4)
    paths = {}
    for k, site in enumerate("abc"):
        patients = np.repeat(np.arange(30), 5)
        frame = pd.DataFrame(rng.standard_normal((150, 3)), columns=COLUMNS)
        frame["x0"] = rng.standard_normal(30)[patients]
        noise = rng.standard_normal(30)[patients] + rng.standard_normal(150)
        frame["y"] = 3 * k + frame["x1"] + noise
        frame["patient"] = [f"{site}-{patient}" for patient in patients]
        paths[site] = tmp_path / f"{site}.csv"
        frame.to_csv(paths[site], index=False)
    return paths


def source(**more: Any) -> NetworkSource:
    given: dict[str, Any] = {"cluster": "patient"} | more
    return NetworkSource(project="project", fit=FIT, target="y", **given)


@pytest.mark.standard
@pytest.mark.parametrize("masked", [False, True], ids=["clear", "masked"])
def test_clusters_stay_at_their_sites_and_widen_intervals(
    masked: bool, tables: dict[str, Path], tmp_path: Path
) -> None:
    project = Project(tables, authority=Authority(tmp_path / "ca") if masked else None)
    out = tmp_path / "model"
    settings = Settings(penalty=0.05, intervals=("x0", "x2"))
    begin_plan(out, FitPlan(settings, source()))
    document = run_plan(out, project.connect).document
    assert {row.name for row in document.coefficients} <= set(COLUMNS)
    trust = document.trust
    assert trust is not None
    errors = {row.name: row.error for row in trust.named}
    assert errors["x0"] > 1.2 * errors["x2"]
    assert any("every site has its own intercept" in note for note in trust.notes)
    again = repeat_fit(read_document(out / "model.json"), tables, dict.fromkeys(tables, KEY))
    assert again.trust is not None
    # Where sums are masked, sites do not send their own estimates.
    assert [(r.name, r.value, r.error) for r in again.trust.named] == [
        (r.name, r.value, r.error) for r in trust.named
    ]
    if not masked:
        write_model(tmp_path / "again", again)
        assert same_files(out, tmp_path / "again")


@pytest.mark.standard
def test_sites_send_how_many_of_them_have_rows_that_look_repeated(
    tables: dict[str, Path], tmp_path: Path
) -> None:
    rng = np.random.default_rng(5)
    for site, path in tables.items():
        frame = pd.read_csv(path).drop(columns="patient")
        for column in ("x3", "x4", "x5"):
            own = rng.standard_normal(30)[np.repeat(np.arange(30), 5)]
            frame[column] = rng.standard_normal(150) if site == "c" else own
        frame.to_csv(path, index=False)
    project = Project(tables, authority=Authority(tmp_path / "ca"))
    out = tmp_path / "model"
    begin_plan(out, FitPlan(Settings(penalty=0.05, intervals=("x1",)), source(cluster=None)))
    trust = run_plan(out, project.connect).document.trust
    assert trust is not None
    assert trust.marks == (REPEATED.format("2 of 3"),)
    again = repeat_fit(read_document(out / "model.json"), tables, dict.fromkeys(tables, KEY))
    assert again.trust is not None
    assert again.trust.marks == trust.marks


@pytest.mark.full
def test_files_and_tables_have_clusters_too(tables: dict[str, Path], tmp_path: Path) -> None:
    files = [str(path) for path in tables.values()]
    options = ["--target", "y", "--cluster", "patient", "--penalty", "0.05", "--interval", "x0,x2"]
    assert main(["fit", *files, *options, "--no-compare", "--out", str(tmp_path / "model")]) == 0
    trust = read_document(tmp_path / "model" / "model.json").trust
    frame = pd.concat([pd.read_csv(path).assign(site=site) for site, path in tables.items()])
    model = FederatedLasso(penalty=0.05, intervals=["x0", "x2"])
    model.fit(frame[list(COLUMNS)], frame["y"], frame["site"], clusters=frame["patient"])
    assert trust is not None
    assert model.trust_ is not None
    assert [row.error for row in trust.named] == [row.error for row in model.trust_.named]


def test_missing_and_few_clusters_are_refused(
    tables: dict[str, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    frame = pd.read_csv(tables["b"])
    frame["patient"] = np.repeat(["p", "q"], [141, 9])
    frame.to_csv(tables["b"], index=False)
    network = join_doors(make_doors(tables, Policy()))
    with pytest.raises(FedLassoError, match=r"'b'.*clusters in 'patient' are too few.*--cluster"):
        network.open(source(), Settings())
    frame.loc[:2, "patient"] = None
    frame.to_csv(tables["b"], index=False)
    files = [str(path) for path in tables.values()]
    options = ["--target", "y", "--cluster", "patient", "--out", str(tmp_path / "model")]
    assert main(["fit", *files, *options]) != 0
    assert "site 'b': the cluster column 'patient' is missing in 3 rows" in capsys.readouterr().err
