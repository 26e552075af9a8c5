"""Where less is there: no optional package, or the parts of Python that other systems lack."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.study.small import TOML

SOURCE = Path(__file__).parent.parent / "src"
# What fits need in addition to what a site needs.
FITTING = ("numba", "llvmlite", "sklearn")
OPTIONAL = (
    "pandas", "pyarrow", "rich", "jinja2", "latex2mathml", "matplotlib", "nvflare",
    "psutil", "cryptography", "distributed", "dask", "polars", "celer", "sympy", "playwright",
)  # fmt: skip

# Python runs a sitecustomize before anything else, in worker processes too.
HIDE = """
import sys
from importlib.machinery import PathFinder

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] not in {hidden!r}:
            return PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
"""
# The fork server needs CMSG_LEN; the others are what Windows or macOS do not have.
ELSEWHERE = """
import os, signal, socket
for module, names in (
    (os, "sched_getaffinity fork forkpty fdatasync pread getuid killpg"),
    (socket, "AF_UNIX CMSG_LEN"),
    (signal, "SIGKILL SIGHUP SIGALRM"),
):
    for name in names.split():
        delattr(module, name)
"""

FIT = """
import numpy as np
from fedlasso import FederatedLasso, InProcess, fit
from fedlasso.study import SCENARIOS, STUDIES

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 8))
y = X[:, 0] - 2 * X[:, 3] + 0.1 * rng.standard_normal(60)
model = FederatedLasso(penalty=0.1).fit(X, y, sites=np.arange(60) % 3)
draw = SCENARIOS["baseline"].draw(np.random.default_rng(0))
result = fit(InProcess(draw.sites()), "CD", rounds=1)
print(np.flatnonzero(model.coef_), "paper" in STUDIES, result.certificate)
"""

EACH = """
from fedlasso.cli import main

for command in {commands!r}:
    print(main(command.split()))
"""
COMMANDS = {
    "fit a.csv --target y --out model": "fit",
    "fit a.parquet --target y --out model": "fit",
    "diagnose a.csv --target y": "fit",
    "study run --replicates 1 --out results": "study",
    "study status results": "study",
    "study summary results": "study",
    "study export results table.csv": "study",
    "report results": "report",
    "compare results --published table.csv": "report",
    "federation init trial --server localhost:8443 --site north": "nvflare",
    "federation sign trial north.csr": "nvflare",
    "federation add trial --site east": "nvflare",
    "federation revoke trial north": "nvflare",
    "federation renew trial": "nvflare",
    "federation start-server trial": "nvflare",
    "federation status trial": "nvflare",
    "federation fit trial --target y --out model": "nvflare",
    "federation resume model": "nvflare",
    "federation demo": "nvflare",
    "site request north": "courier",
    "site accept north north.crt": "courier",
    "site status north": "nvflare",
    "site clean north": "nvflare",
    "site unit north a.csv": "nvflare",
    "site check north a.csv": "courier",
    "site start north a.csv": "nvflare",
    "site audit north": "courier",
    "courier init trial --site north": "courier",
    "courier sign trial north.csr": "courier",
    "courier add trial --site east": "courier",
    "courier revoke trial north": "courier",
    "courier renew trial": "courier",
    "courier abandon trial 1f2e3d4c": "courier",
    "courier ask trial --target y --out model": "courier,fit",
    "courier answer north question.flq a.csv": "courier",
    "courier collect trial north.fla": "courier,fit",
    "courier status trial": "courier",
    "courier demo": "courier,fit",
}


class Place:
    """A folder in which Python begins with some code."""

    def __init__(self, folder: Path, code: str) -> None:
        self.folder = folder
        (folder / "sitecustomize.py").write_text(code)

    def run(self, *arguments: object) -> "subprocess.CompletedProcess[str]":
        path = os.pathsep.join((str(self.folder), str(SOURCE)))
        return subprocess.run(
            [sys.executable, *map(str, arguments)], cwd=self.folder, text=True, check=False,
            capture_output=True, env=os.environ | {"PYTHONPATH": path},
        )  # fmt: skip


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """No optional package is installed."""
    return Place(tmp_path_factory.mktemp("bare"), HIDE.format(hidden=(*OPTIONAL, *FITTING)))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Nothing is installed but what fits need."""
    return Place(tmp_path_factory.mktemp("plain"), HIDE.format(hidden=OPTIONAL))


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Not Linux; psutil must go because it believes that this is Linux."""
    code = HIDE.format(hidden=("fcntl", "psutil")) + ELSEWHERE
    return Place(tmp_path_factory.mktemp("elsewhere"), code)


@pytest.mark.standard
def test_the_library_fits_without_any_other_package(plain: Place) -> None:
    done = plain.run("-c", FIT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[0 3] True ")


def test_every_command_is_listed_without_any_optional_package(bare: Place) -> None:
    done = bare.run("-m", "fedlasso", "--help")
    listed = re.findall(r"^    (\w+)", done.stdout, re.MULTILINE)
    assert {command.split()[0] for command in COMMANDS} | {"predict", "inspect", "check"} == set(
        listed
    )


@pytest.mark.standard
def test_a_missing_extra_is_one_sentence_with_its_command(bare: Place) -> None:
    for name in ("a.csv", "a.parquet"):
        (bare.folder / name).write_text("x,y\n1,2\n")
    done = bare.run("-c", EACH.format(commands=list(COMMANDS)))
    assert done.stdout.splitlines() == ["2"] * len(COMMANDS)
    # A slow machine prints that packages load.
    lines = [line for line in done.stderr.splitlines() if ": loading (" not in line]
    for (command, extra), line in zip(COMMANDS.items(), lines, strict=True):
        assert f"pip install 'fedlasso[{extra}]'" in line, command


@pytest.mark.standard
def test_a_table_is_checked_without_any_optional_package(bare: Place) -> None:
    (bare.folder / "whole.csv").write_text("x,y\n" + "1,2\n2.5,3\n" * 20)
    done = bare.run("-m", "fedlasso", "check", "whole.csv", "--target", "y")
    assert done.returncode < 2, done.stderr
    assert "Table 1" in done.stdout


def test_what_fits_need_is_one_sentence_in_python(bare: Place) -> None:
    done = bare.run("-c", "from fedlasso import FederatedLasso")
    assert "FederatedLasso requires scikit-learn: pip install 'fedlasso[fit]'" in done.stderr
    code = "from fedlasso.numerics.machine import dot; dot(1, 2)"
    assert "fitting requires numba: pip install 'fedlasso[fit]'" in bare.run("-c", code).stderr


def test_a_missing_store_is_one_sentence_in_python_too(bare: Place) -> None:
    done = bare.run("-c", "from fedlasso.study import Store")
    assert "requires pandas; install it with: pip install 'fedlasso[study]'" in done.stderr


@pytest.mark.standard
def test_the_library_fits_on_other_systems(elsewhere: Place) -> None:
    done = elsewhere.run("-c", FIT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[0 3] True ")


@pytest.mark.standard
def test_files_are_fitted_on_other_systems(elsewhere: Place) -> None:
    for k, name in enumerate(("north.csv", "south.csv")):
        rows = "".join(f"{(i + k) % 11},{i * i % 7},{2 * i % 11}\n" for i in range(30))
        (elsewhere.folder / name).write_text("a,b,y\n" + rows)
    arguments = "fit north.csv south.csv --target y --penalty 0.1 --no-compare --out model"
    done = elsewhere.run("-m", "fedlasso", *arguments.split())
    assert done.returncode == 0, done.stderr
    assert (elsewhere.folder / "model" / "card.html").exists()


@pytest.mark.full
def test_a_study_runs_on_other_systems(elsewhere: Place) -> None:
    (elsewhere.folder / "own.toml").write_text(TOML)
    arguments = (
        "study run --scenario-file own.toml --scenarios small --replicates 2 "
        "--epochs 1 --budgets 30 --methods CD --out results"
    )
    done = elsewhere.run("-m", "fedlasso", *arguments.split())
    assert done.returncode == 0, done.stderr
    assert "2 of 2 finished" in done.stdout


@pytest.mark.standard
def test_a_federation_says_that_it_cannot_run_on_other_systems(elsewhere: Place) -> None:
    done = elsewhere.run("-m", "fedlasso", "federation", "demo")
    assert done.returncode == 2
    assert done.stderr == (
        "fedlasso: federations need Unix sockets and file locks, which this system lacks\n"
    )
