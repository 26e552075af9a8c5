"""Real processes on loopback with mutual TLS: the network gives the bits of one process."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nvflare")

from nets import COLUMNS, SECRET, SITES, in_process, write_tables

from fedlasso import FedLassoError, Fit, fit
from fedlasso.cli import main
from fedlasso.nvflare.console import Console
from fedlasso.nvflare.engine import Engine, Interrupted, check_server
from fedlasso.nvflare.kit import Kit, configure_site, read_kit, site_audit
from fedlasso.nvflare.link import Opening, connect
from fedlasso.nvflare.local import LocalFederation
from fedlasso.nvflare.project import create_project
from fedlasso.nvflare.run import Event, Plan, begin_plan, read_plan, run_plan

# The engine and its libraries warn of things that are not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_tables(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def local(
    tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalFederation]:
    with LocalFederation(tmp_path_factory.mktemp("net") / "project", tables) as federation:
        yield federation


def plan(local: LocalFederation, out: Path, timeout: float = 8.0, **settings: Any) -> Plan:
    return begin_plan(
        out, Plan(str(local.folder), Opening("", "y", COLUMNS), settings, timeout=timeout)
    )


def same(one: Fit, other: Fit) -> bool:
    bits = one.coefficients.tobytes() == other.coefficients.tobytes()
    return bits and one.costs.entries == other.costs.entries


def test_network_and_process_agree_bit_for_bit(
    local: LocalFederation, tables: dict[str, Path]
) -> None:
    cases: list[dict[str, Any]] = [
        {"procedure": "CD", "rounds": 5},
        {"procedure": "DA", "lam": 0.1, "rounds": 4},
        {"procedure": "ADMM", "lam": 0.1, "rounds": 4},
        {"goal": "objective", "lam": 0.1},
    ]
    # Here first: the sites then find their kernels compiled.
    alone = [fit(in_process(tables), **settings) for settings in cases]
    with connect(local.folder, timeout=60) as network:
        for number, (settings, expected) in enumerate(zip(cases, alone, strict=True)):
            network.open(Opening(f"{number:08x}", "y", COLUMNS))
            assert network.sites == SITES
            assert same(fit(network, **settings), expected)
        with pytest.raises(FedLassoError) as refused:
            fit(network, "OneShotGram", lam=0.1)
        assert str(refused.value) == (
            "site 'a': the policy here does not answer AllMoments; allow it in policy.toml"
        )
        with pytest.raises(FedLassoError, match=r"site 'a': .*column 'note' is not numeric"):
            network.open(Opening("e" * 8, "y", ("note",)))
        with pytest.raises(FedLassoError, match="no column 'none'"):
            network.open(Opening("e" * 8, "none"))
    # Nothing of a record has reached the server's machine, in logs or anywhere.
    server = [p for p in (local.folder / "server").rglob("*") if p.is_file()]
    assert len(server) > 10
    assert not [p for p in server if SECRET.encode() in p.read_bytes()]


def test_a_kit_of_another_project_is_not_let_in(
    local: LocalFederation, tables: dict[str, Path], tmp_path: Path
) -> None:
    where = f"localhost:{local.project.port}"
    create_project(tmp_path / "other", where, ["a"])
    kit = tmp_path / "other" / "kits" / "a"
    with pytest.raises(
        FedLassoError, match=r"is not of project 'other'.*use the kit of its project"
    ):
        check_server(kit, read_kit(kit))
    # Without our check, and although it trusts the true server, the server does not let it in.
    root = local.kit("a") / "startup" / "rootCA.pem"
    (kit / "startup" / "rootCA.pem").write_bytes(root.read_bytes())
    configure_site(kit, tables["a"], None)
    engine = Engine(kit, Kit("other", "", "d", "site", "localhost", local.project.port, "", {}))
    try:
        with pytest.raises(FedLassoError, match=r"did not let this site in"):
            engine.wait_registered(6)
    finally:
        engine.stop()
    with Console(local.folder) as console:
        assert sorted(console.connected()) == list(SITES)


def test_a_killed_site_is_named_and_the_fit_resumes_to_the_same_bits(
    local: LocalFederation,
    tables: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings: dict[str, Any] = {"procedure": "ADMM", "lam": 0.1, "rounds": 8}
    out = tmp_path / "model"

    def kill_at(event: Event) -> None:
        if event.number == 4:
            local.kill("b")

    with pytest.raises(Interrupted, match="resume"):
        run_plan(out, plan(local, out, **settings), kill_at)
    assert not (out / "model.json").exists()
    local.start_site("b")
    assert main(["federation", "resume", str(out)]) == 0
    said = capsys.readouterr().out
    assert "its audit has the same hashes" in said
    assert "Engine start" in said
    alone = fit(in_process(tables), **settings)
    rows = (out / "coefficients.csv").read_text().splitlines()[1:]
    model = {name: float(value) for name, value in (row.split(",") for row in rows)}
    assert model == dict(zip(COLUMNS, alone.coefficients.tolist(), strict=True))
    ledger = json.loads((out / "model.json").read_bytes())["ledger"]
    for (kind, site), cost in alone.costs.entries.items():
        assert ledger[site][kind] == asdict(cost)
    assert main(["federation", "status", str(local.folder), "--quick"]) == 0
    assert "3 of 3 sites" in capsys.readouterr().out
    audits = json.loads((out / "audit.json").read_bytes())
    questions = len(list((out / "journal").glob("*.entry")))
    assert {books["used"] for books in audits.values()} == {questions}
    for site in SITES:
        entries = site_audit(local.kit(site)).entries(read_plan(out).opening.fit)
        sent = [e.sha256 for e in entries if e.verdict == "sent"]
        assert len(sent) == audits[site]["sent"] >= audits[site]["arrived"] >= questions


def test_a_frozen_site_is_named_after_the_timeout(local: LocalFederation) -> None:
    with connect(local.folder, timeout=3) as network:
        network.open(Opening("f" * 8, "y", COLUMNS))
        family = local.family("c")
        for process in family:
            process.suspend()
        try:
            with pytest.raises(Interrupted, match="site 'c' did not answer within 3 s"):
                fit(network, "CD", lam=0.1, rounds=3)
        finally:
            for process in family:
                process.resume()
