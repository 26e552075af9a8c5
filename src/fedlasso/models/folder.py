"""The folder of a fitted model, and the plan from which an unfinished fit resumes."""

import json
import shutil
from pathlib import Path
from typing import Generic, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from fedlasso import __version__
from fedlasso.atomic_files import write_atomically
from fedlasso.errors import FedLassoError
from fedlasso.fitting.settings import Settings
from fedlasso.models.about import About, hash_files
from fedlasso.models.card import draw_card
from fedlasso.models.crate import CRATE, describe_crate
from fedlasso.models.csv_files import csv_files
from fedlasso.models.document import ModelDocument
from fedlasso.models.inputs import FileSource, NetworkSource

PLAN = "plan.json"
S = TypeVar("S", bound=FileSource | NetworkSource)


class FitPlan(msgspec.Struct, Generic[S], frozen=True):
    """What to fit, where the records are, and whether to `compare` the model with others.

    `about` has the title and the author of the card.
    """

    settings: Settings
    source: S
    compare: bool = False
    about: About = About()
    version: str = __version__
    format: Literal["fedlasso-plan"] = "fedlasso-plan"
    format_version: Literal[1] = 1


def write_plan(folder: Path, plan: FitPlan[S]) -> None:
    """Write plan.json, before the first request."""
    values = msgspec.to_builtins(plan)
    write_atomically(folder / PLAN, json.dumps(values, indent=1).encode(), private=True)


def read_plan(folder: Path, kind: type[S]) -> FitPlan[S]:
    """Return the plan of an unfinished fit whose sites are of that kind."""
    path = folder / PLAN
    try:
        plan = msgspec.json.decode(path.read_bytes(), type=FitPlan[FileSource | NetworkSource])
    except FileNotFoundError:
        raise FedLassoError(f"{folder} contains no fit to resume") from None
    except (OSError, ValueError) as error:
        raise FedLassoError(f"{path} cannot be read ({error}); fit again") from None
    if plan.version != __version__:
        raise FedLassoError(
            f"{folder} was started by fedlasso {plan.version}, not {__version__}; use that version"
        )
    if not isinstance(plan.source, kind):
        other = "fit --resume" if kind is NetworkSource else "federation resume"
        raise FedLassoError(
            f"{folder} contains a fit of another kind; resume it with: fedlasso {other} {folder}"
        )
    return FitPlan(plan.settings, plan.source, plan.compare, plan.about)


class ModelFolder:
    """The files of one model: plan.json first, model.json last."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = path / "journal"
        self.memory = path / "sites"

    @property
    def begun(self) -> bool:
        """Whether there is a plan to resume from."""
        return (self.path / PLAN).exists()

    def check(self) -> None:
        """Refuse a folder that is not empty."""
        if (self.path / "model.json").exists():
            raise FedLassoError(f"{self.path} already contains a model; choose another folder")
        if self.begun:
            raise FedLassoError(
                f"{self.path} contains an unfinished fit; use --resume {self.path}, or choose "
                "another folder"
            )
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise FedLassoError(f"{self.path} is not an empty folder; choose another one")

    def begin(self, plan: FitPlan[FileSource]) -> None:
        """Write the plan, with the sizes and times of the files."""
        files = tuple(str(Path(file).resolve()) for file in plan.source.files)
        source = replace(plan.source, files=files, stamps=_stamps(files))
        write_plan(self.path, replace(plan, source=source))

    def recall(self) -> FitPlan[FileSource]:
        """Return the plan of an unfinished fit, if its files have not changed."""
        if (self.path / "model.json").exists():
            raise FedLassoError(f"{self.path} is finished; use `fedlasso inspect {self.path}`")
        plan = read_plan(self.path, FileSource)
        for file in plan.source.files:
            if not Path(file).exists():
                raise FedLassoError(f"{file}: no such file, but the unfinished fit needs it")
        if _stamps(plan.source.files) != plan.source.stamps:
            raise FedLassoError(
                f"the files have changed since {self.path} started; fit again into another folder"
            )
        return plan

    def finish(self, document: ModelDocument, plan: FitPlan[FileSource]) -> None:
        """Write the model with the hashes of its files, and remove the journal."""
        write_model(self.path, document, replace(plan.about, data=hash_files(plan.source.files)))
        self._clear()

    def discard(self) -> None:
        """Remove a fit that cannot be completed."""
        self._clear()
        (self.path / PLAN).unlink(missing_ok=True)
        if self.path.is_dir() and not any(self.path.iterdir()):
            self.path.rmdir()

    def _clear(self) -> None:
        shutil.rmtree(self.journal, ignore_errors=True)
        shutil.rmtree(self.memory, ignore_errors=True)


def _stamps(files: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """Return size and time of every file: a resumed fit must read the same data."""
    stats = [Path(file).stat() for file in files]
    return tuple((stat.st_size, stat.st_mtime_ns) for stat in stats)


def write_model(folder: Path, document: ModelDocument, about: About | None = None) -> None:
    """Write the files of a fitted model, model.json last."""
    about = about or About()
    files = {name: text.encode() for name, text in csv_files(document).items()}
    files["card.html"] = draw_card(document, about).encode()
    before = [name for name in (PLAN, "audit.json") if (folder / name).exists()]
    files[CRATE] = describe_crate([*files, *before, "model.json"], document, about)
    for name, content in files.items():
        write_atomically(folder / name, content, private=True)
    write_atomically(folder / "model.json", document.to_json(), private=True)
