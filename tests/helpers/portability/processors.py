"""Processes that believe to be on another processor: this one with fewer instructions.

numba is told its target, OpenBLAS its core and numpy which instructions to leave alone.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import binding

TESTS = Path(__file__).parents[2]
# Where set-up leaves the kernels that it has compiled for other processors.
KERNELS = Path(sys.prefix) / "kernels"
FEATURES = binding.get_host_cpu_features()
SETTINGS = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES")


@dataclass(frozen=True)
class InstructionSet:
    """A processor to be: a target for numba, a core for OpenBLAS, what numpy must not use."""

    target: str
    core: str | None = None
    without: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


def imitate(target: str, core: str | None, without: tuple[str, ...]) -> InstructionSet:
    """Settings that leave the features to the target: by default numba adds all of the host's."""
    settings = {"NUMBA_CPU_NAME": target, "NUMBA_CPU_FEATURES": ""}
    if core:
        settings["OPENBLAS_CORETYPE"] = core
    if without:
        settings["NPY_DISABLE_CPU_FEATURES"] = " ".join(without)
    return InstructionSet(target, core, without, settings)


def instruction_sets() -> dict[str, InstructionSet]:
    """What this host can be: generic, itself, and on x86-64 something in between."""
    host = binding.get_host_cpu_name()
    found = tuple(np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", []))
    triple = binding.get_process_triple()
    core = {"x86_64": "Nehalem", "aarch64": "ARMV8"}.get(triple.partition("-")[0])
    sets = {"generic": imitate("generic", core, found)}
    if FEATURES.get("avx") and FEATURES.get("fma"):
        # Twice the width of generic, and no fused operations. Newer targets get the host's code.
        sets["middle"] = imitate("sandybridge", "Sandybridge", found)
    elif FEATURES.get("sse4.2"):
        sets["middle"] = imitate("nehalem", "Nehalem", found)
    return sets | {"host": InstructionSet(host)}


SETS = instruction_sets()


def run_child(kind: str, threads: int, folder: Path) -> dict[str, Any]:
    """All results of one process."""
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    environment |= SETS[kind].settings
    environment["OPENBLAS_NUM_THREADS"] = str(threads)
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(TESTS), *filter(None, [environment.get("PYTHONPATH")])]
    )
    if kind != "host":
        # numba's index knows targets apart, but two that write at once take the same file names.
        environment["NUMBA_CACHE_DIR"] = str(KERNELS / kind)
    file = folder / f"{kind}-{threads}.json"
    command = [sys.executable, "-m", "helpers.portability.child", str(file)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results: dict[str, Any] = json.loads(file.read_text())
    return results
