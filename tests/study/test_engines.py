"""Real processes: a Dask scheduler with workers, one of them killed; runs killed and resumed."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from study.small import OTHER, SMALL, STUDY, TOML

from fedlasso.study import Progress, Store, run_study

COMMAND = [sys.executable, "-m", "fedlasso", "study"]
SETTINGS = ["--epochs", "1,20", "--budgets", "30", "--seed", "7", "--replicates", "6"]


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
def scheduler(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[str]]]]:
    """A scheduler and two workers as processes of their own, on loopback."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}

    def start(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", *arguments], stderr=subprocess.PIPE, text=True,
            env=environment, cwd=tmp_path,
        )  # fmt: skip

    main = start(
        "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"
    )
    address = ""
    assert main.stderr is not None
    while not address:
        found = re.search(r"tcp://127\.0\.0\.1:\d+", main.stderr.readline())
        address = found.group() if found else ""
    workers = [
        start(
            "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny",
            "--no-dashboard",
        )
        for _ in range(2)
    ]  # fmt: skip
    yield address, workers
    for process in (*workers, main):
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def test_dask_gives_the_same_table_though_a_worker_is_killed(
    scheduler: tuple[str, list[subprocess.Popen[str]]], tmp_path: Path, expected: str
) -> None:
    address, workers = scheduler
    folder = tmp_path / "results"

    def kill_one(progress: Progress) -> None:
        if progress.done == 3:
            workers[0].send_signal(signal.SIGKILL)

    progress = run_study(STUDY, [SMALL, OTHER], 6, Store(folder), engine=address, listen=kill_one)
    assert (progress.done, progress.failed) == (12, 0)
    assert workers[0].wait() == -signal.SIGKILL
    assert export(folder) == expected


def test_a_local_dask_cluster_gives_the_same_table(tmp_path: Path, expected: str) -> None:
    run_study(STUDY, [SMALL, OTHER], 6, Store(tmp_path), engine="dask", workers=1)
    assert export(tmp_path) == expected


def start_run(folder: Path, file: Path, *more: str) -> subprocess.Popen[str]:
    arguments = ["run", "--scenario-file", str(file), *SETTINGS, "--workers", "2", *more]
    return subprocess.Popen(
        [*COMMAND, *arguments, "--out", str(folder)], stderr=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def wait_for_parts(run: subprocess.Popen[str], folder: Path, count: int) -> None:
    """Return when so many parts are there, or the run has ended."""
    while run.poll() is None and len(Store(folder).parts()) < count:
        os.sched_yield()


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_resumes_to_the_same_table(
    tmp_path: Path, expected: str, stop: signal.Signals
) -> None:
    file, folder = tmp_path / "own.toml", tmp_path / "results"
    file.write_text(TOML)
    run = start_run(folder, file)
    wait_for_parts(run, folder, 3)
    if stop is signal.SIGKILL:
        os.killpg(run.pid, stop)
    else:
        run.send_signal(stop)
    _, errors = run.communicate()
    kept = {path: path.stat().st_mtime_ns for path in Store(folder).parts().values()}
    assert len(kept) >= 3
    if stop is not signal.SIGKILL:
        assert run.returncode == 130
        assert "replicates are kept" in errors
        assert "Run the same command again" in errors
        assert "Traceback" not in errors
    again = start_run(folder, file)
    output, errors = again.communicate()
    assert again.returncode == 0, errors
    assert "12 of 12 finished" in output
    assert export(folder) == expected
    assert kept.items() <= {p: p.stat().st_mtime_ns for p in Store(folder).parts().values()}.items()


def test_a_stopped_run_does_not_work_off_what_is_waiting(tmp_path: Path) -> None:
    file, folder = tmp_path / "own.toml", tmp_path / "results"
    file.write_text(TOML)
    run = start_run(folder, file, "--replicates", "100000")
    wait_for_parts(run, folder, 1)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=120)
    assert run.returncode == 130
