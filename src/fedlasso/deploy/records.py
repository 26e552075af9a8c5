"""A site's data file, CSV or Parquet, and the site that a fit makes of it."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

# A site reads only messages that it knows: those of every room that asks questions.
import fedlasso.fitting
import fedlasso.procedures  # noqa: F401
from fedlasso.errors import FedLassoError
from fedlasso.sites import Site
from fedlasso.tables import Column, File, Schema, encode_file, kind_of, to_numbers


class TableRecords:
    """A table on disk, read as `fedlasso fit` reads it; its fingerprint takes the site's key."""

    def __init__(self, path: Path, key: bytes = b"") -> None:
        self._path = path
        self._key = key
        self._stamp = self._stat()
        self.fingerprint = self._hash()
        self._file = _read_file(path)
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

    def problems(self, columns: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Tell which of these columns a fit would refuse, and why; no values."""
        numeric = []
        for name in columns:
            try:
                kind = kind_of(self._file, name)
            except FedLassoError:
                kind = "text"
            if kind == "text":
                yield name, "is not numeric"
            else:
                numeric.append(name)
        for name, values in self._file.columns(numeric):
            if bad := int((~np.isfinite(to_numbers(values))).sum()):
                yield name, f"has {bad} missing or infinite values"

    def site(self, name: str, columns: tuple[str, ...], target: str) -> Site:
        """Return all rows as a site that is asked through views: they split and standardise."""
        if bad := [f"column {c!r} {why}" for c, why in self.problems((target, *columns))]:
            more = f" (and {len(bad) - 5} more)" if len(bad) > 5 else ""
            raise FedLassoError(
                f"site {name!r}: {'; '.join(bad[:5])}{more}; a fit over the network takes numeric "
                "columns without gaps: correct them, or leave them out with --drop"
            )
        schema = Schema(target, tuple(Column(c, "number") for c in columns))
        (part,) = encode_file(self._file, schema)
        # A large file is read again for this; it must still be the one that was fingerprinted.
        self.check_unchanged()
        return Site(name, part.X, part.y, columns=columns, raw=True, copy=False)


def _read_file(path: Path) -> File:
    """Open a CSV or Parquet file; an error names the file and no value."""
    try:
        return File(path)
    except Exception as error:
        text = str(error).replace(str(path), path.name)
        # What a parser says of a bad row quotes it.
        if not isinstance(error, FedLassoError):
            text = f"{path.name} is no readable table: {type(error).__name__}"
        elif "is not a CSV table" in text:
            text = f"{path.name} is no readable table"
        raise FedLassoError(text) from None
