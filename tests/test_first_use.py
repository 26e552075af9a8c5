"""What a first fit compiles: a list that only grows on purpose."""

import ast
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pytest

from fedlasso.cli import common
from fedlasso.numerics.machine import Compilations, dot

# Runs a command, and prints large packages that it need not import, and how often each kernel that
# it called would be compiled.
TELL_KERNELS = """
import sys
from numba.core.dispatcher import Dispatcher
from fedlasso.cli import main
main(sys.argv[1:])
modules = [module for name, module in sys.modules.items() if name.startswith("fedlasso.")]
found = {x for module in modules for x in vars(module).values() if isinstance(x, Dispatcher)}
print([name for name in ("pandas", "scipy.stats", "sklearn") if name in sys.modules])
print({x.py_func.__name__: len(x.signatures) for x in found if x.signatures})
"""
# Kernels that a default linear fit calls, each with the number of types of its arguments. `dot` is
# the smallest; one of its arrays may be read-only. `walk` also compiles `solve_active`.
KERNELS = {
    "descend_factored": 1,
    "dot": 2,
    "gram_sweeps": 1,
    "subtract_rows": 1,
    "times_inverse": 1,
    "walk": 1,
}


@pytest.mark.standard
def test_a_default_fit_compiles_no_more_than_it_needs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((240, 8))
    rows = np.column_stack([X, X[:, 0] - X[:, 1] + rng.standard_normal(240)])
    names = ",".join([f"x{k}" for k in range(8)] + ["y"])
    files = [tmp_path / f"{site}.csv" for site in "abc"]
    for file, part in zip(files, np.split(rows, 3), strict=True):
        np.savetxt(file, part, delimiter=",", header=names, comments="")
    command = ["fit", *map(str, files), "--target", "y", "--out", str(tmp_path / "model")]
    done = subprocess.run(
        [sys.executable, "-c", TELL_KERNELS, *command], capture_output=True, text=True, check=True
    )
    packages, counts = done.stdout.splitlines()[-2:]
    assert packages == "[]"
    kernels: dict[str, int] = ast.literal_eval(counts)
    more = {name: count for name, count in kernels.items() if count > KERNELS.get(name, 0)}
    assert more == {}


def test_progress_is_printed_between_questions(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert common.QUIET + common.TICK < 2
    monkeypatch.setattr(common, "QUIET", 0.0)
    monkeypatch.setattr(common, "TICK", 0.01)
    with common.Display():
        time.sleep(0.1)
    assert "fedlasso: starting (round 0," in capsys.readouterr().err


def test_waiting_for_imports_is_not_silent(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "QUIET", 0.0)
    monkeypatch.setattr(common, "TICK", 0.01)
    with common.Waiting("loading"):
        time.sleep(0.1)
    assert capsys.readouterr().err.startswith("fedlasso: loading (0 s)\n")


def test_compilations_are_counted_while_they_last() -> None:
    x = np.ones(3)
    with Compilations() as compilations:
        assert numba.njit(dot.py_func)(x, x) == 3.0  # type: ignore[attr-defined]
        numba.njit(lambda: 0)()
    assert compilations.names == ["dot"]
    assert not compilations.busy
    dot(x, x)
    assert compilations.names == ["dot"]
