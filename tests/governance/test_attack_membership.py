"""Attack 13: a fit of four sites minus a fit of three is the fourth site's own sum."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.deploy.doors import join_doors, make_door
from helpers.governance.authority import Authority, accept_keys
from helpers.nets import FIT, run

from fedlasso import FedLassoError
from fedlasso.deploy.kit import Kit, open_audit, seal_kit
from fedlasso.federation.fixed_point import OFFSET, from_words, grid_of
from fedlasso.governance import Door, Policy, door
from fedlasso.governance.membership import accept_members, pinned_members, read_waiting
from fedlasso.models import NetworkSource
from fedlasso.numerics import Array
from fedlasso.sites import GradientAt, Standardise

P = 4
SITES = ("a", "b", "c", "d")
NAMES = tuple(f"x{k}" for k in range(P))
# Policies differ in what they count, which is not attacked here.
POLICY = Policy()


class Sites:
    """Four sites that have accepted each other's keys, and who may be asked in any company."""

    def __init__(self, folder: Path, policy: Policy = POLICY) -> None:
        self.authority = Authority(folder / "authority")
        self.identities = self.authority.acquaint(SITES)
        rng = np.random.default_rng(1)
        self.records = {site: rng.standard_normal((60, P)) for site in SITES}
        self.doors: dict[str, Door] = {}
        for site, X in self.records.items():
            here = folder / site
            here.mkdir()
            frame = pd.DataFrame(X, columns=NAMES).assign(y=X[:, 0] + 1)
            frame.to_csv(here / f"{site}.csv", index=False)
            self.open_door(here / f"{site}.csv", policy)

    def open_door(self, path: Path, policy: Policy = POLICY) -> None:
        """Start a site, with the data in a file."""
        site = path.parent.name
        self.doors[site] = make_door(path, site, policy, identity=self.identities[site])

    def products(self, sites: Sequence[str], fit: str = FIT) -> Array:
        """All products of the columns in total, as a coordinator learns them from a fit."""
        network = join_doors({site: self.doors[site] for site in sites})
        network.open(NetworkSource("project", fit, "y", NAMES))
        powers, terms = ("6",) * (P + 2), ("8",) * P
        view = Standardise(np.zeros(P), np.ones(P), 0.0, powers=powers, terms=terms)
        network.ask(view)
        at = []
        for b in [np.zeros(P), *np.eye(P)]:
            asked = GradientAt(b, on=view.name, reach=10 + OFFSET)
            grid = grid_of(asked, view.magnitudes, P)
            assert grid is not None
            total: Any = network.total(asked)
            at.append(from_words(total, asked, grid).gradient)
        return np.array(at[1:]) - at[0]

    def refuses(self, sites: Sequence[str]) -> str:
        """What the first site says of a fit."""
        with pytest.raises(FedLassoError) as refused:
            self.products(sites)
        return str(refused.value)


def off(found: Array, X: Array) -> float:
    own = X.T @ X
    return float(np.abs(found - own).max() / np.abs(own).max())


def test_a_fit_without_one_site_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sites = Sites(tmp_path)
    whole = sites.products(SITES)
    text = sites.refuses(SITES[:3])
    assert "takes part with a, b, c, d only" in text
    assert "missing: d" in text
    assert "fedlasso site members" in text
    # The same sites in another fit are no others.
    np.testing.assert_allclose(sites.products(SITES, "cd" * 8), whole, rtol=1e-12)
    monkeypatch.setattr(door, "check_members", lambda *_: None)
    assert off(whole - sites.products(SITES[:3]), sites.records["d"]) < 1e-10


def test_a_fit_with_one_more_site_is_refused_until_all_operators_accept(tmp_path: Path) -> None:
    sites = Sites(tmp_path)
    sites.products(SITES[:3])
    assert "new: d" in sites.refuses(SITES)
    for name in SITES[:2]:
        audit = sites.doors[name].audit
        waiting = read_waiting(audit, name)
        assert sorted(waiting.pinned) == ["a", "b", "c"]
        assert waiting.asked is not None
        assert sorted(waiting.asked.sites) == list(SITES)
        accept_members(audit, waiting.asked)
        assert read_waiting(audit, name).asked is None
    assert sites.refuses(SITES).startswith("site 'c': this data file takes part with")
    waiting = read_waiting(sites.doors["c"].audit, "c")
    assert waiting.asked is not None
    accept_members(sites.doors["c"].audit, waiting.asked)
    sites.products(SITES)
    # One set at a time: the one before needs another yes.
    assert "missing: d" in sites.refuses(SITES[:3])


def test_a_file_saved_again_takes_part_with_the_same_sites(tmp_path: Path) -> None:
    sites = Sites(tmp_path)
    sites.products(SITES)
    for name in SITES[:3]:
        path = tmp_path / name / f"{name}.csv"
        path.write_text(path.read_text() + ",".join("1" * (P + 1)) + "\n")
        sites.open_door(path)
    assert "missing: d" in sites.refuses(SITES[:3])


def test_a_site_with_another_key_is_another_site(tmp_path: Path) -> None:
    sites = Sites(tmp_path)
    sites.products(SITES)
    forged = sites.authority.identity("d", forged=True)
    others = sites.identities | {"d": forged}
    for identity in others.values():
        accept_keys(identity, others)
    sites.doors["d"].identity = forged
    assert "with another key: d" in sites.refuses(SITES)


def test_the_audit_names_the_sites_of_every_fit(tmp_path: Path) -> None:
    sites = Sites(tmp_path)
    sites.products(SITES)
    sites.refuses(SITES[:3])
    audit = sites.doors["a"].audit
    opened: list[Any] = [e for e in audit.entries() if e.question == "Open"]
    assert [sorted(entry.sites) for entry in opened] == [list(SITES), list(SITES[:3])]
    assert all(len(key) == 64 for entry in opened for key in entry.sites.values())
    assert pinned_members(audit, opened[0].data) == opened[0].sites


def test_the_operator_reads_what_a_yes_discloses_and_gives_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = Sites(tmp_path)
    kit = tmp_path / "kit"
    make_kit(kit, "a")
    audit = open_audit(kit)
    sites.doors["a"].audit = audit
    assert run("site", "members", kit) == 0
    assert "the first fit decides" in capsys.readouterr().out
    sites.products(SITES)
    assert run("site", "members", kit) == 0
    assert "with a, b, c, d:" in capsys.readouterr().out
    assert run("site", "members", kit, "--accept") == 2
    sites.refuses(SITES[:3])
    assert run("site", "members", kit) == 1
    said = capsys.readouterr().out
    assert "with a, b, c (missing: d)" in said
    assert "the sums of d alone, as if they had not been masked" in said
    assert run("site", "members", kit, "--accept") == 0
    assert "site 'b': this data file" in sites.refuses(SITES[:3])
    assert [e.question for e in audit.entries()].count("AcceptMembers") == 1


def make_kit(folder: Path, name: str) -> None:
    (folder / "startup").mkdir(parents=True)
    (folder / "books").mkdir()
    seal_kit(folder, Kit("trial", name, "site", "localhost", 8443, {}))
