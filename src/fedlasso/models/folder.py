"""MODEL/: a fitted model as files, and an unfinished fit that can go on."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from fedlasso.errors import FedLassoError
from fedlasso.files import write_atomically
from fedlasso.models.card import draw_card
from fedlasso.models.document import ModelDocument
from fedlasso.models.plan import PLAN, FileSource, FitPlan, read_plan, write_plan
from fedlasso.numerics import Array
from fedlasso.tables import File, encode_rows


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
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["name", "coefficient", "standardised"])
    table.writerow(["(intercept)", repr(float(document.intercept)), ""])
    used = {row.name: (row.value, row.standardised) for row in document.coefficients}
    for name in document.schema.encoded:
        table.writerow([name, *map(repr, used.get(name, (0.0, 0.0)))])
    write_atomically(folder / "coefficients.csv", out.getvalue().encode())
    write_atomically(folder / "card.html", draw_card(document).encode())
    write_atomically(folder / "model.json", document.to_json())


def predict_file(document: ModelDocument, path: Path) -> Array:
    """Return predictions for the rows of a file."""
    names = document.schema.encoded
    X = encode_rows(File(path), document.schema)
    holes = np.isnan(X)
    if holes.any():
        if document.means is None:
            name = names[holes.any(axis=0).argmax()]
            raise FedLassoError(
                f"{path}: column {name!r} has {int(holes.any(axis=1).sum())} missing values; fill "
                "them, or fit with --missing mean"
            )
        X = np.where(holes, np.array(document.means), X)
    used = {row.name: row.value for row in document.coefficients}
    b = np.array([used.get(name, 0.0) for name in names])
    prediction: Array = X @ b + document.intercept
    return prediction
