"""The manifest of a results folder: what was run, with which code, on which machines."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path

import msgspec
import numpy as np
from threadpoolctl import threadpool_info

import fedlasso
from fedlasso.errors import FedLassoError
from fedlasso.study.record_columns import Field
from fedlasso.study.scenario import Scenario

Setting = str | int | float | bool | list[str | int | float] | None
_LIBRARIES = ("fedlasso", "numpy", "scipy", "numba", "scikit-learn", "pyarrow")
# The rooms whose code computes a study's numbers, and files of `study` that only keep or print.
ROOMS = ("numerics", "families", "federation", "sites", "procedures", "fitting", "study")
UNHASHED = (
    "record_columns",
    "conclusions",
    "every_study",
    "manifest",
    "plugins",
    "runner",
    "store",
)


@dataclass(frozen=True)
class Machine:
    """What of a machine can matter to a result; fields that an older manifest lacks are empty.

    Machines that differ in ``system`` and ``cores`` only give the same bits.
    """

    system: str
    processor: str
    cores: int
    numba_target: str = ""
    numba_features: str = ""
    numpy_simd: str = ""
    numpy_blas: str = ""
    scipy_blas: str = ""

    def change_to(self, other: Machine) -> str:
        """Return how another machine's processor differs, as one line; empty if it does not."""
        alike = replace(self, system=other.system, cores=other.cores)
        old = {key: value for key, value in asdict(alike).items() if value}
        return describe_difference(old, {key: getattr(other, key) for key in old})


@dataclass(frozen=True)
class StudyRun:
    """One start of a study; ``another_processor`` is its difference from the previous start."""

    started: str
    engine: str
    workers: int
    code: str
    machine: Machine
    another_processor: str = ""


@dataclass(frozen=True)
class Manifest:
    """Everything needed to repeat what a results folder holds."""

    study: dict[str, Setting]  # name, seed and other settings
    scenarios: dict[str, Scenario]
    replicates: int
    code: dict[str, str]  # hash of the computing code, versions of Python and libraries
    runs: tuple[StudyRun, ...]  # in order of their start
    metrics: tuple[Field, ...] = ()  # added from outside the package

    def __post_init__(self) -> None:
        if not isinstance(self.study.get("name"), str) or "seed" not in self.study:
            raise ValueError("the study has no name or no seed")
        if not self.runs:
            raise ValueError("there is no run")

    @property
    def name(self) -> str:
        return str(self.study["name"])

    def text(self) -> str:
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()

    def extended(self, more: Manifest, folder: Path, *, allow_code_change: bool) -> Manifest:
        """Return this manifest extended by a new run; refuse another study, code or scenario."""
        if differs := describe_difference(self.study, more.study):
            remedy = "use the same settings or another --out"
            raise FedLassoError(f"{folder} holds another study: {differs}; {remedy}")
        code = describe_difference(self.code, more.code)
        if code and not allow_code_change:
            remedy = "use --allow-code-change to resume, or another --out"
            raise FedLassoError(f"{folder} was computed by other code: {code}; {remedy}")
        for name, scenario in more.scenarios.items():
            old = self.scenarios.get(name, scenario)
            if differs := describe_difference(asdict(old), asdict(scenario)):
                other = f"{folder} holds another scenario {name!r}: {differs}"
                raise FedLassoError(f"{other}; rename the scenario or use another --out")
        (run,) = more.runs
        changed = self.runs[-1].machine.change_to(run.machine)
        return replace(
            more,
            scenarios=self.scenarios | more.scenarios,
            replicates=max(self.replicates, more.replicates),
            runs=(*self.runs, replace(run, another_processor=changed)),
            metrics=tuple({own.name: own for own in (*self.metrics, *more.metrics)}.values()),
        )


def describe_difference(old: Mapping[str, object], new: Mapping[str, object]) -> str:
    """Return what differs between two flat descriptions, as one line; empty if nothing does."""
    return ", ".join(
        f"{key} was {old.get(key)!r} and is {new.get(key)!r}"
        for key in dict.fromkeys([*old, *new])
        if old.get(key) != new.get(key)
    )


def code_hash(package: Path = Path(fedlasso.__file__).parent) -> str:
    """Return a hash of the source files that compute a study's numbers."""
    digest = hashlib.sha256()
    rooms = [path for room in ROOMS for path in (package / room).rglob("*.py")]
    for path in sorted(rooms):
        relative = path.relative_to(package)
        if relative.parts[0] != "study" or path.stem not in UNHASHED:
            digest.update(str(relative).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def describe_code() -> dict[str, str]:
    """Return the hash of the computing code, and versions of Python and libraries."""
    versions = {name: version(name) for name in _LIBRARIES}
    return {"hash": code_hash(), "python": platform.python_version(), **versions}


def describe_machine() -> Machine:
    """Return this machine, with the instruction sets that numba, numpy and their BLAS use."""
    # Imported here, so that reading a manifest does not load the compiler.
    from numba.core.registry import cpu_target

    _, target, features = cpu_target.target_context.codegen().magic_tuple()
    # LLVM lists absent features too, and newer versions list more of them.
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
    # A wheel has its own BLAS in a folder with its name; elsewhere all libraries use one.
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
