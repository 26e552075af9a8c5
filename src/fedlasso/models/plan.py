"""plan.json: all that an unfinished fit depends on, and the sites of its files.

An interrupted fit goes on from its plan.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Literal, TypeVar

import msgspec

from fedlasso import __version__
from fedlasso.errors import FedLassoError
from fedlasso.federation import InProcess
from fedlasso.files import write_atomically
from fedlasso.models.fitted import Settings
from fedlasso.sites import Memory, Site
from fedlasso.tables import Encoded, File, Schema, agree, encode_file

PLAN = "plan.json"
Missing = Literal["refuse", "mean"]


class FileSource(msgspec.Struct, frozen=True, tag="files"):
    """Sites that are files on this machine.

    Attributes
    ----------
    files : one per site, or one table with `site_column`
    target : the response
    site_column : the column that names each row's site
    drop : columns to leave out
    missing : refuse missing values, or fill them with the mean over all sites
    stamps : size and time of every file when the fit was begun
    """

    files: tuple[str, ...]
    target: str
    site_column: str | None = None
    drop: tuple[str, ...] = ()
    missing: Missing = "refuse"
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
    fingerprints : of each site's data, once the fit has begun
    sites : who takes part; empty means everybody
    timeout : seconds that a site may take for one answer
    """

    project: str
    fit: str
    target: str
    columns: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    fingerprints: dict[str, str] | None = None
    sites: tuple[str, ...] = ()
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
    write_atomically(folder / PLAN, json.dumps(values, indent=1).encode())


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
    # File names without their endings where those differ, else whole paths.
    names = [Path(file).stem for file in source.files]
    if len(set(names)) < len(names):
        names = list(source.files)
    files = [
        File(Path(path), source.site_column, name)
        for path, name in zip(source.files, names, strict=True)
    ]
    for name in source.drop:
        if not any(name in file.names for file in files):
            raise FedLassoError(f"no file has a column {name!r} to drop")
    schema = agree(files, source.target, [*source.drop, *filter(None, [source.site_column])])
    columns = schema.encoded
    sites: list[Site] = []
    gaps: list[str] = []
    for i, file in enumerate(files):
        for part in encode_file(file, schema):
            if part.missing and source.missing == "refuse":
                gaps.append(_tell_missing(part))
            # With values missing elsewhere there will be no fit, only the whole list of them.
            if not gaps:
                place = hashlib.sha256(part.site.encode()).hexdigest()[:16]
                kept = Memory(None if memory is None else memory / place)
                site = Site(
                    part.site, part.X, part.y, columns=columns, raw=True, copy=False, memory=kept
                )
                sites.append(site)
                say(f"read {part.site}: {len(part.y)} rows ({i + 1} of {len(files)} files)")
    if gaps:
        raise FedLassoError(f"missing values ({'; '.join(gaps)}); fill them, or say --missing mean")
    return InProcess(sites), schema


def _tell_missing(part: Encoded) -> str:
    """Where values are missing, column by column."""
    some = [f"{name} {count}" for name, count in list(part.missing.items())[:8]]
    more = len(part.missing) - len(some)
    return f"site {part.site!r}: {', '.join(some)}" + (f", +{more}" if more else "")
