"""Commands, kits and certificates without a network: every error is one line."""

import errno
import os
import socket
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nvflare")

from helpers.nets import run, write_tables

from fedlasso import FedLassoError
from fedlasso.atomic_files import CannotWrite
from fedlasso.deploy.kit import check_certificate, read_kit
from fedlasso.deploy.nvflare.engine import check_server
from fedlasso.deploy.nvflare.local import enrol, reserve_port
from fedlasso.deploy.nvflare.project import create_project

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    return write_tables(tmp_path)


@pytest.mark.parametrize(
    "command",
    ["federation init", "federation sign", "federation add", "federation revoke",
     "federation renew", "federation start-server", "federation status", "federation fit",
     "federation resume", "federation demo", "site request", "site accept", "site check",
     "site start", "site status", "site members", "site audit", "site report", "site clean",
     "site unit"],
)  # fmt: skip
def test_every_command_has_help_with_an_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        run(*command.split(), "--help")
    assert stopped.value.code == 0
    assert f"Example: fedlasso {command}" in " ".join(capsys.readouterr().out.split())


def test_bad_usage_is_one_line_and_exit_code_two(
    tables: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "p"
    data = tables["a"]
    kept = reserve_port()
    port = kept.getsockname()[1]
    with socket.create_server(("", port)):
        create_project(project, f"localhost:{port}", ["a", "b", "c"])
        kit = tmp_path / "sites" / "a"
        enrol(project, {"a": kit})
        fit = ["federation", "fit", project, "--target", "y", "--out", tmp_path / "model"]
        cases: list[tuple[list[object], str]] = [
            (["federation", "start-server", project], f"port {port} is in use"),
            (["federation", "start-server", tmp_path / "none"], "contains no project"),
            (["federation", "init", project, "--server", "h:1", "--site", "a"], "is not empty"),
            (["federation", "init", "x", "--server", "h", "--site", "a"], "give HOST:PORT"),
            (["federation", "init", "x", "--server", "h:1"], "at least one --site"),
            (["federation", "init", "x", "--server", "h:1", "--site", "a b"], "use letters"),
            ([*fit, "--validation", "1"], "--validation is 1.0; give a fraction between 0 and 1"),
            ([*fit, "--procedure", "none"], "'none'"),
            ([*fit, "--columns", "u", "--drop", "v"], "give --columns or --drop, not both"),
            (["federation", "resume", tmp_path / "none"], "contains no fit to resume"),
            (["site", "start", tmp_path, data], "is not a kit"),
            (["site", "start", project / "server", data], "is a kit for a server"),
            (["site", "start", kit, tmp_path / "none.csv"], "cannot read none.csv"),
            (["site", "check", kit, data, "--policy", "none.toml"], "cannot read none.toml"),
            (["site", "audit", kit, "--fit", "ff"], "the audit has no entries"),
            (["site", "start", kit, data, "--engine-user", "nobody-here"], "--engine-user"),
            (["site", "clean", kit, "--older-than", "-1"], "give days, 0 or more"),
            (["federation", "add", project], "name at least one --site"),
            (["federation", "add", project, "--site", "a"], "two sites are called 'a'"),
            (["federation", "add", project, "--site", "server"], "can be called 'server'"),
            (["federation", "revoke", project, "z"], "no site is called 'z'"),
            (["federation", "sign", project, data], "is not a request"),
            (["site", "accept", kit, data], "is not a certificate"),
        ]
        for arguments, message in cases:
            assert run(*arguments) == 2, arguments
            errors = capsys.readouterr().err
            assert message in errors
            assert errors.count("\n") == 1
    with kept:
        assert run("federation", "status", project) == 2
        assert f"no server at localhost:{port}" in capsys.readouterr().err
    assert run("site", "check", kit, data) == 0
    said = capsys.readouterr().out
    assert "120 rows, 14 columns" in said
    assert "column 'note' is text; 1 levels with 10 rows or more are reported" in said
    assert "Refused:  AllMoments, BaselineAt, MomentsOf" in said
    (kit / "startup" / "client.crt").write_text("changed")
    assert run("site", "check", kit, data) == 2
    assert "files of this kit were changed" in capsys.readouterr().err


def test_names_that_do_not_resolve_and_old_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_project(tmp_path / "p", "no-such-host.invalid:8443", ["a"])
    kit = tmp_path / "sites" / "a"
    enrol(tmp_path / "p", {"a": kit})
    with pytest.raises(FedLassoError, match=r"the name no-such-host.invalid cannot be resolved"):
        check_server(kit, read_kit(kit))

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> "Later":
            return cls(2100, 1, 1, tzinfo=UTC)

    monkeypatch.setattr("fedlasso.deploy.authority.datetime", Later)
    with pytest.raises(FedLassoError, match=r"certificate client.crt of 'a' expired on"):
        check_certificate(kit, read_kit(kit))


@pytest.mark.parametrize("named", [True, False])
def test_a_full_disk_at_the_coordinator_is_one_line(
    named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    create_project(tmp_path / "p", "localhost:8443", ["a"])
    out = tmp_path / "model"

    def fail(*_: object, **__: object) -> None:
        error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise CannotWrite(out / "journal", error) if named else error

    monkeypatch.setattr("fedlasso.deploy.run.run_plan", fail)
    assert run("federation", "fit", tmp_path / "p", "--target", "y", "--out", out) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"fedlasso: cannot write {out}")
    assert said.endswith(
        f"No space left on device; free disk space, then run `fedlasso federation resume {out}`\n"
    )
    # What the sites answer is for nobody else.
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
