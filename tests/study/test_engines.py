"""Real processes: a Dask scheduler with workers, one of them killed; runs killed and resumed."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pytest
from distributed.utils import json_load_robust
from helpers.study.small import OTHER, SMALL, STUDY, TOML, Deadly
from helpers.waiting import PATIENCE, wait_until

from fedlasso.cli import main
from fedlasso.study import Store, run_study

SETTINGS = ["--epochs", "1,20", "--budgets", "30", "--seed", "7", "--replicates", "6"]
# Replicates that a held run finishes before it is stopped.
FREE = 3


def export(folder: Path) -> str:
    frame: pd.DataFrame = Store(folder).table()
    text: str = frame[[c for c in frame if not c.startswith("seconds")]].to_csv()
    return text


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("expected")
    run_study(STUDY, [SMALL, OTHER], 6, Store(folder), workers=1)
    return export(folder)


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers as processes of their own, on loopback."""
    place = tmp_path / "scheduler.json"
    search = os.pathsep.join(sys.path)
    environment = os.environ | {"PYTHONPATH": search, "DEADLY": str(tmp_path / "deadly")}

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", *arguments, "--scheduler-file", str(place), "--no-dashboard"],
            stderr=subprocess.DEVNULL, env=environment, cwd=tmp_path,
        )  # fmt: skip

    master = start("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0")
    # Workers wait by themselves for the scheduler's file.
    workers = [
        start("distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny") for _ in range(2)
    ]
    try:
        yield json_load_robust(place, timeout=PATIENCE)["address"], workers
    finally:
        for process in (*workers, master):
            process.kill()
            process.wait()


def test_dask_gives_the_same_table_though_a_worker_is_killed(
    scheduler: tuple[str, list[subprocess.Popen[bytes]]], tmp_path: Path, expected: str
) -> None:
    address, workers = scheduler
    folder = tmp_path / "results"
    study = Deadly(**asdict(STUDY))
    progress = run_study(study, [SMALL, OTHER], 6, Store(folder), engine=address)
    assert (progress.done, progress.failed) == (12, 0)
    killed = int((tmp_path / "deadly").read_text())
    (dead,) = [worker for worker in workers if worker.pid == killed]
    assert dead.wait() == -signal.SIGKILL
    assert export(folder) == expected


@pytest.fixture
def _busy_port() -> Iterator[None]:
    """The port that Dask likes best is taken: by us, or by whoever was here before."""
    with socket.socket() as taken, contextlib.suppress(OSError):
        taken.bind(("", 8787))
        taken.listen()
        yield
        return
    yield


@pytest.mark.usefixtures("_busy_port")
def test_a_local_dask_cluster_gives_the_same_table(tmp_path: Path, expected: str) -> None:
    run_study(STUDY, [SMALL, OTHER], 6, Store(tmp_path), engine="dask", workers=1)
    assert export(tmp_path) == expected


def start_held(arguments: list[str], held: Path) -> subprocess.Popen[str]:
    """The command in a process group of its own, with two workers, held."""
    return subprocess.Popen(
        [sys.executable, "-m", "helpers.study.held", *arguments, "--workers", "2"],
        stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "HELD": str(held)},
    )  # fmt: skip


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_resumes_to_the_same_table(
    tmp_path: Path, expected: str, stop: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    file, folder, held = tmp_path / "own.toml", tmp_path / "results", tmp_path / "held"
    file.write_text(TOML)
    held.mkdir()
    arguments = ["study", "run", "--scenario-file", str(file), "--out", str(folder), *SETTINGS]
    run = start_held(arguments, held)
    wait_until(lambda: run.poll() is not None or len(Store(folder).parts()) >= FREE, "parts")
    if stop is signal.SIGKILL:
        os.killpg(run.pid, stop)
    else:
        run.send_signal(stop)
    _, errors = run.communicate()
    kept = {path: path.stat().st_mtime_ns for path in Store(folder).parts().values()}
    assert len(kept) == FREE, errors
    # What was waiting is not worked off: a pool of two has at most five more in hand.
    assert len(list(held.glob("*-*"))) <= FREE + 5
    if stop is not signal.SIGKILL:
        assert run.returncode == 130
        assert "3 replicates are kept" in errors
        assert "Run the same command again" in errors
        assert "Traceback" not in errors
    assert main([*arguments, "--workers", "1"]) == 0
    assert "12 of 12 finished" in capsys.readouterr().out
    assert export(folder) == expected
    assert kept.items() <= {p: p.stat().st_mtime_ns for p in Store(folder).parts().values()}.items()
