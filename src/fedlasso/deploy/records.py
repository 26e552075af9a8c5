"""A site's data file, CSV or Parquet, and the site that a fit makes of it."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import numpy as np

# A site reads only messages that it knows: those of every room that asks questions.
import fedlasso.fitting
import fedlasso.procedures  # noqa: F401
from fedlasso.deploy.schemas import read_schema, write_schema
from fedlasso.errors import FedLassoError
from fedlasso.governance.door import DescribeColumns, FindOthers, Open
from fedlasso.models.document import Missing
from fedlasso.sites import Site
from fedlasso.tables import (
    OTHER,
    Column,
    File,
    Schema,
    common_levels,
    encode_file,
    has_others,
    kind_of,
    to_numbers,
)


class TableRecords:
    """A table on disk, read as `fedlasso fit` reads it.

    Its fingerprint takes the site's key. A table that is opened under the site's name and read
    plainly is not opened again for a fit.
    """

    def __init__(self, path: Path, key: bytes = b"", name: str = "") -> None:
        self._path = path
        self._key = key
        self._stamp = self._stat()
        self.fingerprint = self._hash()
        # How the file was opened: for which site, with which codes, texts pooled below what.
        self._reading: tuple[str, tuple[str, ...], int] = (name or path.stem, (), 0)
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
            raise FedLassoError(
                "the data file has changed since it was read; restore it and resume, or start a "
                "new fit"
            )
        self._stamp = stamp

    def remarks(self, columns: Sequence[str], fewest: int) -> Iterator[tuple[str, str]]:
        """Say of these columns what a fit would refuse or be told beside numbers; no values."""
        readable = []
        for name in columns:
            try:
                kind_of(self._file, name)
                readable.append(name)
            except FedLassoError:
                yield name, "is neither numbers nor text; a fit with it would be refused"
        for name, values in self._file.columns(readable):
            if kind_of(self._file, name) == "text":
                told = len(common_levels(values, fewest))
                yield name, f"is text; {told} levels that {fewest} rows or more have would be told"
                missing = values.null_count
            else:
                numbers = to_numbers(values)
                missing = int(np.isnan(numbers).sum())
                if infinite := int(np.isinf(numbers).sum()):
                    yield name, f"has {infinite} infinite values; a fit with it would be refused"
            if missing:
                yield name, f"has {missing} missing values; a fit with it needs --missing mean"

    def describe(self, name: str, asked: DescribeColumns, fewest: int, pooled: int) -> str:
        """Return what columns hold, with the levels of text that so many rows have at least."""
        with self._opened(name, asked.na, pooled) as file:
            kinds = {column: kind_of(file, column) for column in asked.columns}
            if kind_of(file, asked.target) == "text":
                raise FedLassoError(f"the target {asked.target!r} is not numeric")
            levels = {
                column: common_levels(values, fewest)
                for column, values in file.columns([c for c in kinds if kinds[c] == "text"])
            }
        columns = (Column(c, kind, levels.get(c, ())) for c, kind in kinds.items())
        return write_schema(Schema(asked.target, tuple(columns)))

    def find_others(self, name: str, asked: FindOthers, pooled: int) -> tuple[str, ...]:
        """Return the text columns with rows at none of the levels in a schema."""
        schema = read_schema(asked.schema, asked.target, asked.columns)
        with self._opened(name, asked.na, pooled) as file:
            return _find_others(file, schema)

    def site(self, name: str, opening: Open, pooled: int = 0) -> Site:
        """Return all rows as a site that is asked through views: they split and standardise."""
        schema = read_schema(opening.schema, opening.target, opening.columns)
        if opening.missing not in get_args(Missing):
            raise FedLassoError(f"missing values are treated in no way called {opening.missing!r}")
        with self._opened(name, opening.na, pooled) as file:
            unplaced = set(_find_others(file, schema))
            for column in schema.columns:
                if column.name in unplaced and OTHER not in column.levels:
                    raise FedLassoError(
                        f"column {column.name!r} has rows at none of the {len(column.levels)} "
                        "levels agreed on; start a new fit"
                    )
            (part,) = encode_file(file, schema)
        if part.missing and opening.missing == "refuse":
            raise FedLassoError(f"{part.gaps} missing; fill them, or say --missing mean")
        return Site(name, part.X, part.y, columns=schema.encoded, raw=True, copy=False)

    @contextmanager
    def _opened(self, name: str, na: tuple[str, ...], pooled: int) -> Iterator[File]:
        """The file as a fit reads it; whatever goes wrong is told under the site's name."""
        try:
            if self._reading != (name, na, pooled):
                self._file = _read_file(self._path, name, na, pooled)
                self._reading = (name, na, pooled)
            yield self._file
        except FedLassoError as error:
            own = f"site {name!r}"
            raise FedLassoError(str(error).replace(str(self._path), own)) from None
        # A large file is read again for this; it must still be the one that was fingerprinted.
        self.check_unchanged()


class PooledFile(File):
    """A table in which texts that fewer than `pooled` rows hold are read as one, the others."""

    def __init__(self, path: Path, site: str, na: tuple[str, ...], pooled: int) -> None:
        self._pooled = pooled
        super().__init__(path, site=site)

    def columns(self, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """Name and Arrow column, rare texts pooled."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for name, values in super().columns(names):
            if self._pooled > 1 and kind_of(self, name) == "text":
                texts = values.cast(pa.string())
                common = pa.array(common_levels(texts, self._pooled), pa.string())
                rare = pc.and_(pc.is_valid(texts), pc.invert(pc.is_in(texts, value_set=common)))
                yield name, pc.if_else(rare, OTHER, texts)
            else:
                yield name, values


def _find_others(file: File, schema: Schema) -> tuple[str, ...]:
    """Text columns with rows at none of a schema's levels; a column of another kind is refused."""
    for column in schema.columns:
        kind = kind_of(file, column.name)
        if kind not in (column.kind, "empty"):
            raise FedLassoError(
                f"column {column.name!r} holds {kind}s here, and others say {column.kind}s; "
                "make them alike"
            )
    levels = {column.name: column.levels for column in schema.columns if column.kind == "text"}
    return tuple(
        name for name, values in file.columns(list(levels)) if has_others(values, levels[name])
    )


def _read_file(path: Path, site: str, na: tuple[str, ...], pooled: int) -> PooledFile:
    """Open a CSV or Parquet file; an error names the file and no value."""
    try:
        return PooledFile(path, site, na, pooled)
    except Exception as error:
        text = str(error).replace(str(path), path.name)
        # What a parser says of a bad row quotes it.
        if not isinstance(error, FedLassoError):
            text = f"{path.name} is no readable table: {type(error).__name__}"
        elif "is not a CSV table" in text:
            text = f"{path.name} is no readable table"
        raise FedLassoError(text) from None
