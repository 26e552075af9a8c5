"""A site's data file, and the site that a fit makes of it."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np

# Registers the messages of every room that asks questions.
import fedlasso.fitting
import fedlasso.procedures  # noqa: F401
from fedlasso import tables
from fedlasso.deploy.schemas import read_outcome_of, read_schema, read_settings_of, write_schema
from fedlasso.errors import FedLassoError, QuotesRecords
from fedlasso.families import DEFAULT
from fedlasso.governance.door_messages import DescribeColumns, Described, FindOthers, Open
from fedlasso.governance.policy import Rare
from fedlasso.models.document import Missing
from fedlasso.models.inputs import make_site
from fedlasso.sites import Site
from fedlasso.sites.atoms import ATOM_ROWS
from fedlasso.sites.fold_assignment import BATCH_ROWS
from fedlasso.tables import OTHER, Column, File, Schema
from fedlasso.tables.columns import ColumnKind
from fedlasso.tables.targets import TWO_CLASSES
from fedlasso.tables.text_columns import classify_texts
from fedlasso.tables.values import Values

_NO_POOLING = Rare()


class TableRecords:
    """A table on disk, read as `fedlasso fit` reads it.

    `secret` keys the fingerprint and the splits of the rows; without one, rows are split as
    `fedlasso fit` does. A table opened under the site's `name` is not opened again for a fit.
    """

    def __init__(self, path: Path, secret: bytes = b"", name: str = "") -> None:
        self._path = path
        self._secret = secret
        self._stamp = self._stat()
        self.fingerprint = self._hash()
        # The site's name and the codes for missing values with which the file was opened.
        self._reading: tuple[str, tuple[str, ...]] = (name or tables.stem_of(path), ())
        self._file = _read_file(path, *self._reading)
        self.columns: tuple[str, ...] = self._file.names
        self.rows: int = sum(map(len, self._file.groups.values()))

    def _stat(self) -> tuple[int, int, int]:
        try:
            stat = self._path.stat()
        except OSError as error:
            raise FedLassoError(f"cannot read {self._path.name}: {error.strerror}") from None
        return stat.st_mtime_ns, stat.st_size, stat.st_ino

    def _hash(self) -> str:
        with self._path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
        return hmac.new(self._secret, digest, "sha256").hexdigest()

    def check_unchanged(self) -> None:
        """Refuse a file that has changed."""
        stamp = self._stat()
        if stamp != self._stamp and self._hash() != self.fingerprint:
            remedy = "restore it and resume, or start a new fit"
            raise FedLassoError(f"the data file has changed since it was read; {remedy}")
        self._stamp = stamp

    def remarks(self, columns: Sequence[str], min_rows: int) -> Iterator[tuple[str, str]]:
        """Yield columns with what a fit would refuse or report of them, without values."""
        kinds: dict[str, ColumnKind] = {}
        for name in columns:
            try:
                kinds |= self._file.kinds([name])
            except FedLassoError as error:
                # The caller prints the column's name.
                yield name, str(error).rpartition(f"column {name!r} ")[2]
        for name, values in self._file.columns(list(kinds)):
            missing = values.gaps
            if kinds[name] == "text":
                levels = len(tables.common_levels(values, min_rows))
                yield name, f"is text; {levels} levels with {min_rows} rows or more are reported"
            else:
                numbers = tables.to_numbers(values)
                missing = int(np.isnan(numbers).sum())
                if infinite := int(np.isinf(numbers).sum()):
                    yield name, f"has {infinite} infinite values; a fit with it is refused"
            if missing:
                yield name, f"has {missing} missing values; a fit with it needs --missing mean"

    def describe(self, name: str, request: DescribeColumns, min_rows: int, rare: Rare) -> Described:
        """Return the kinds of columns, with the levels of text in at least `min_rows` rows."""
        outcome = read_outcome_of(request)
        with self._opened(name, request.na) as file:
            for role, column in outcome.roles.items():
                if tables.kind_of(file, column) != "text" or role == "cluster":
                    continue
                named = role if role == "target" else f"{role} column"
                if role != "target" or not outcome.response_family.takes_classes:
                    remedy = f"; {TWO_CLASSES}" if outcome.family == DEFAULT else ""
                    raise FedLassoError(f"the {named} {column!r} is not numeric{remedy}")
                ((_, values),) = file.columns([column])
                outcome = replace(outcome, classes=tables.common_levels(values, min_rows))
            kinds = file.kinds(request.columns)
            texts = file.pool(kinds, rare)
            levels = {c: tables.common_levels(v, min_rows) for c, v in file.columns(texts)}
            numbering = tuple(c for c in file.identifiers if c in kinds)
        columns = tuple(Column(c, kind, levels.get(c, ())) for c, kind in kinds.items())
        schema = write_schema(Schema.of(outcome, columns, request.na))
        return Described(schema, numbering, site=name)

    def find_others(self, name: str, request: FindOthers, rare: Rare) -> tuple[str, ...]:
        """Return the text columns with rows at none of a schema's levels."""
        outcome = read_outcome_of(request)
        schema = read_schema(request.schema, outcome, request.columns, request.na)
        with self._opened(name, request.na) as file:
            return file.find_others(schema, rare)

    def site(self, name: str, opening: Open, rare: Rare = _NO_POOLING) -> Site:
        """Return a site with all rows; views split and standardise them."""
        outcome = read_outcome_of(opening)
        schema = read_schema(opening.schema, outcome, opening.columns, opening.na)
        settings = read_settings_of(opening)
        if opening.missing not in get_args(Missing):
            raise FedLassoError(f"unknown treatment of missing values {opening.missing!r}")
        with self._opened(name, opening.na) as file:
            if schema.classes:
                ((_, values),) = file.columns([schema.target])
                if tables.count_others(values, schema.classes):
                    agreed = f"rows outside its {len(schema.classes)} agreed classes"
                    raise FedLassoError(f"the target {schema.target!r} has {agreed}; correct them")
            unplaced = set(file.find_others(schema, rare))
            for column in schema.columns:
                if column.name in unplaced and OTHER not in column.levels:
                    rows = f"rows outside the {len(column.levels)} agreed levels"
                    raise FedLassoError(f"column {column.name!r} has {rows}; start a new fit")
            (part,) = tables.encode_file(file, schema)
        if part.missing and opening.missing == "refuse":
            names = ", ".join(part.missing)
            remedy = "fill them, or use --missing mean"
            raise QuotesRecords(
                f"{part.gaps} missing; {remedy}",
                f"site {name!r}: values missing in {names}; {remedy}",
            )
        secret = b""
        if self._secret:
            secret = hmac.digest(self._secret, f"splits of {self.fingerprint}".encode(), "sha256")
        encoded = schema.encoded
        limits = {
            "part": rare.part,
            "batch": max(rare.atom, BATCH_ROWS),
            "atom_rows": rare.atom or ATOM_ROWS,
            "turn": sorted(opening.sites).index(name) if name in opening.sites else 0,
        }
        return make_site(part, encoded, settings, secret=secret, **limits)

    @contextmanager
    def _opened(self, name: str, na: tuple[str, ...]) -> Iterator[PooledFile]:
        """The file as a fit reads it; errors name the site instead of the file."""
        try:
            if self._reading != (name, na):
                self._file = _read_file(self._path, name, na)
                self._reading = (name, na)
            yield self._file
        except FedLassoError as error:
            site = f"site {name!r}"
            texts = [text.replace(str(self._path), site) for text in (str(error), error.unquoted)]
            raise QuotesRecords(*texts) from None
        # A large file was read again; it must still be the one that was fingerprinted.
        self.check_unchanged()


class PooledFile(File):
    """A site's table, in which rare levels of text may be pooled into `OTHER`."""

    _texts: tuple[str, ...] = ()
    _rare = _NO_POOLING

    def kinds(self, names: Sequence[str]) -> dict[str, ColumnKind]:
        """Return the kinds of columns; texts among numbers are refused without quoting them."""
        found = {name: tables.kind_of(self, name) for name in names}
        for name, values in super().columns([name for name in names if found[name] == "text"]):
            try:
                verdict, _ = classify_texts(self, name, values)
            except FedLassoError:
                fix = "correct them there, or use --na if they mean missing values"
                raise FedLassoError(f"column {name!r} holds texts among numbers; {fix}") from None
            # A numeric column that is text only because of codes for missing values.
            if verdict == "numbers" and self.na:
                found[name] = "number"
        return found

    def pool(self, kinds: Mapping[str, ColumnKind], rare: Rare) -> tuple[str, ...]:
        """Pool rare levels from now on; return the names of the text columns."""
        self._texts = tuple(name for name, kind in kinds.items() if kind == "text")
        self._rare = rare
        return self._texts

    def columns(self, names: Sequence[str]) -> Iterator[tuple[str, Values]]:
        """Yield names and columns, rare levels pooled."""
        for name, values in super().columns(names):
            if self._rare.level > 1 and name in self._texts:
                texts = values.texts()
                yield name, texts.pooled(_keep_apart(texts, self._rare), OTHER)
            else:
                yield name, values

    def find_others(self, schema: Schema, rare: Rare) -> tuple[str, ...]:
        """Return the text columns with rows at none of a schema's levels."""
        agreed = {column.name: column for column in schema.columns}
        for name, kind in self.kinds(list(agreed)).items():
            if kind not in (agreed[name].kind, "empty"):
                kinds = f"{kind}s here but {agreed[name].kind}s elsewhere"
                raise FedLassoError(f"column {name!r} holds {kinds}; make them alike")
        texts = self.pool({name: column.kind for name, column in agreed.items()}, rare)
        columns = self.columns(texts)
        return tuple(n for n, values in columns if tables.count_others(values, agreed[n].levels))


def _keep_apart(texts: Values, rare: Rare) -> tuple[str, ...]:
    """Return the levels not to pool; while the pool is small, the rarest level joins it."""
    common = tables.common_levels(texts, rare.level)
    counts = texts.counts()
    pooled = sum(rows for level, rows in counts.items() if level not in common)
    while 0 < pooled < rare.cell and common:
        rarest = min(common, key=lambda level: (counts[level], level))
        common = tuple(level for level in common if level != rarest)
        pooled += counts[rarest]
    return common


def _read_file(path: Path, site: str, na: tuple[str, ...]) -> PooledFile:
    """Open a table; an error names the file without its folder."""
    try:
        return PooledFile(path, site=site, na=na)
    except FedLassoError as error:
        texts = [text.replace(str(path), path.name) for text in (str(error), error.unquoted)]
        raise QuotesRecords(*texts) from None
    except Exception as error:
        raise FedLassoError(f"cannot read {path.name}: {type(error).__name__}") from None
