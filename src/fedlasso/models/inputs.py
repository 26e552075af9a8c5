"""Where the sites are, files here or members of a network, and files opened as sites."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.families import family_with
from fedlasso.federation import InProcess
from fedlasso.federation.ledger import Notify
from fedlasso.fitting.settings import Settings
from fedlasso.models.document import Missing
from fedlasso.numerics import find_loss
from fedlasso.sites import INTERCEPT, Memory, Site
from fedlasso.sites.site import adds_intercept
from fedlasso.tables import MIN_LEVEL, Encoded, File, Outcome, Schema, agree, encode_file, stem_of


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Which columns are no predictors, and how tables are read, wherever the sites are.

    Attributes
    ----------
    time, event : of survival times, instead of a target: how long each lasted, and whether it
        ended in an event (1) or was censored (0)
    offset : the column that is added to every row's linear predictor
    weights : the column that says how much every row counts
    drop : columns to leave out
    missing : refuse missing values, or fill them with the mean over all sites
    min_level : rows that a level of text needs at some site; rarer ones are pooled
    na : texts and numbers that mean a missing value, beside the usual ones
    """

    time: str | None = None
    event: str | None = None
    offset: str | None = None
    weights: str | None = None
    drop: tuple[str, ...] = ()
    missing: Missing = "refuse"
    min_level: int = MIN_LEVEL
    na: tuple[str, ...] = ()

    def outcome(self, settings: Settings) -> Outcome:
        """Return what is to be explained; options that contradict each other are refused."""
        family = settings.response_family
        given: dict[str, Any] = {
            role: getattr(self, role, None) for role in ("target", "time", "event")
        }
        extra = [role for role, column in given.items() if column and role not in family.roles]
        if "target" in extra:
            takes = " and ".join(f"--{role}" for role in family.roles)
            raise FedLassoError(f"--family {family.name} takes {takes}; leave out --target")
        if extra:
            other = family_with(extra[0])
            raise FedLassoError(
                f"--{extra[0]} is for {other.responses}; say --family {other.name}, or leave it out"
            )
        if not all(given[role] for role in family.roles):
            raise FedLassoError(family.asks_for)
        outcome = Outcome(
            given[family.roles[0]],
            family=settings.family,
            event=self.event,
            offset=self.offset,
            weights=self.weights,
        )
        roles: dict[str, str] = {}
        for role, name in outcome.roles.items():
            if name in roles:
                raise FedLassoError(
                    f"column {name!r} is named as --{roles[name]} and as --{role}; name it once"
                )
            if name in self.drop:
                raise FedLassoError(
                    f"column {name!r} is named as --{role} and by --drop; choose one"
                )
            roles[name] = role
        return outcome


class FileSource(Source, frozen=True, tag="files"):
    """Sites that are files on this machine.

    Attributes
    ----------
    files : one per site, or one table with `site_column`
    target : the response; empty for survival times
    site_column : the column that names each row's site
    stamps : size and time of every file when the fit was begun
    """

    files: tuple[str, ...]
    target: str = ""
    site_column: str | None = None
    stamps: tuple[tuple[int, int], ...] = ()


class NetworkSource(Source, frozen=True, tag="network"):
    """Sites across a network.

    Attributes
    ----------
    project : folder of the project
    fit : identity of the fit, hexadecimal
    target : the response; empty for survival times
    columns : predictors; empty means every column that all sites show but the target
    schema : what the sites have agreed that the columns hold, once the fit has begun
    fingerprints : of each site's data, once the fit has begun
    sites : who takes part; empty means everybody
    audits : lines and head of each site's audit when it was last asked
    timeout : seconds that a site may take for one answer
    """

    project: str
    fit: str
    target: str = ""
    columns: tuple[str, ...] = ()
    schema: Schema | None = None
    fingerprints: dict[str, str] | None = None
    sites: tuple[str, ...] = ()
    audits: dict[str, tuple[int, str]] = {}
    timeout: float = 300.0


def open_sites(
    source: FileSource,
    settings: Settings | None = None,
    memory: Path | None = None,
    notify: Notify = lambda text: None,
) -> tuple[InProcess, Schema]:
    """Read every file into sites, each record held once, and return how columns were agreed on.

    A linear model is going to be fitted unless `settings` say otherwise. `memory` is a folder in
    which sites keep what must outlive the process; `notify` is called with one line per site.
    """
    settings = settings or Settings()
    outcome = source.outcome(settings)
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
    schema = agree(files, outcome, left_out, source.min_level, notify)
    # A name that no column has is refused before the records are read.
    schema.encode_names((*settings.keep, *settings.bounds))
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
                sites.append(make_site(part, schema.encoded, settings, memory=kept))
                parts.append(part)
                notify(f"read {part.site}: {len(part.X)} rows ({i + 1} of {len(files)} files)")
    if gaps:
        raise FedLassoError(f"missing values ({'; '.join(gaps)}); fill them, or say --missing mean")
    _check_variation(parts, schema, notify)
    return InProcess(sites), schema


def make_site(
    records: Encoded, columns: Sequence[str] | None, settings: Settings, **more: Any
) -> Site:
    """Return one site's records as a site that a fit with these settings can ask."""
    return Site(
        records.site,
        records.X,
        records.response.y,
        weights=records.response.weights,
        offset=records.response.offset,
        columns=columns,
        loss=settings.loss,
        intercept=settings.intercept,
        effects=settings.site_effects,
        raw=True,
        copy=False,
        **more,
    )


def name_columns(names: Sequence[str], settings: Settings) -> tuple[str, ...]:
    """Return the columns that sites have for a fit with these settings: an intercept may be one."""
    loss = find_loss(settings.loss)
    if adds_intercept(loss, settings.intercept, settings.site_effects):
        return (*names, INTERCEPT)
    return tuple(names)


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


def _check_variation(parts: Sequence[Encoded], outcome: Outcome, notify: Notify) -> None:
    """Refuse an outcome, or predictors, that are the same in every row of every site."""
    responses = {part.site: part.response.y for part in parts}
    for notice in outcome.response_family.check_sites(responses, outcome.roles):
        notify(notice)

    def varies(k: int) -> bool:
        # Missing values do not count.
        low = min(np.fmin.reduce(part.X[:, k]) for part in parts)
        return bool(low < max(np.fmax.reduce(part.X[:, k]) for part in parts))

    if not any(map(varies, range(parts[0].X.shape[1]))):
        raise FedLassoError(
            "every predictor is the same in every row of every site, so there is nothing to fit; "
            "give columns that vary"
        )
