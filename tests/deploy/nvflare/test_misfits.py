"""Sites of a real federation that do not fit: clocks, versions, columns, too few of them."""

import contextlib
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from helpers.deploy.nvflare.stories import Breakable, SharedJob
from helpers.nets import SITES, fit_alike, run, same_files, share_key

from fedlasso import FedLassoError, __version__
from fedlasso.deploy.kit import read_kit
from fedlasso.deploy.nvflare.engine import check_server
from fedlasso.deploy.nvflare.local import START, enrol, reserve_port

# The engine and its libraries warn of things that are not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore")
SETTINGS = ("--procedure", "CD", "--penalty", "0.1", "--uploads", "7")
HOUR = 3600


# libfaketime breaks Python's sleep, so this shifts what Python asks; TLS still sees the true time.
# Pandas and Arrow are compiled against the true class and must come first.
CLOCK = """
import datetime, time
import pandas, pyarrow.parquet
now = time.time
shift = {hours} * 3600
time.time = lambda: now() + shift
class Shifted(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(time.time(), tz)
datetime.datetime = Shifted
"""
VERSION = "import fedlasso; fedlasso.__version__ = '0.9.0'"
PROTOCOL = f"{VERSION}; from fedlasso.federation import messages; messages.PROTOCOL = '2'"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("net")


def shim(folder: Path, code: str) -> dict[str, str]:
    """An environment in which Python begins with some code."""
    place = Path(tempfile.mkdtemp(dir=folder))
    (place / "sitecustomize.py").write_text(code)
    found = [str(place), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(found), "PYTHONWARNINGS": "ignore"}


def command(folder: Path, hours: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Our command where the clock is off."""
    return subprocess.run(
        [sys.executable, "-m", "fedlasso", *map(str, arguments)],
        env=os.environ | shim(folder, CLOCK.format(hours=hours)),
        capture_output=True, text=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def started(tables: dict[str, Path], scratch: Path) -> Iterator[Breakable]:
    """Certificates of yesterday, clocks that are off by five hours, and a later minor version."""
    folder = scratch / "project"
    with init(scratch, -24, folder):
        federation = Breakable(folder, tables)
    share_key(federation)
    for site, hours in (("b", 5), ("c", -5)):
        code = CLOCK.format(hours=hours) + (VERSION if site == "b" else "")
        federation.environments[site] = shim(scratch, code)
    with federation:
        yield federation


@pytest.fixture
def local(started: Breakable) -> Breakable:
    started.revive()
    return started


def init(scratch: Path, hours: int, folder: Path) -> socket.socket:
    """A project made where the clock is off, and its port, kept."""
    kept = reserve_port()
    sites = [f"--site={name}" for name in SITES]
    where = f"--server=localhost:{kept.getsockname()[1]}"
    made = command(scratch, hours, "federation", "init", folder, where, *sites)
    assert made.returncode == 0, made.stderr
    return kept


def fit(local: Breakable, out: Path, *options: object) -> int:
    given = ("--target", "y", "--drop", "note", "--out", out, "--start", START)
    return run("federation", "fit", local.folder, *given, *SETTINGS, *options)


def refused(
    local: Breakable, out: Path, capsys: pytest.CaptureFixture[str], *options: object
) -> str:
    """The one line of a fit that is refused before it asks anything."""
    assert fit(local, out, *options) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert not (out / "journal").exists()
    return error.removeprefix("fedlasso: ").rstrip()


def test_clocks_that_are_off_and_another_minor_version_are_told_and_change_no_bit(
    local: Breakable, job: SharedJob, tables: dict[str, Path], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    out = tmp_path / "model"
    began = time.time()
    assert fit(local, out) == 0
    took = time.time() - began
    said = capsys.readouterr().err
    warned = [line for line in said.splitlines() if "clock" in line]
    for line, (site, off) in zip(warned, (("b", "ahead of"), ("c", "behind")), strict=True):
        assert line.startswith(f"fedlasso: site {site!r}: its clock is ")
        assert line.endswith(f" {off} the coordinator's; correct it (the fit continues)")
    notice = f"fedlasso: notice: site 'b' runs fedlasso 0.9.0, the coordinator {__version__}"
    assert notice in said.splitlines()
    assert same_files(out, fit_alike(tables, tmp_path / "alone", *SETTINGS, federation=local))
    kept = json.loads((out / "audit.json").read_bytes())
    assert {s: books["version"] for s, books in kept.items()} == {
        "a": __version__, "b": "0.9.0", "c": __version__,
    }  # fmt: skip
    ahead = {s: books["clock_ahead"] for s, books in kept.items()}
    # What a clock is off is known but for the time that asking takes.
    assert ahead["a"] == 0
    assert 5 * HOUR - took - 1 <= ahead["b"] <= 5 * HOUR + 1
    assert -5 * HOUR - 1 <= ahead["c"] <= -5 * HOUR + took + 1
    capsys.readouterr()
    assert run("federation", "status", local.folder) == 0
    status = capsys.readouterr().out.splitlines()
    assert ["its clock is" in line for line in status[-3:]] == [False, True, True]


@pytest.mark.parametrize(
    ("hours", "text"),
    [(-72, "is not valid before"), (24 * 1000, "expired on")],
)
def test_certificates_mention_the_clock(
    hours: int, text: str, local: Breakable, tables: dict[str, Path], tmp_path: Path
) -> None:
    for action in ("check", "start"):
        ended = command(tmp_path, hours, "site", action, local.kit("a"), tables["a"])
        assert ended.returncode == 2
        assert f"the certificate client.crt of 'a' {text}" in ended.stderr
        assert "the clock here" in ended.stderr
        assert ended.stderr.count("\n") == 1


def test_a_server_whose_certificate_is_not_yet_valid_is_no_stranger(tmp_path: Path) -> None:
    kept = init(tmp_path, 48, tmp_path / "project")
    kit = tmp_path / "sites" / "a"
    enrol(tmp_path / "project", {"a": kit})
    startup = tmp_path / "project" / "server" / "startup"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(startup / "server.crt", startup / "server.key")
    reported = read_kit(kit)
    with kept, socket.create_server(("localhost", reported.port)) as listener:

        def greet() -> None:
            with contextlib.suppress(OSError):
                context.wrap_socket(listener.accept()[0], server_side=True)

        greeter = threading.Thread(target=greet)
        greeter.start()
        with pytest.raises(FedLassoError, match=r"is not yet valid; check the clock here"):
            check_server(kit, reported)
        greeter.join()


def test_columns_that_differ_are_listed(
    local: Breakable, tables: dict[str, Path], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    data = tables["b"].read_text()
    tables["b"].write_text(data.replace("x00", "x99"))
    try:
        assert refused(local, tmp_path / "model", capsys).startswith(
            "the sites' columns differ, only at 'a' and 'c': x00; only at 'b': x99; correct"
        )
    finally:
        tables["b"].write_text(data)


def test_too_few_sites_and_another_protocol_are_refused(
    local: Breakable, job: SharedJob, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(local, tmp_path / "few", capsys, "--sites", "a,b")
    assert error == "site 'a': the fit has 2 sites, but the policy here requires at least 3"
    job.close()
    local.kill("b")
    before = local.environments["b"]
    local.environments["b"] = shim(tmp_path, PROTOCOL)
    local.revive()
    error = refused(local, tmp_path / "model", capsys)
    # Whoever comes next starts the site as it was, and another job.
    job.close()
    local.kill("b")
    local.environments["b"] = before
    assert error == (
        f"site 'b' runs fedlasso 0.9.0 (protocol 2), the coordinator {__version__} (protocol 1); "
        "install versions with one protocol"
    )
