"""MODEL/: a fitted model as files, and the plan of an unfinished fit that can go on."""

import csv
import io
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
from fedlasso.models.card import draw_card
from fedlasso.models.document import Coefficient, ModelDocument
from fedlasso.models.inputs import FileSource, NetworkSource

PLAN = "plan.json"
S = TypeVar("S", bound=FileSource | NetworkSource)


class FitPlan(msgspec.Struct, Generic[S], frozen=True):
    """What is going to be fitted, and where the records are.

    To `compare` the model with others afterwards costs messages; `version` began the fit.
    """

    settings: Settings
    source: S
    compare: bool = False
    version: str = __version__
    format: Literal["fedlasso-plan"] = "fedlasso-plan"
    format_version: Literal[1] = 1


def write_plan(folder: Path, plan: FitPlan[S]) -> None:
    """Write down what is going to be fitted, before the first question."""
    values = msgspec.to_builtins(plan)
    write_atomically(folder / PLAN, json.dumps(values, indent=1).encode(), private=True)


def read_plan(folder: Path, kind: type[S]) -> FitPlan[S]:
    """Return what an unfinished fit was asked to do, if its sites are of that kind."""
    path = folder / PLAN
    try:
        plan = msgspec.json.decode(path.read_bytes(), type=FitPlan[FileSource | NetworkSource])
    except FileNotFoundError:
        raise FedLassoError(f"{folder} holds no fit to go on with") from None
    except (OSError, ValueError) as error:
        raise FedLassoError(f"{path} cannot be read ({error}); fit anew") from None
    if plan.version != __version__:
        raise FedLassoError(
            f"{folder} was begun by fedlasso {plan.version}, this is {__version__}; use the same"
        )
    if not isinstance(plan.source, kind):
        other = "fit --resume" if kind is NetworkSource else "federation resume"
        raise FedLassoError(
            f"{folder} holds a fit of another kind; go on with: fedlasso {other} {folder}"
        )
    return FitPlan(plan.settings, plan.source, plan.compare)


class ModelFolder:
    """The files of one model: plan.json first, model.json last."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = path / "journal"
        self.memory = path / "sites"

    @property
    def begun(self) -> bool:
        """Whether there is a fit to go on with."""
        return (self.path / PLAN).exists()

    def check(self) -> None:
        """Refuse to overwrite."""
        if (self.path / "model.json").exists():
            raise FedLassoError(f"{self.path} holds a model already; name another folder")
        if self.begun:
            raise FedLassoError(
                f"{self.path} holds an unfinished fit; go on with --resume {self.path}, "
                "or name another folder"
            )
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise FedLassoError(f"{self.path} is not an empty folder; name another one")

    def begin(self, plan: FitPlan[FileSource]) -> None:
        """Write down what is going to be fitted, and the state that the files are in."""
        files = tuple(str(Path(file).resolve()) for file in plan.source.files)
        source = replace(plan.source, files=files, stamps=_stamps(files))
        write_plan(self.path, replace(plan, source=source))

    def recall(self) -> FitPlan[FileSource]:
        """Return what an unfinished fit was asked to do, if its files are as they were."""
        if (self.path / "model.json").exists():
            raise FedLassoError(f"{self.path} is finished; read it with `fedlasso inspect`")
        plan = read_plan(self.path, FileSource)
        for file in plan.source.files:
            if not Path(file).exists():
                raise FedLassoError(f"{file}: no such file; the unfinished fit needs it")
        if _stamps(plan.source.files) != plan.source.stamps:
            raise FedLassoError(
                f"the files have changed since {self.path} was begun; fit anew into another folder"
            )
        return plan

    def finish(self, document: ModelDocument) -> None:
        """Write the model; then the journal has done its work."""
        write_model(self.path, document)
        self._clear()

    def discard(self) -> None:
        """Remove a fit that cannot be made."""
        self._clear()
        (self.path / PLAN).unlink(missing_ok=True)
        if self.path.is_dir() and not any(self.path.iterdir()):
            self.path.rmdir()

    def _clear(self) -> None:
        for folder in (self.journal, self.memory):
            shutil.rmtree(folder, ignore_errors=True)


def _stamps(files: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """Size and time of every file: a resumed fit must read the same ones."""
    stats = [Path(file).stat() for file in files]
    return tuple((stat.st_size, stat.st_mtime_ns) for stat in stats)


def write_model(folder: Path, document: ModelDocument) -> None:
    """Write the files of a fitted model from its document alone, model.json last."""
    write_atomically(folder / "coefficients.csv", _tell_coefficients(document).encode())
    write_atomically(folder / "card.html", draw_card(document).encode())
    write_atomically(folder / "model.json", document.to_json())


def _tell_coefficients(document: ModelDocument) -> str:
    """All coefficients as CSV, zeros included; with ratios of odds, rates or hazards."""
    head = ["name", "coefficient", "standardised"]
    if document.ratio is not None:
        name = document.ratio.replace(" ", "_")
        head += [name, f"{name}_per_sd"]
    rows = [head]
    if document.settings.response_family.intercept:
        rows.append(["(intercept)", repr(float(document.intercept)), *[""] * (len(head) - 2)])
    used = {row.name: row for row in document.coefficients}
    for column in document.schema.encoded:
        row = used.get(column, Coefficient(column, 0.0, 0.0, mean=0.0, scale=0.0))
        numbers = (row.value, row.standardised, *row.ratios)
        rows.append([column, *map(repr, numbers[: len(head) - 1])])
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
