"""The manifest of a study: what was run, with which code, on which machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import msgspec

from fedlasso.errors import FedLassoError
from fedlasso.study.scenario import Scenario

Setting = str | int | float | bool | list[str | int | float] | None


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


def read_manifest(file: Path) -> Manifest:
    """The manifest in a file; a missing, damaged or foreign one is one clear error."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise FedLassoError(
            f"{file.parent} holds no study; name the folder that `fedlasso study run` wrote"
        ) from None
    except OSError as error:
        raise FedLassoError(f"cannot read {file}: {error.strerror}") from error
    except msgspec.ValidationError as error:
        raise FedLassoError(f"{file} is not the manifest of a study: {error}") from error
    except msgspec.DecodeError as error:
        raise FedLassoError(f"{file} is damaged: {error}") from error


def describe_settings(study: object) -> dict[str, Setting]:
    """The name and the settings of a study, as a manifest has them."""
    settings = {f.name: getattr(study, f.name) for f in fields(study)}  # type: ignore[arg-type]
    plain = {k: list(v) if isinstance(v, tuple) else v for k, v in settings.items()}
    return {"name": study.name, **plain}  # type: ignore[attr-defined]


def describe_difference(old: Mapping[str, object], new: Mapping[str, object]) -> str:
    """What differs between two flat descriptions, as one line; empty if nothing does."""
    return ", ".join(
        f"{key} was {old.get(key)!r} and is {new.get(key)!r}"
        for key in dict.fromkeys([*old, *new])
        if old.get(key) != new.get(key)
    )
