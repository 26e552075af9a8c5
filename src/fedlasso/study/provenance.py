"""Where results come from: code, versions, machine."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numba.core.registry import cpu_target
from threadpoolctl import threadpool_info

import fedlasso

_LIBRARIES = ("fedlasso", "numpy", "scipy", "numba", "scikit-learn", "pyarrow")
# Where these are the same, so are the bits of a result.
_KIND = ("processor", "numba_target", "numba_features", "numpy_simd", "numpy_blas", "scipy_blas")


def code_hash() -> str:
    """Hash of every source file of this package that computes; pages and reports do not."""
    root = Path(fedlasso.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        if relative.parts[0] not in ("report", "cli"):
            digest.update(str(relative).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def describe_code() -> dict[str, str]:
    """Hash and versions."""
    versions = {name: version(name) for name in _LIBRARIES}
    return {"hash": code_hash(), "python": platform.python_version(), **versions}


def describe_machine() -> dict[str, str | int]:
    """The machine, as far as it can matter to a result."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        **describe_instructions(),
    }


def describe_instructions() -> dict[str, str]:
    """The instruction sets that numba, numpy and the BLAS of numpy and scipy use here."""
    _, target, features = cpu_target.target_context.codegen().magic_tuple()
    # Features that are absent are listed too, and a new LLVM knows more of them.
    present = ",".join(sorted(name for name in features.split(",") if name.startswith("+")))
    simd = np.show_config(mode="dicts").get("SIMD Extensions", {})
    return {
        "numba_target": target,
        "numba_features": hashlib.sha256(present.encode()).hexdigest()[:8],
        "numpy_simd": " ".join(simd.get("baseline", []) + simd.get("found", [])),
        "numpy_blas": _blas("numpy"),
        "scipy_blas": _blas("scipy"),
    }


def _blas(library: str) -> str:
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    # A wheel brings its own BLAS in a folder that bears its name; elsewhere all share one.
    own = [pool for pool in pools if library in Path(pool["filepath"]).parent.name] or pools
    names = {f"{pool['internal_api']} {pool.get('architecture', '')}".strip() for pool in own}
    return ", ".join(sorted(names)) or "unknown"


def describe_change(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """How the kind of processor differs, as one line; what an older manifest lacks is left out."""
    known = [key for key in _KIND if key in old]
    return describe_difference({k: old[k] for k in known}, {k: new[k] for k in known})


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def describe_difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """What differs between two flat descriptions, as one line; empty if nothing does."""
    return ", ".join(
        f"{key} was {old.get(key)!r} and is {new.get(key)!r}"
        for key in dict.fromkeys([*old, *new])
        if old.get(key) != new.get(key)
    )
