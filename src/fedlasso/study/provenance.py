"""Where results come from: code, versions, machine."""

from __future__ import annotations

import hashlib
import os
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numba.core.registry import cpu_target
from threadpoolctl import threadpool_info

import fedlasso
from fedlasso.study.manifest import Machine

_LIBRARIES = ("fedlasso", "numpy", "scipy", "numba", "scikit-learn", "pyarrow")
_PACKAGE = Path(fedlasso.__file__).parent
# The rooms that compute a study's numbers, and what of the study's own room only keeps and tells.
ROOMS = ("numerics", "federation", "sites", "procedures", "fitting", "study")
BESIDE = ("columns", "diagnostics", "manifest", "provenance", "runner", "store", "summary")


def code_hash(package: Path = _PACKAGE) -> str:
    """Hash of the source files that compute a study's numbers; no page, model or command is in."""
    digest = hashlib.sha256()
    for path in sorted(path for room in ROOMS for path in (package / room).rglob("*.py")):
        relative = path.relative_to(package)
        if relative.parts[0] != "study" or path.stem not in BESIDE:
            digest.update(str(relative).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def describe_code() -> dict[str, str]:
    """Hash and versions."""
    versions = {name: version(name) for name in _LIBRARIES}
    return {"hash": code_hash(), "python": platform.python_version(), **versions}


def describe_machine() -> Machine:
    """This machine, with the instruction sets that numba, numpy and their BLAS use here."""
    _, target, features = cpu_target.target_context.codegen().magic_tuple()
    # Features that are absent are listed too, and a new LLVM knows more of them.
    present = ",".join(sorted(name for name in features.split(",") if name.startswith("+")))
    simd = np.show_config(mode="dicts").get("SIMD Extensions", {})
    return Machine(
        system=platform.platform(),
        processor=_processor(),
        cores=os.cpu_count() or 1,
        numba_target=target,
        numba_features=hashlib.sha256(present.encode()).hexdigest()[:8],
        numpy_simd=" ".join(simd.get("baseline", []) + simd.get("found", [])),
        numpy_blas=_blas("numpy"),
        scipy_blas=_blas("scipy"),
    )


def _blas(library: str) -> str:
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    # A wheel brings its own BLAS in a folder that bears its name; elsewhere all share one.
    own = [pool for pool in pools if library in Path(pool["filepath"]).parent.name] or pools
    names = {f"{pool['internal_api']} {pool.get('architecture', '')}".strip() for pool in own}
    return ", ".join(sorted(names)) or "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
