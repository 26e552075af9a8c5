"""Faults of a real federation that stop a fit: wires cut, participants killed, slow or frozen."""

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from helpers.deploy.nvflare.stories import Act, Breakable, Story, fit
from helpers.deploy.nvflare.wires import Wire
from helpers.nets import COLUMNS, SHORT, SITES, run, same_files
from helpers.waiting import wait_until

from fedlasso.deploy.kit import open_audit
from fedlasso.deploy.nvflare.line import connect
from fedlasso.deploy.nvflare.local import START
from fedlasso.errors import Interrupted
from fedlasso.federation.ledger import read_journal
from fedlasso.models import NetworkSource, read_plan
from fedlasso.sites import Rows

# The engine and its libraries warn of things that are not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore")


def once(condition: Callable[[], bool], act: Act) -> None:
    """Act when a condition is met, while the fit goes on."""

    def wait() -> None:
        wait_until(condition, "what a fault waits for")
        act()

    threading.Thread(target=wait, daemon=True).start()


def entries(local: Breakable, site: str) -> int:
    return sum(1 for _ in open_audit(local.kit(site)).entries())


def test_stop_names_the_site_and_the_fit_resumes_to_the_same_bits(
    local: Breakable, wire: Wire, story: Story, tables: dict[str, Path], alone: Path,
    tmp_path: Path, capsys: pytest.CaptureFixture[str], hurry: Act,
) -> None:  # fmt: skip
    out = tmp_path / "model"
    data = tables["c"].read_text()

    def cut() -> None:
        wire.cut()
        hurry()

    def silence() -> None:
        wire.silence()
        hurry()

    def change() -> None:
        tables["c"].write_text(data.replace("0.1", "0.2"))

    def kill() -> None:
        local.kill("b")
        hurry()

    def slow() -> None:
        family = local.family("a")
        before = entries(local, "c")
        for process in family:
            process.suspend()
        once(lambda: entries(local, "c") > before, lambda: [p.resume() for p in family])

    faults: list[tuple[int, Act, str, Act]] = [
        (3, cut, "site 'b' ", wire.restore),
        (6, silence, f"site 'b' did not answer within {SHORT:.0f} s", wire.restore),
        (8, kill, "site 'b' ", lambda: local.start_site("b")),
        (10, change, "site 'c': the data file has changed since it was read; restore it and resume",
         lambda: tables["c"].write_text(data)),
    ]  # fmt: skip
    story.at = {number: fault for number, fault, _, _ in faults} | {12: slow}
    ended = fit(local, out)
    for _, _, error, mend in faults:
        assert ended == 2
        said = capsys.readouterr().err
        assert said.startswith(f"fedlasso: {error}")
        assert "resume" in said
        assert said.count("\n") == 1
        assert not (out / "model.json").exists()
        mend()
        local.wait()
        ended = run("federation", "resume", out, "--start", START)
    # The slow site was only slow.
    assert (ended, story.at, story.said) == (0, {}, [])
    reported = capsys.readouterr().out
    assert "its audit has the same hashes" in reported
    assert "Engine start" in reported
    assert same_files(out, alone)
    check_books(local, out)
    assert run("federation", "status", local.folder, "--quick") == 0
    assert "3 of 3 sites" in capsys.readouterr().out


def check_books(local: Breakable, out: Path) -> None:
    """What a fit used arrived, and what arrived is in the books of the site that sent it."""
    audits = json.loads((out / "audit.json").read_bytes())
    questions = len(list(read_journal(out / "journal")))
    assert {books["used"] for books in audits.values()} == {questions}
    for site in SITES:
        listed = open_audit(local.kit(site)).entries(read_plan(out, NetworkSource).source.fit)
        sent = [e.sha256 for e in listed if e.verdict == "sent"]
        assert len(sent) == audits[site]["sent"] >= audits[site]["arrived"] >= questions


def test_a_frozen_site_is_named_after_the_timeout(local: Breakable) -> None:
    with connect(local.folder, start=START) as network:
        network.open(NetworkSource("", "f" * 8, "y", COLUMNS))
        family = local.family("c")
        for process in family:
            process.suspend()
        # The frozen site alone is asked, so nobody else can be late.
        network.timeout = 2.0
        try:
            with pytest.raises(Interrupted, match="site 'c' did not answer within 2 s"):
                network.ask(Rows(to=("c",)))
        finally:
            for process in family:
                process.resume()
