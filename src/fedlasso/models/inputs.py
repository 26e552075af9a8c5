"""Where the sites are, in files or on a network, and how files are opened as sites."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.families import family_with
from fedlasso.federation import InProcess
from fedlasso.federation.ledger import Notify
from fedlasso.fitting.settings import SELECTED, Settings
from fedlasso.models.document import Missing
from fedlasso.numerics import find_loss
from fedlasso.sites import INTERCEPT, Memory, Site
from fedlasso.sites.fold_assignment import digest_records
from fedlasso.sites.site import adds_intercept
from fedlasso.tables import (
    MIN_LEVEL,
    Encoded,
    File,
    Outcome,
    Schema,
    agree,
    columns_of,
    encode_file,
    parse_formula,
    stem_of,
)
from fedlasso.tables.leaks import leaks_in
from fedlasso.tables.repeats import compare_files, find_repeated

V = TypeVar("V")
# Rows look repeated if this fraction of them does.
MANY_REPEATED = 0.2


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Which columns are not predictors, and how tables are read.

    Attributes
    ----------
    time, event : for survival, instead of a target: the time, and whether it ended in an event (1)
        or was censored (0)
    offset : column added to the linear predictor
    weights : column of row weights
    cluster : column of what rows that may depend on each other have in common, such as the patient
    drop : columns to leave out
    missing : refuse missing values, or replace them by the mean over all sites
    min_level : minimum number of rows of a text level at some site; rarer levels are pooled
    na : texts and numbers that mean a missing value, besides the usual ones
    positive : the text of the target, or its number, that is an event: 1, where the other is 0
    """

    time: str | None = None
    event: str | None = None
    offset: str | None = None
    weights: str | None = None
    cluster: str | None = None
    drop: tuple[str, ...] = ()
    missing: Missing = "refuse"
    min_level: int = MIN_LEVEL
    na: tuple[str, ...] = ()
    positive: str | None = None

    def outcome(self, settings: Settings) -> Outcome:
        """Return the outcome; refuse options that contradict each other."""
        family = settings.response_family
        given: dict[str, Any] = {o: getattr(self, o, None) for o in ("target", "time", "event")}
        extra = [role for role, column in given.items() if column and role not in family.roles]
        if "target" in extra:
            takes = " and ".join(f"--{role}" for role in family.roles)
            raise FedLassoError(f"--family {family.name} takes {takes}; omit --target")
        if extra:
            other = family_with(extra[0])
            raise FedLassoError(
                f"--{extra[0]} is for {other.responses}; use --family {other.name}, or omit it"
            )
        if not all(given[role] for role in family.roles):
            raise FedLassoError(family.asks_for)
        if self.positive is not None and not family.takes_classes:
            raise FedLassoError("--positive is for two classes; use --family binomial, or omit it")
        target = given[family.roles[0]]
        others = {role: getattr(self, role) for role in ("event", "offset", "weights", "cluster")}
        outcome = Outcome(target, family=family.name, **others)
        roles = dict.fromkeys(self.drop, "drop")
        for role, name in outcome.roles.items():
            if name in roles:
                raise FedLassoError(
                    f"column {name!r} is named by --{roles[name]} and by --{role}; choose one"
                )
            roles[name] = role
        return outcome


class FileSource(Source, frozen=True, tag="files"):
    """Sites in files on this machine.

    Attributes
    ----------
    files : one per site, or one table with a `site_column` that names each row's site
    target : the response; empty for survival times
    stamps : size and time of every file when the fit started
    categorical : columns whose numbers are codes of levels
    levels : levels of such columns in their order, the reference first; sorted by default
    formula : response and derived columns, instead of the target and all other columns
    knots : of the splines in it, by column
    """

    files: tuple[str, ...]
    target: str = ""
    site_column: str | None = None
    categorical: tuple[str, ...] = ()
    levels: dict[str, tuple[str, ...]] = {}
    stamps: tuple[tuple[int, int], ...] = ()
    formula: str = ""
    knots: dict[str, tuple[float, ...]] = {}

    def with_formula(self) -> "FileSource":
        """Return the source with the response and the codes that its formula names."""
        if not self.formula:
            if self.knots:
                raise FedLassoError("--knots are those of a --formula; omit them")
            return self
        parsed = parse_formula(self.formula)
        for role in ("target", "time", "event"):
            if getattr(self, role) not in ("", None, parsed.roles.get(role)):
                raise FedLassoError(f"--formula names the response; omit --{role}")
        if self.drop:
            raise FedLassoError("--formula names the columns; omit --drop")
        codes = tuple(dict.fromkeys((*self.categorical, *parsed.codes)))
        return msgspec.structs.replace(self, categorical=codes, **parsed.roles)


class NetworkSource(Source, frozen=True, tag="network"):
    """Sites on a network.

    Attributes
    ----------
    project : folder of the project
    fit : identifier of the fit, hexadecimal
    target : the response; empty for survival times
    columns : predictors; empty for all columns that every site offers, except the target
    schema, fingerprints : agreed columns, and a hash of each site's data, once the fit has started
    sites : sites that take part; empty for all
    audits : number of lines and head of each site's audit log when it was last read
    timeout : seconds that a site may take to reply
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


class OpenedSites(InProcess):
    """Sites whose records were read here; `leaks` are warnings of columns by name."""

    def __init__(self, sites: Iterable[Site], leaks: Mapping[str, str]) -> None:
        super().__init__(sites)
        self.leaks = dict(leaks)


def open_sites(
    source: FileSource,
    settings: Settings | None = None,
    memory: Path | None = None,
    notify: Notify = lambda text: None,
) -> tuple[OpenedSites, Schema]:
    """Read files into sites, each record held once, and return them with the agreed schema.

    Sites keep what must outlive this process in the folder `memory`; `notify` gets a line per site.
    """
    settings = settings or Settings()
    # Refuse contradictory options before anything is read.
    source.outcome(settings)
    return open_tables(open_files(source), source, settings, memory, notify)


def open_tables(
    files: Sequence[File],
    source: FileSource,
    settings: Settings,
    memory: Path | None = None,
    notify: Notify = lambda text: None,
) -> tuple[OpenedSites, Schema]:
    """Return tables, from files or data frames, as sites, with the agreed schema."""
    outcome = source.outcome(settings)
    left_out = [*source.drop, *filter(None, [source.site_column])]
    named = settings.columns_by_name
    parsed = parse_formula(source.formula) if source.formula else None
    if parsed is not None:
        named = named.union(parsed.columns)
        left_out += _leave_to_formula(files, parsed.columns, outcome.names)
    how: dict[str, Any] = {"positive": source.positive, "named": named, "orders": source.levels}
    schema = agree(files, outcome, left_out, source.min_level, notify, **how)
    if parsed is not None:
        schema = schema.with_formula(parsed.right, source.knots)
    # Unknown names are refused before the records are read.
    encode_settings(settings, schema)

    def read() -> Iterator[Encoded]:
        for i, file in enumerate(files):
            progress = f" ({i + 1} of {len(files)} files)" if len(files) > 1 else ""
            for part in encode_file(file, schema):
                notify(f"read {part.site}: {len(part.X)} rows{progress}")
                yield part

    sites = open_parts(read(), schema.encoded, schema, settings, source.missing, memory, notify)
    return sites, schema


def _leave_to_formula(
    files: Sequence[File], columns: Sequence[str], outcome: Sequence[str]
) -> list[str]:
    """Return the columns that a formula does not name; refuse files without one that it names."""
    for file in files:
        if lacking := [name for name in columns if name not in file.names]:
            what = f"{file.path} lacks the column {lacking[0]!r} of the formula"
            raise FedLassoError(f"{what}; {columns_of(file.names)}")
    own = {*columns, *outcome}
    return [name for file in files for name in file.names if name not in own]


def open_parts(
    parts: Iterable[Encoded],
    columns: Sequence[str] | None,
    outcome: Outcome,
    settings: Settings,
    missing: Missing = "refuse",
    memory: Path | None = None,
    notify: Notify = lambda text: None,
) -> OpenedSites:
    """Return encoded records as sites; refuse missing values, unless replaced, and constants."""
    sites: list[Site] = []
    kept: list[Encoded] = []
    gaps: list[str] = []
    for part in parts:
        if part.missing and missing == "refuse":
            gaps.append(part.gaps)
        # Once values are missing there will be no fit, only the complete list of them.
        if not gaps:
            place = hashlib.sha256(part.site.encode()).hexdigest()[:16]
            # Files can be asked again after a power failure.
            own = Memory(None if memory is None else memory / place, durable=False)
            sites.append(make_site(part, columns, settings, memory=own))
            kept.append(part)
            if outcome.cluster is None:
                _warn_of_repeats(part, notify)
    if gaps:
        raise FedLassoError(f"missing values ({'; '.join(gaps)}); fill them, or use --missing mean")
    _check_variation(kept, outcome, notify)
    # A linear model shows its leaks by what it explains.
    curved = not outcome.response_family.quadratic and isinstance(kept[0].X, np.ndarray)
    names = [name for name in sites[0].columns if name != INTERCEPT]
    return OpenedSites(sites, dict(leaks_in(kept, names, outcome)) if curved else {})


def encode_settings(settings: Settings, schema: Schema) -> Settings:
    """Return settings with text columns replaced by the columns of their levels."""
    encode = schema.encode_names
    selected = (name for name in settings.intervals if name == SELECTED)
    return replace(
        settings,
        bounds=_encode_keys(settings.bounds, schema),
        keep=encode(settings.keep),
        penalty_factors=_encode_keys(settings.penalty_factors, schema),
        groups=tuple(encode(group) for group in settings.groups),
        intervals=(*encode(settings.named), *selected),
    )


def _encode_keys(values: Mapping[str, V], schema: Schema) -> dict[str, V]:
    return {own: value for name, value in values.items() for own in schema.encode_names([name])}


def open_files(source: FileSource) -> list[File]:
    """Open the files of a source; refuse one file twice, and columns that no file has."""
    if source.site_column is not None and len(source.files) > 1:
        raise FedLassoError("--site-column is for one table with several sites; give one file")
    refuse_copies(source.files)
    # Two classes are texts, also if these are numbers.
    classes = (source.target,) if source.positive is not None else ()
    codes = (*source.categorical, *classes)
    files = [
        File(Path(path), source.site_column, name, source.na, codes)
        for path, name in zip(source.files, name_sites(source.files), strict=True)
    ]
    for option in ("drop", "categorical"):
        for name in getattr(source, option):
            if not any(name in file.names for file in files):
                raise FedLassoError(f"no file has the column {name!r} of --{option}")
    return files


def name_sites(files: Sequence[str]) -> Sequence[str]:
    """Return file names without extensions if those are unique, else whole paths."""
    stems = [stem_of(Path(file)) for file in files]
    return stems if len(set(stems)) == len(stems) else files


def make_site(
    records: Encoded, columns: Sequence[str] | None, settings: Settings, **more: Any
) -> Site:
    """Return one site's records as a `Site` for a fit with these settings.

    Its splits depend on the records and the seed, not on its name.
    """
    response = records.response
    return Site(
        records.site,
        records.X,
        response.y,
        weights=response.weights,
        offset=response.offset,
        clusters=response.clusters,
        columns=columns,
        loss=settings.loss,
        intercept=settings.intercept,
        effects=bool(settings.site_effects),
        raw=True,
        copy=False,
        draws=digest_records(records.X, response.y),
        **more,
    )


def name_columns(names: Sequence[str], settings: Settings) -> tuple[str, ...]:
    """Return the columns of the sites for a fit with these settings; one may be an intercept."""
    loss = find_loss(settings.loss)
    added = adds_intercept(loss, settings.intercept, bool(settings.site_effects))
    return (*names, INTERCEPT) if added else tuple(names)


def refuse_copies(files: Sequence[str]) -> None:
    """Refuse one file under two names, and copies of its bytes: its rows would count twice."""
    for name, other in combinations(files, 2):
        if same := compare_files(Path(name), Path(other)):
            raise FedLassoError(f"{name} and {other} {same}; name each file once")


def _warn_of_repeats(part: Encoded, notify: Notify) -> None:
    """Warn of rows that may be several ones of the same patient."""
    repeated = find_repeated(part.X) if isinstance(part.X, np.ndarray) else 0.0
    if repeated >= MANY_REPEATED:
        notify(
            f"warning: site {part.site!r}: about {repeated:.0%} of the rows agree with another one "
            "in several columns, as repeated visits do; discoveries and intervals assume "
            "independent rows: name the patient's column with --cluster"
        )


def _check_variation(parts: Sequence[Encoded], outcome: Outcome, notify: Notify) -> None:
    """Refuse an outcome or predictors that are constant over all rows of all sites."""
    responses = {part.site: part.response.y for part in parts}
    for notice in outcome.response_family.check_sites(responses, outcome.roles):
        notify(notice)

    def varies(k: int) -> bool:
        # Missing values are ignored.
        low = min(np.fmin.reduce(part.X[:, k]) for part in parts)
        return bool(low < max(np.fmax.reduce(part.X[:, k]) for part in parts))

    # Sparse tables come from Python, where the fit itself looks for constants.
    if isinstance(parts[0].X, np.ndarray) and not any(map(varies, range(parts[0].X.shape[1]))):
        raise FedLassoError(
            "every predictor is constant over all rows of all sites, so there is nothing to fit; "
            "give columns that vary"
        )
