"""Real processes on loopback with mutual TLS: the network gives the bits of one process."""

import contextlib
import json
import re
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from helpers.deploy.nvflare.stories import SharedJob
from helpers.nets import (
    COLUMNS,
    SECRET,
    SITES,
    fit_alike,
    in_process,
    open_to_others,
    run,
    same_files,
    share_key,
    write_tables,
)
from helpers.waiting import PATIENCE

from fedlasso import FedLassoError
from fedlasso.deploy.kit import read_kit
from fedlasso.deploy.nvflare.engine import check_server
from fedlasso.deploy.nvflare.line import Console
from fedlasso.deploy.nvflare.local import START, LocalFederation, enrol
from fedlasso.deploy.nvflare.project import create_project
from fedlasso.fitting import Model, Settings, fit_model
from fedlasso.governance import Policy
from fedlasso.models import NetworkSource

# The engine and its libraries warn of things that are not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files with text and missing values beside the numbers."""
    return write_tables(tmp_path_factory.mktemp("data"), mixed=True)


@pytest.fixture(scope="module")
def local(
    tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalFederation]:
    # Paths may have spaces.
    folder = tmp_path_factory.mktemp("net") / "the project"
    federation = LocalFederation(folder, tables, write_policy(folder.with_name("policy.toml")))
    share_key(federation)
    with federation:
        yield federation


def write_policy(path: Path) -> Path:
    """Rules by which sites also answer alone what comparisons and rates take."""
    names = ("ChoosePenalty", "ErrorAt", "LargestEigenvalue", "LocalFit", *Policy().single)
    # One file takes part in many fits here.
    path.write_text(f"single = {list(names)}\nmax_numbers = 9.0\n")
    return path


def same(one: Model, other: Model) -> bool:
    bits = one.coefficients.tobytes() == other.coefficients.tobytes()
    bits &= one.intercept == other.intercept
    return bits and one.costs.entries == other.costs.entries


@pytest.mark.parametrize(
    "options", [("--goal", "prediction"), ("--procedure", "CD", "--penalty", "0.1")]
)
def test_the_model_folder_is_that_of_fit_on_the_files(
    options: tuple[str, ...], local: LocalFederation, job: SharedJob, tables: dict[str, Path],
    tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    out = tmp_path / "model"
    options = (*options, "--missing", "mean")
    given = ("--target", "y", "--drop", "note", "--out", out, "--start", START)
    assert run("federation", "fit", local.folder, *given, *options) == 0
    assert f"open {out / 'card.html'}" in capsys.readouterr().out
    alone = fit_alike(tables, tmp_path / "alone", *options, federation=local)
    assert same_files(out, alone)
    reported = []
    for model in (out, alone):
        capsys.readouterr()
        assert run("inspect", model) == 0
        assert run("predict", model, tables["b"]) == 0
        reported.append(capsys.readouterr().out)
    assert reported[0] == reported[1]
    assert reported[0].count("\n") > 130
    assert "ward=(other)" in (out / "coefficients.csv").read_text()
    # All that was written is for its owner only.
    assert out.stat().st_mode & 0o077 == 0
    kept = [local.folder / name for name in ("authority", "coordinator", "kits", "server")]
    for folder in (*kept, *map(local.kit, SITES)):
        assert open_to_others(folder) == []


def test_missing_values_are_refused_before_the_fit(
    local: LocalFederation, job: SharedJob, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "model"
    given = ("--target", "y", "--drop", "note", "--out", out, "--start", START)
    assert run("federation", "fit", local.folder, *given) == 2
    said = capsys.readouterr().err
    assert re.search(
        r"site 'a': values missing in \w+, \w+; fill them, or use --missing mean", said
    )
    assert "rare-a" not in said
    assert not (out / "journal").exists()


def test_comparisons_go_over_the_network_too(
    local: LocalFederation, tables: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "model"
    given = ("--target", "y", "--drop", "note", "--missing", "mean", "--start", START)
    assert run("federation", "fit", local.folder, *given, "--out", out, "--compare") == 0
    options = ("--missing", "mean")
    alone = fit_alike(tables, tmp_path / "alone", *options, compare=True, federation=local)
    # Sites that mask their replies send no Table 1 of their own, so the card costs less.
    network, files = (json.loads((folder / "model.json").read_text()) for folder in (out, alone))
    own, every = (document.pop("table_one") for document in (network, files))
    assert own["sites"] == []
    assert every["sites"] == ["a", "b", "c"]
    pooled = [[column["pooled"] for column in table["columns"]] for table in (own, every)]
    assert pooled[0] == pooled[1]
    # Neither do they send measures of their own.
    measured = [document["assessment"].pop("sites") for document in (network, files)]
    assert measured[0] == []
    assert [site["name"] for site in measured[1]] == ["a", "b", "c"]
    # The interval of the error follows from those.
    spread = [
        [document["error"].pop("se")]
        + [document["assessment"]["error"].pop(end) for end in ("low", "high")]
        for document in (network, files)
    ]
    assert spread[0] == [None] * 3
    assert None not in spread[1]
    for document in (network, files):
        for name in ("digest", "examination_sent", "examination_trips", "most_sent"):
            del document[name]
    assert network == files


def test_network_and_process_agree_bit_for_bit(
    local: LocalFederation, tables: dict[str, Path], job: SharedJob
) -> None:
    cases = [
        Settings(procedure="CD", uploads=30),
        Settings(procedure="DA", penalty=0.1, uploads=6),
        Settings(procedure="ADMM", penalty=0.1, uploads=6),
        Settings(goal="objective", penalty=0.1),
        Settings(goal="selection", cv=3, uploads=60),
    ]
    # The rows were cut at the first fit above, whose columns have rare values.
    kits = {name: local.kit(name) for name in tables}
    alone = [fit_model(in_process(tables, kits=kits), settings) for settings in cases]
    with job.connect(local.folder) as network:
        for number, (settings, expected) in enumerate(zip(cases, alone, strict=True)):
            network.open(NetworkSource("", f"{number:08x}", "y", COLUMNS))
            assert network.sites == SITES
            assert same(fit_model(network, settings), expected)
        with pytest.raises(FedLassoError) as refused:
            fit_model(network, Settings(procedure="OneShotGram", penalty=0.1))
        assert str(refused.value) == (
            "site 'a': the policy here does not answer AllMoments; allow it in policy.toml"
        )
        with pytest.raises(FedLassoError, match=r"site 'a': the target 'ward' is not numeric"):
            network.open(NetworkSource("", "e" * 8, "ward", COLUMNS))
        with pytest.raises(FedLassoError, match="no column 'none'"):
            network.open(NetworkSource("", "e" * 8, "none"))
    # Nothing of a record has reached the server's machine, in logs or anywhere.
    server = [p for p in (local.folder / "server").rglob("*") if p.is_file()]
    assert len(server) > 10
    assert not [p for p in server if SECRET.encode() in p.read_bytes()]


def test_a_kit_of_another_project_is_not_let_in(local: LocalFederation, tmp_path: Path) -> None:
    where = ("localhost", local.project.port)
    create_project(tmp_path / "other", f"localhost:{local.project.port}", ["d"])
    kit = tmp_path / "sites" / "d"
    enrol(tmp_path / "other", {"d": kit})
    with pytest.raises(
        FedLassoError, match=r"belongs to another project than 'other'.*use its kit"
    ):
        check_server(kit, read_kit(kit))
    # Without our check, and although it trusts the true server, the server hangs up on it.
    context = ssl.create_default_context(cafile=str(local.kit("a") / "startup" / "rootCA.pem"))
    context.load_cert_chain(kit / "startup" / "client.crt", kit / "startup" / "client.key")
    said = b""
    with (
        contextlib.suppress(ssl.SSLError, ConnectionError),
        socket.create_connection(where, timeout=PATIENCE) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as line,
    ):
        # Whoever is let in would wait here: the server never speaks first.
        said = line.recv(1)
    assert said == b""
    with Console(local.folder) as console:
        assert sorted(console.connected()) == list(SITES)
