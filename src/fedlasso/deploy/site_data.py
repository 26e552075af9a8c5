"""A site's data file, CSV or Parquet, and the site that a fit makes of it."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import numpy as np

# A site reads only messages that it knows: those of every room that asks questions.
import fedlasso.fitting
import fedlasso.procedures  # noqa: F401
from fedlasso import tables
from fedlasso.deploy.schemas import read_outcome_of, read_schema, read_settings_of, write_schema
from fedlasso.errors import FedLassoError
from fedlasso.governance.door_messages import DescribeColumns, Described, FindOthers, Open
from fedlasso.governance.policy import Rare
from fedlasso.models.document import Missing
from fedlasso.models.inputs import make_site
from fedlasso.sites import Site
from fedlasso.tables import OTHER, Column, File, Schema
from fedlasso.tables.columns import ColumnKind
from fedlasso.tables.text_columns import classify_texts

_PLAIN = Rare()


class TableRecords:
    """A table on disk, read as `fedlasso fit` reads it.

    Its fingerprint takes the site's key, and so do the splits of its rows; without a key they are
    drawn as `fedlasso fit` draws them. A table that is opened under the site's name and read
    plainly is not opened again for a fit.
    """

    def __init__(self, path: Path, key: bytes = b"", name: str = "") -> None:
        self._path = path
        self._key = key
        self._stamp = self._stat()
        self.fingerprint = self._hash()
        # How the file was opened: for which site, and with which codes for missing values.
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
        return hmac.new(self._key, digest, "sha256").hexdigest()

    def check_unchanged(self) -> None:
        """Refuse if the file is no longer what was read."""
        stamp = self._stat()
        if stamp != self._stamp and self._hash() != self.fingerprint:
            changed = "the data file has changed since it was read"
            raise FedLassoError(f"{changed}; restore it and resume, or start a new fit")
        self._stamp = stamp

    def remarks(self, columns: Sequence[str], fewest: int) -> Iterator[tuple[str, str]]:
        """Say of these columns what a fit would refuse or be told beside numbers; no values."""
        kinds: dict[str, ColumnKind] = {}
        for name in columns:
            try:
                kinds |= self._file.kinds([name])
            except FedLassoError as error:
                # The column's name is told beside it.
                yield name, str(error).rpartition(f"column {name!r} ")[2]
        for name, values in self._file.columns(list(kinds)):
            missing = values.null_count
            if kinds[name] == "text":
                told = len(tables.common_levels(values, fewest))
                yield name, f"is text; {told} levels that {fewest} rows or more have would be told"
            else:
                numbers = tables.to_numbers(values)
                missing = int(np.isnan(numbers).sum())
                if infinite := int(np.isinf(numbers).sum()):
                    yield name, f"has {infinite} infinite values; a fit with it would be refused"
            if missing:
                yield name, f"has {missing} missing values; a fit with it needs --missing mean"

    def describe(self, name: str, asked: DescribeColumns, fewest: int, rare: Rare) -> Described:
        """Return what columns hold, with the levels of text that so many rows have at least."""
        outcome = read_outcome_of(asked)
        with self._opened(name, asked.na) as file:
            for role, column in outcome.roles.items():
                if tables.kind_of(file, column) == "text":
                    named = role if role == "target" else f"{role} column"
                    raise FedLassoError(f"the {named} {column!r} is not numeric")
            kinds = file.kinds(asked.columns)
            texts = file.pool(kinds, rare)
            levels = {c: tables.common_levels(values, fewest) for c, values in file.columns(texts)}
            numbering = tuple(c for c in file.row_numbers if c in kinds)
        columns = tuple(Column(c, kind, levels.get(c, ())) for c, kind in kinds.items())
        told = write_schema(Schema.of(outcome, columns, asked.na))
        return Described(told, numbering, site=name)

    def find_others(self, name: str, asked: FindOthers, rare: Rare) -> tuple[str, ...]:
        """Return the text columns with rows at none of the levels in a schema."""
        schema = read_schema(asked.schema, read_outcome_of(asked), asked.columns, asked.na)
        with self._opened(name, asked.na) as file:
            return file.find_others(schema, rare)

    def site(self, name: str, opening: Open, rare: Rare = _PLAIN) -> Site:
        """Return all rows as a site that is asked through views: they split and standardise."""
        outcome = read_outcome_of(opening)
        schema = read_schema(opening.schema, outcome, opening.columns, opening.na)
        settings = read_settings_of(opening)
        if opening.missing not in get_args(Missing):
            raise FedLassoError(f"missing values are treated in no way called {opening.missing!r}")
        with self._opened(name, opening.na) as file:
            unplaced = set(file.find_others(schema, rare))
            for column in schema.columns:
                if column.name in unplaced and OTHER not in column.levels:
                    rows = f"rows at none of the {len(column.levels)} levels agreed on"
                    raise FedLassoError(f"column {column.name!r} has {rows}; start a new fit")
            (part,) = tables.encode_file(file, schema)
        if part.missing and opening.missing == "refuse":
            raise FedLassoError(f"{part.gaps} missing; fill them, or say --missing mean")
        secret = b""
        if self._key:
            secret = hmac.digest(self._key, f"splits of {self.fingerprint}".encode(), "sha256")
        encoded = schema.encoded
        return make_site(part, encoded, settings, secret=secret, cell=rare.cell, part=rare.part)

    @contextmanager
    def _opened(self, name: str, na: tuple[str, ...]) -> Iterator[PooledFile]:
        """The file as a fit reads it; whatever goes wrong is told under the site's name."""
        try:
            if self._reading != (name, na):
                self._file = _read_file(self._path, name, na)
                self._reading = (name, na)
            yield self._file
        except FedLassoError as error:
            text = error.unquoted.replace(str(self._path), f"site {name!r}")
            raise FedLassoError(text) from None
        # A large file is read again for this; it must still be the one that was fingerprinted.
        self.check_unchanged()


class PooledFile(File):
    """A site's own table, in which texts that few rows hold may be read as one, the others."""

    _texts: tuple[str, ...] = ()
    _rare = _PLAIN

    def kinds(self, names: Sequence[str]) -> dict[str, ColumnKind]:
        """What columns hold, as files are judged; texts among numbers are refused, not quoted."""
        found = {name: tables.kind_of(self, name) for name in names}
        for name, values in super().columns([name for name in names if found[name] == "text"]):
            try:
                verdict, _ = classify_texts(self, name, values)
            except FedLassoError:
                texts = f"column {name!r} holds texts among numbers"
                remedy = "correct them there, or say --na if they mean missing values"
                raise FedLassoError(f"{texts}; {remedy}") from None
            # Where codes are named, numbers that were kept as text for their sake are numbers.
            if verdict == "numbers" and self.na:
                found[name] = "number"
        return found

    def pool(self, kinds: Mapping[str, ColumnKind], rare: Rare) -> tuple[str, ...]:
        """From now on read rare texts of text columns as one; return the names of those."""
        self._texts = tuple(name for name, kind in kinds.items() if kind == "text")
        self._rare = rare
        return self._texts

    def columns(self, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """Name and Arrow column, rare texts pooled."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for name, values in super().columns(names):
            if self._rare.level > 1 and name in self._texts:
                texts = values.cast(pa.string())
                common = pa.array(_keep_apart(texts, self._rare), pa.string())
                rare = pc.and_(pc.is_valid(texts), pc.invert(pc.is_in(texts, value_set=common)))
                yield name, pc.if_else(rare, OTHER, texts)
            else:
                yield name, values

    def find_others(self, schema: Schema, rare: Rare) -> tuple[str, ...]:
        """Text columns with rows at none of a schema's levels; another kind is refused."""
        agreed = {column.name: column for column in schema.columns}
        for name, kind in self.kinds(list(agreed)).items():
            if kind not in (agreed[name].kind, "empty"):
                kinds = f"{kind}s here, and others say {agreed[name].kind}s"
                raise FedLassoError(f"column {name!r} holds {kinds}; make them alike")
        texts = self.pool({name: column.kind for name, column in agreed.items()}, rare)
        return tuple(
            name
            for name, values in self.columns(texts)
            if tables.count_others(values, agreed[name].levels)
        )


def _keep_apart(texts: Any, rare: Rare) -> tuple[str, ...]:
    """Levels that are not pooled; where the others are few, the rarest of them joins these."""
    common = tables.common_levels(texts, rare.level)
    counts = {c["values"]: c["counts"] for c in texts.drop_null().value_counts().to_pylist()}
    pooled = sum(rows for level, rows in counts.items() if level not in common)
    while 0 < pooled < rare.cell and common:
        rarest = min(common, key=lambda level: (counts[level], level))
        common = tuple(level for level in common if level != rarest)
        pooled += counts[rarest]
    return common


def _read_file(path: Path, site: str, na: tuple[str, ...]) -> PooledFile:
    """Open a table; an error names the file and no value."""
    try:
        return PooledFile(path, site=site, na=na)
    except FedLassoError as error:
        raise FedLassoError(error.unquoted.replace(str(path), path.name)) from None
    except Exception as error:
        raise FedLassoError(f"{path.name} is no readable table: {type(error).__name__}") from None
