"""A site over the years: it waits, says how it is, cleans up, and its machine starts it."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from helpers.nets import COLUMNS, opening, run, write_tables
from helpers.waiting import wait_until

from fedlasso.deploy.doorkeeper import Doorkeeper
from fedlasso.deploy.kit import make_private_folders, read_kit
from fedlasso.deploy.nvflare.local import enrol, reserve_port
from fedlasso.deploy.nvflare.project import create_project, write_settings
from fedlasso.deploy.nvflare.service import STATE
from fedlasso.federation import decode, encode
from fedlasso.governance.door_messages import (
    DescribeColumns,
    Described,
    Introduce,
    Introduction,
    Refusal,
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """A site's kit and its data; its server is not there."""
    base = tmp_path_factory.mktemp("site")
    data = write_tables(base)["a"]
    with reserve_port() as kept:
        create_project(base / "project", f"localhost:{kept.getsockname()[1]}", ["a"])
        enrol(base / "project", {"a": base / "sites" / "a"})
        yield base / "sites" / "a", data


def copy_kit(kit: Path, to: Path) -> Path:
    """A kit like this one; a site that was killed has left its socket behind."""
    return Path(shutil.copytree(kit, to, ignore=shutil.ignore_patterns("door")))


@contextmanager
def started(kit: Path, data: Path) -> Iterator[subprocess.Popen[bytes]]:
    out = kit.parent / "out"
    with out.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "fedlasso", "site", "start", str(kit), str(data)],
            stdin=subprocess.DEVNULL, stdout=said, stderr=said,
        )  # fmt: skip
    try:
        wait_until(lambda: b"Waiting" in out.read_bytes() or process.poll() is not None, "a site")
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_site_waits_for_its_server_and_says_so_once(
    made: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    kit, data = made
    (kit / STATE).unlink(missing_ok=True)
    assert run("site", "status", kit) == 1
    assert "PROBLEM: the site is not running" in capsys.readouterr().out
    with started(kit, data) as process:
        assert run("site", "status", kit) == 1
        status = capsys.readouterr().out
        assert "PROBLEM: Waiting: no server at localhost" in status
        assert "OK: the certificate is valid" in status
        # Nobody else answers in its name meanwhile.
        assert run("site", "start", kit, data) == 2
        assert "is in use by another" in capsys.readouterr().err
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    said = (kit.parent / "out").read_text()
    assert said.count("Waiting") == 1
    assert "stopped after" in said
    # As if the server had let it in: then it is well.
    with started(kit, data):
        (kit / STATE).write_text("Connected to localhost; Ctrl-C leaves")
        room = shutil.disk_usage(kit).free > 200_000_000
        assert run("site", "status", kit) == (0 if room else 1)


def test_only_old_fits_are_cleaned_and_never_the_books(
    made: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    kit, _ = made
    make_private_folders(kit)
    for name, days in (("old", 40), ("new", 10)):
        path = kit / "memory" / name / "round.npz"
        path.parent.mkdir()
        path.write_bytes(b"123")
        then = time.time() - days * 86400
        for changed in (path, path.parent):
            os.utime(changed, (then, then))
    (kit / "books" / "audit.jsonl").touch()
    os.utime(kit / "books" / "audit.jsonl", (0, 0))
    assert run("site", "clean", kit, "--older-than", "30") == 0
    assert "Removed files of 1 fits, 3 bytes" in capsys.readouterr().out
    assert [path.name for path in (kit / "memory").iterdir()] == ["new"]
    assert (kit / "books" / "audit.jsonl").exists()


def test_a_full_disk_at_the_site_is_one_line_at_both_ends(
    made: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kit, data = made
    make_private_folders(kit)
    answer = Doorkeeper(kit, data, None).open_job()
    assert isinstance(decode(answer(encode(Introduce()))), Introduction)

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    capsys.readouterr()
    for question in (Introduce(), opening(fit="ab" * 8, columns=COLUMNS)):
        reply = decode(answer(encode(question)))
        assert isinstance(reply, Refusal)
        assert reply.text == (
            "cannot write the site's audit: No space left on device; free disk space there"
        )
    assert "cannot write the site's audit: No space left on device" in capsys.readouterr().out


def test_data_and_policy_may_change_between_two_jobs(
    made: tuple[Path, Path], tmp_path: Path
) -> None:
    kit, data = made
    make_private_folders(kit)
    own = Path(shutil.copy(data, tmp_path))
    policy = tmp_path / "policy.toml"
    policy.write_text("min_rows = 10\n")
    keeper = Doorkeeper(kit, own, policy)
    before = keeper.open_job()
    own.write_text(own.read_text().replace("x00", "x99"))
    reply = decode(before(encode(Introduce())))
    assert isinstance(reply, Refusal)
    assert "the data file has changed since it was read" in reply.text
    policy.write_text('columns = ["x99"]\n')
    reply = decode(keeper.open_job()(encode(Introduce())))
    assert isinstance(reply, Introduction)
    assert reply.columns == ("x99",)
    own.unlink()
    reply = decode(keeper.open_job()(encode(Introduce())))
    assert isinstance(reply, Refusal)
    assert reply.text == "cannot read a.csv: No such file or directory"


@pytest.mark.parametrize("word", ["y", "n"])
def test_the_operator_is_asked_where_the_site_was_started(
    word: str, made: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    # What waits for approval is in the kit, so each case has its own.
    kit = copy_kit(made[0], tmp_path / "kit")
    data = made[1]
    make_private_folders(kit)
    policy = tmp_path / "policy.toml"
    policy.write_text("approval = true\n")
    # Without a terminal nobody could say yes.
    assert run("site", "start", kit, data, "--policy", policy) == 2
    assert "the policy requires approval, which needs a terminal" in capsys.readouterr().err
    asked: list[str] = []

    def say(text: str) -> str:
        asked.append(text)
        return word

    monkeypatch.setattr("builtins.input", say)
    answer = Doorkeeper(kit, data, policy).open_job()
    question = DescribeColumns("ab" * 8, "y", COLUMNS, (), 10)
    reply = decode(answer(encode(question)))
    assert isinstance(reply, Described if word == "y" else Refusal)
    assert len(asked) == 1
    assert "DescribeColumns" in asked[0]


@pytest.mark.parametrize("user", [None, "nobody"])
def test_the_unit_is_one_that_systemd_takes(
    user: str | None, made: tuple[Path, Path], tmp_path: Path
) -> None:
    kit, data = made
    spaced = tmp_path / "a folder 100%"
    copy_kit(kit, spaced / "a")
    given = ["--engine-user", user] if user else []
    out = tmp_path / "out"
    assert run("site", "unit", spaced / "a", data, "--out", out, *given) == 0
    unit = (out / "fedlasso-a.service").read_text()
    assert f'"{spaced / "a"}"'.replace("%", "%%") in unit
    assert "UMask=0077" in unit
    assert "Restart=always" in unit
    assert ("--engine-user nobody" in unit) is bool(user)
    assert ("CapabilityBoundingSet=\n" in unit) is not bool(user)
    lint_container(out / "Containerfile")
    # Systemd's own word, where there is one.
    if program := shutil.which("systemd-analyze"):
        verified = subprocess.run(
            [program, "verify", str(out / "fedlasso-a.service")], capture_output=True, text=True
        )
        assert "fedlasso" not in verified.stderr, verified.stderr
        assert verified.returncode == 0, verified.stderr


def lint_container(path: Path) -> None:
    """Nothing here builds containers, so its lines are looked at."""
    lines = [line for line in path.read_text().splitlines() if line and line[0] != "#"]
    known = {"FROM", "RUN", "USER", "ENV", "VOLUME", "HEALTHCHECK", "CMD"}
    assert [line.split()[0] for line in lines if line.split()[0] not in known] == []
    assert lines[0].startswith("FROM python:3.")
    assert lines[-1] == 'CMD ["fedlasso", "site", "start", "/kit", "/data/a.csv"]'
    assert "USER fedlasso" in lines


def test_logs_of_the_engine_are_bounded(made: tuple[Path, Path], tmp_path: Path) -> None:
    kit = copy_kit(made[0], tmp_path / "a")
    write_settings(kit, read_kit(kit))
    config = json.loads((kit / "local" / "log_config.json").read_bytes())
    for handler in config["handlers"].values():
        assert handler["class"] == "logging.handlers.RotatingFileHandler"
        assert 0 < handler["maxBytes"] * (1 + handler["backupCount"]) < 10_000_000
