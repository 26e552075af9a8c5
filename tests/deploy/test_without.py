"""A site has left for good: a new fit without it, once the others' operators have accepted."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("nvflare")

from helpers.deploy.doors import Project
from helpers.governance.authority import Authority
from helpers.nets import in_process, numbers, opening, run, same_files

from fedlasso.deploy.kit import Kit, open_audit, seal_kit
from fedlasso.deploy.nvflare.project import create_project
from fedlasso.federation.ledger import read_journal
from fedlasso.fitting import Settings
from fedlasso.models import NetworkSource, make_model, read_plan, write_model

SITES = ("a", "b", "c", "d")
OTHERS = ("a", "c", "d")
NAMES = tuple(f"x{k}" for k in range(5))
# Questions until the sites have joined a masked fit, and a few more.
JOINED = 5


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    rng = np.random.default_rng(0)
    paths = {}
    for site in SITES:
        X = rng.standard_normal((90, len(NAMES)))
        y = X[:, 0] - X[:, 1] + rng.standard_normal(90)
        paths[site] = tmp_path / f"{site}.csv"
        pd.DataFrame(X, columns=NAMES).assign(y=y).to_csv(paths[site], index=False)
    return paths


class Kits:
    """Sites whose audits are in their kits, as their operators have them."""

    def __init__(self, folder: Path, tables: dict[str, Path]) -> None:
        self.folder = folder / "project"
        create_project(self.folder, "localhost:8443", SITES)
        self.project = Project(tables, None, Authority(folder / "authority"))
        self.kits = {site: folder / f"kit-{site}" for site in SITES}
        for site, kit in self.kits.items():
            (kit / "startup").mkdir(parents=True)
            (kit / "books").mkdir()
            seal_kit(kit, Kit("trial", site, "site", "localhost", 8443, {}))
            self.project.doors[site].audit = open_audit(kit)

    def fit(self, out: Path, *options: object) -> int:
        return run("federation", "fit", self.folder, "--out", out, *options)


def sums_in(out: Path) -> set[bytes]:
    """The masked replies that the coordinator has of a fit."""
    kept = {data for entry in read_journal(out / "journal") for data in entry.replies}
    return {data for data in kept if b'"type":"Words"' in data}


def test_a_fit_without_a_site_ends_once_all_others_have_accepted(
    tables: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    net = Kits(tmp_path, tables)
    monkeypatch.setattr("fedlasso.deploy.nvflare.line.connect", net.project.connect)
    begun, again = tmp_path / "begun", tmp_path / "again"
    net.project.cuts = [JOINED + 2]
    assert net.fit(begun, "--target", "y") != 0
    assert "site 'b' did not answer" in capsys.readouterr().err
    sums = sums_in(begun)
    assert sums
    new = ("--without", "b", "--like", begun)
    for site in OTHERS:
        # As long as one operator has not agreed, nothing leaves any site.
        assert net.fit(again, *new) != 0
        said = capsys.readouterr().err
        assert "a new fit without b: nothing that sites have answered is used again" in said
        assert "differ by the sums of b, which their yes discloses to the coordinator" in said
        assert f"site '{site}': this data file takes part with a, b, c, d only" in said
        assert not list((again / "journal").glob("*.entry"))
        assert run("site", "members", net.kits[site]) == 1
        shown = capsys.readouterr().out
        assert "with a, c, d (missing: b)" in shown
        assert "the coordinator the sums of b alone" in shown
        assert run("site", "members", net.kits[site], "--accept") == 0
        assert "Takes part with a, c, d from now on" in capsys.readouterr().out
    assert net.fit(again, *new) == 0
    ended = capsys.readouterr()
    assert "a new fit without b" in ended.err
    assert "its audit has the same hashes" in ended.out
    assert "site 'b'" not in ended.out
    plan = read_plan(again, NetworkSource)
    assert plan.source.sites == OTHERS
    assert plan.source.fit != read_plan(begun, NetworkSource).source.fit
    assert sums_in(again)
    assert not sums_in(again) & sums
    # The site that left was asked nothing more.
    lines = net.project.doors["b"].audit.entries()
    assert all(plan.source.fit not in line.about + line.fit for line in lines)
    rest = {site: tables[site] for site in OTHERS}
    join = opening(numbers(NAMES), sites=OTHERS)
    write_model(tmp_path / "alone", make_model(in_process(rest, join), Settings(), numbers(NAMES)))
    assert same_files(again, tmp_path / "alone")
