"""The manifest of a study: what was run, with which code, on which machines."""

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
from fedlasso.study.scenario import Scenario

Setting = str | int | float | bool | list[str | int | float] | None
_LIBRARIES = ("fedlasso", "numpy", "scipy", "numba", "scikit-learn", "pyarrow")
# The rooms that compute a study's numbers, and what of the study's own room only keeps and prints.
ROOMS = ("numerics", "families", "federation", "sites", "procedures", "fitting", "study")
BESIDE = ("record_columns", "conclusions", "diagnose", "every_study", "manifest", "runner", "store")


@dataclass(frozen=True)
class Machine:
    """A machine, as far as it can matter to a result; what an older manifest lacks is empty.

    Where all but ``system`` and ``cores`` are the same, so are the bits of a result.
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
        """How another machine's processor is of another kind, as one line; empty if it is not."""
        alike = replace(self, system=other.system, cores=other.cores)
        old = {key: value for key, value in asdict(alike).items() if value}
        return describe_difference(old, {key: getattr(other, key) for key in old})


@dataclass(frozen=True)
class StudyRun:
    """One start of a study; ``another_processor`` says how it differs from the start before it."""

    started: str
    engine: str
    workers: int
    code: str
    machine: Machine
    another_processor: str = ""


@dataclass(frozen=True)
class Manifest:
    """Everything needed to know, and to repeat, what a results folder holds.

    Attributes
    ----------
    study : the study's name, seed and other settings
    code : hash of the code that computes, and versions of Python and the libraries
    runs : every start of the study, the first one first
    """

    study: dict[str, Setting]
    scenarios: dict[str, Scenario]
    replicates: int
    code: dict[str, str]
    runs: tuple[StudyRun, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.study.get("name"), str) or "seed" not in self.study:
            raise ValueError("the study has no name or no seed")
        if not self.runs:
            raise ValueError("there is no run")

    @property
    def name(self) -> str:
        """Name of the study."""
        return str(self.study["name"])

    def text(self) -> str:
        """As JSON that people can read."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()

    def extended(self, more: Manifest, folder: Path, *, allow_code_change: bool) -> Manifest:
        """This study and what is to be run now; refused where the two do not belong together."""
        if differs := describe_difference(self.study, more.study):
            raise FedLassoError(
                f"{folder} holds another study: {differs}; use the same settings or another --out"
            )
        code = describe_difference(self.code, more.code)
        if code and not allow_code_change:
            raise FedLassoError(
                f"{folder} was computed by other code: {code}; "
                "use --allow-code-change to go on, or another --out"
            )
        for name, scenario in more.scenarios.items():
            old = self.scenarios.get(name, scenario)
            if differs := describe_difference(asdict(old), asdict(scenario)):
                raise FedLassoError(
                    f"{folder} holds another scenario {name!r}: {differs}; "
                    "rename the scenario or use another --out"
                )
        (run,) = more.runs
        changed = self.runs[-1].machine.change_to(run.machine)
        return replace(
            more,
            scenarios=self.scenarios | more.scenarios,
            replicates=max(self.replicates, more.replicates),
            runs=(*self.runs, replace(run, another_processor=changed)),
        )


def describe_difference(old: Mapping[str, object], new: Mapping[str, object]) -> str:
    """What differs between two flat descriptions, as one line; empty if nothing does."""
    return ", ".join(
        f"{key} was {old.get(key)!r} and is {new.get(key)!r}"
        for key in dict.fromkeys([*old, *new])
        if old.get(key) != new.get(key)
    )


def code_hash(package: Path = Path(fedlasso.__file__).parent) -> str:
    """Hash of the source files that compute a study's numbers; no page, model or command is in."""
    digest = hashlib.sha256()
    rooms = [path for room in ROOMS for path in (package / room).rglob("*.py")]
    for path in sorted(rooms):
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
    # Who reads a manifest does not wait for the compiler.
    from numba.core.registry import cpu_target

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
