"""Real processes on loopback with mutual TLS: the network gives the bits of one process."""

import json
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("nvflare")

from nets import SITES, in_process, write_tables

from fedlasso import FedLassoError, Fit, fit
from fedlasso.nvflare.engine import Engine, check_server
from fedlasso.nvflare.kit import configure_site, read_kit, site_audit
from fedlasso.nvflare.engine import Interrupted
from fedlasso.nvflare.link import Opening, connect
from fedlasso.nvflare.local import LocalFederation
from fedlasso.nvflare.project import create_project
from fedlasso.nvflare.run import Event, Plan, begin_plan, read_plan, run_plan

# The engine and its libraries warn of things that are not ours to mend.
pytestmark = [pytest.mark.xdist_group("network"), pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_tables(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def local(
    tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalFederation]:
    with LocalFederation(tmp_path_factory.mktemp("net") / "project", tables) as federation:
        yield federation


def plan(local: LocalFederation, out: Path, timeout: float = 20.0, **settings: Any) -> Plan:
    return begin_plan(out, Plan(str(local.folder), Opening("", "y"), settings, timeout=timeout))


def ignore(event: Event) -> None:
    """Nobody watches."""


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
    with connect(local.folder, timeout=30) as network:
        for number, settings in enumerate(cases):
            network.open(Opening(f"{number:08x}", "y"))
            assert network.sites == SITES
            assert same(fit(network, **settings), fit(in_process(tables), **settings))
        with pytest.raises(FedLassoError) as refused:
            fit(network, "OneShotGram", lam=0.1)
        assert str(refused.value) == (
            "site 'a': the policy here does not answer AllMoments; allow it in policy.toml"
        )


def test_a_killed_site_is_named_and_the_fit_resumes_to_the_same_bits(
    local: LocalFederation, tables: dict[str, Path], tmp_path: Path
) -> None:
    settings = {"procedure": "ADMM", "lam": 0.1, "rounds": 8}
    out = tmp_path / "model"

    def kill_at(event: Event) -> None:
        if event.number == 4:
            local.kill("b")

    with pytest.raises(Interrupted, match="resume"):
        run_plan(out, plan(local, out, **settings), kill_at)
    assert not (out / "model.json").exists()
    local.start_site("b")
    result, times = run_plan(out, read_plan(out), ignore)
    assert same(result, fit(in_process(tables), **settings))
    audits = json.loads((out / "audit.json").read_bytes())
    questions = len(list((out / "journal").glob("*.entry")))
    assert {books["used"] for books in audits.values()} == {questions}
    for site in SITES:
        entries = site_audit(local.kit(site)).entries(read_plan(out).opening.fit)
        sent = [e.sha256 for e in entries if e.verdict == "sent"]
        assert len(sent) == audits[site]["sent"] >= audits[site]["arrived"] >= questions


def test_a_frozen_site_is_named_after_the_timeout(local: LocalFederation) -> None:
    with connect(local.folder, timeout=3) as network:
        network.open(Opening("f" * 8, "y"))
        family = local.family("c")
        for process in family:
            process.suspend()
        try:
            with pytest.raises(Interrupted, match="site 'c' did not answer within 3 s"):
                fit(network, "CD", lam=0.1, rounds=3)
        finally:
            for process in family:
                process.resume()
