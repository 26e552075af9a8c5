"""MODEL/: a fitted model as files, and the plan of an unfinished fit that can go on."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, Literal, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from fedlasso import __version__
from fedlasso.errors import FedLassoError
from fedlasso.federation import InProcess
from fedlasso.files import write_atomically
from fedlasso.models.card import draw_card
from fedlasso.models.document import Missing, ModelDocument
from fedlasso.models.settings import Settings
from fedlasso.numerics import Array
from fedlasso.sites import Memory, Site
from fedlasso.tables import MIN_LEVEL, Encoded, File, Schema, agree, encode_file, stem_of

PLAN = "plan.json"


class FileSource(msgspec.Struct, frozen=True, tag="files"):
    """Sites that are files on this machine.

    Attributes
    ----------
    files : one per site, or one table with `site_column`
    target : the response
    site_column : the column that names each row's site
    drop : columns to leave out
    missing : refuse missing values, or fill them with the mean over all sites
    min_level : rows that a level of text needs at some site; rarer ones are pooled
    na : texts and numbers that mean a missing value, beside the usual ones
    stamps : size and time of every file when the fit was begun
    """

    files: tuple[str, ...]
    target: str
    site_column: str | None = None
    drop: tuple[str, ...] = ()
    missing: Missing = "refuse"
    min_level: int = MIN_LEVEL
    na: tuple[str, ...] = ()
    stamps: tuple[tuple[int, int], ...] = ()


class NetworkSource(msgspec.Struct, frozen=True, tag="network"):
    """Sites across a network.

    Attributes
    ----------
    project : folder of the project
    fit : identity of the fit, hexadecimal
    target : the response
    columns : predictors; empty means every column that all sites show but the target
    drop : columns to leave out of those
    missing : refuse missing values, or fill them with the mean over all sites
    na : texts that count as missing
    min_level : rows that a level of text needs at some site; rarer ones are pooled
    schema : what the sites have agreed that the columns hold, once the fit has begun
    fingerprints : of each site's data, once the fit has begun
    sites : who takes part; empty means everybody
    audits : lines and head of each site's audit when it was last asked
    timeout : seconds that a site may take for one answer
    """

    project: str
    fit: str
    target: str
    columns: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    missing: Missing = "refuse"
    na: tuple[str, ...] = ()
    min_level: int = MIN_LEVEL
    schema: Schema | None = None
    fingerprints: dict[str, str] | None = None
    sites: tuple[str, ...] = ()
    audits: dict[str, tuple[int, str]] = {}
    timeout: float = 300.0


S = TypeVar("S", bound=FileSource | NetworkSource)


class FitPlan(msgspec.Struct, Generic[S], frozen=True):
    """What is going to be fitted, and where the records are.

    Attributes
    ----------
    settings : what to fit
    source : where the sites are
    compare : whether the model is compared with others afterwards, which costs messages
    version : the fedlasso that began the fit
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


def open_sites(
    source: FileSource, memory: Path | None = None, say: Callable[[str], None] = lambda text: None
) -> tuple[InProcess, Schema]:
    """Read every file into sites, each record held once, and say how the columns were agreed on.

    Parameters
    ----------
    source : the files
    memory : a folder in which sites keep what must outlive the process
    say : called with one line per site
    """
    if source.site_column is not None and len(source.files) > 1:
        raise FedLassoError("--site-column tells the sites of one table apart; give one file")
    _refuse_twins(source.files)
    # File names without their endings where those differ, else whole paths.
    names = [stem_of(Path(file)) for file in source.files]
    if len(set(names)) < len(names):
        names = list(source.files)
    files = [
        File(Path(path), source.site_column, name, source.na)
        for path, name in zip(source.files, names, strict=True)
    ]
    for name in source.drop:
        if not any(name in file.names for file in files):
            raise FedLassoError(f"no file has a column {name!r} to drop")
    left_out = [*source.drop, *filter(None, [source.site_column])]
    schema = agree(files, source.target, left_out, source.min_level, say)
    columns = schema.encoded
    sites: list[Site] = []
    parts: list[Encoded] = []
    gaps: list[str] = []
    for i, file in enumerate(files):
        for part in encode_file(file, schema):
            if part.missing and source.missing == "refuse":
                gaps.append(part.gaps)
            # With values missing elsewhere there will be no fit, only the whole list of them.
            if not gaps:
                place = hashlib.sha256(part.site.encode()).hexdigest()[:16]
                kept = Memory(None if memory is None else memory / place)
                site = Site(
                    part.site, part.X, part.y, columns=columns, raw=True, copy=False, memory=kept
                )
                sites.append(site)
                parts.append(part)
                say(f"read {part.site}: {len(part.y)} rows ({i + 1} of {len(files)} files)")
    if gaps:
        raise FedLassoError(f"missing values ({'; '.join(gaps)}); fill them, or say --missing mean")
    _check_variation(parts, source.target, say)
    return InProcess(sites), schema


def _refuse_twins(files: Sequence[str]) -> None:
    """Refuse one file under two spellings: its rows would count twice."""
    known: dict[object, str] = {}
    for file in files:
        path = Path(file)
        spellings: list[object] = [path.resolve()]
        # Not every file system numbers its files.
        if path.exists() and (stat := path.stat()).st_ino:
            spellings.append((stat.st_dev, stat.st_ino))
        for spelling in spellings:
            if spelling in known:
                raise FedLassoError(
                    f"{known[spelling]} and {file} are the same file; name each file once"
                )
        known |= dict.fromkeys(spellings, file)


def _check_variation(parts: Sequence[Encoded], target: str, say: Callable[[str], None]) -> None:
    """Refuse a target, or predictors, that are the same in every row of every site."""
    low, high = _range_of([part.y for part in parts])
    if low == high:
        raise FedLassoError(
            f"the target {target!r} is {low:g} in every row of every site, so there is nothing to "
            "fit; choose another target"
        )
    columns = range(parts[0].X.shape[1])
    ranges = (_range_of([part.X[:, k] for part in parts]) for k in columns)
    if not any(low < high for low, high in ranges):
        raise FedLassoError(
            "every predictor is the same in every row of every site, so there is nothing to fit; "
            "give columns that vary"
        )
    if all(np.isin(part.y, (0, 1)).all() for part in parts):
        say(
            f"warning: the target {target!r} is 0 or 1: this is a linear model of those numbers, "
            "and its predictions are not probabilities"
        )


def _range_of(numbers: Sequence[Array]) -> tuple[float, float]:
    """Smallest and largest number at all sites; missing ones do not count."""
    low = min(float(np.fmin.reduce(own)) for own in numbers)
    high = max(float(np.fmax.reduce(own)) for own in numbers)
    return low, high


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
