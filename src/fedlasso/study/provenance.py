"""Where results come from: code, versions, machine."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import fedlasso

_LIBRARIES = ("fedlasso", "numpy", "scipy", "numba", "scikit-learn", "pyarrow")


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
    }


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
