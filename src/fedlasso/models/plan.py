"""plan.json: all that an unfinished fit depends on, so that it can go on after an interruption."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

import msgspec

from fedlasso import __version__
from fedlasso.errors import FedLassoError
from fedlasso.files import write_atomically
from fedlasso.models.settings import Settings

PLAN = "plan.json"
Missing = Literal["refuse", "mean"]
Stamp = tuple[int, int]


@dataclass(frozen=True)
class FileSource:
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
    stamps: tuple[Stamp, ...] = ()


@dataclass(frozen=True)
class NetworkSource:
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


S = TypeVar("S", FileSource, NetworkSource)
_COMMANDS = {FileSource: "fedlasso fit --resume", NetworkSource: "fedlasso federation resume"}


@dataclass(frozen=True)
class FitPlan(Generic[S]):
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


@dataclass(frozen=True)
class _Document:
    """The layout of plan.json: which of the two sources is there says where the sites are."""

    format: Literal["fedlasso-plan"]
    format_version: Literal[1]
    version: str
    settings: Settings
    compare: bool
    files: FileSource | None = None
    network: NetworkSource | None = None


def write_plan(folder: Path, plan: FitPlan[S]) -> None:
    """Write down what is going to be fitted, before the first question."""
    name = "files" if isinstance(plan.source, FileSource) else "network"
    values = {
        "format": "fedlasso-plan",
        "format_version": 1,
        "version": plan.version,
        "settings": asdict(plan.settings),
        "compare": plan.compare,
        name: asdict(plan.source),
    }
    write_atomically(folder / PLAN, json.dumps(values, indent=1).encode())


def read_plan(folder: Path, kind: type[S]) -> FitPlan[S]:
    """Return what an unfinished fit was asked to do, if its sites are of that kind."""
    path = folder / PLAN
    try:
        document = msgspec.json.decode(path.read_bytes(), type=_Document)
    except FileNotFoundError:
        raise FedLassoError(f"{folder} holds no fit to go on with") from None
    except (OSError, ValueError) as error:
        raise FedLassoError(f"{path} cannot be read ({error}); fit anew") from None
    if document.version != __version__:
        raise FedLassoError(
            f"{folder} was begun by fedlasso {document.version}, this is {__version__}; "
            "use the same"
        )
    for source in (document.files, document.network):
        if isinstance(source, kind):
            return FitPlan(document.settings, source, document.compare, document.version)
    other = next(command for of, command in _COMMANDS.items() if of is not kind)
    raise FedLassoError(f"{folder} holds a fit of another kind; go on with: {other} {folder}")
