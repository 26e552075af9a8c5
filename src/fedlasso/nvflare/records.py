"""A site's data file, CSV or Parquet, and the site that a fit makes of it."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedlasso.errors import FedLassoError
from fedlasso.federation import Site


class TableRecords:
    """A table on disk, read once; its fingerprint is keyed, so that it confirms no guess.

    Parameters
    ----------
    path : a .csv or .parquet file
    key : secret of the site
    """

    def __init__(self, path: Path, key: bytes = b"") -> None:
        self._path, self._key = path, key
        self._stamp = self._stat()
        self.fingerprint = self._hash()
        self._frame = read_table(path)
        self.columns: tuple[str, ...] = tuple(map(str, self._frame.columns))
        self.rows: int = len(self._frame)

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
        if stamp != self._stamp:
            if self._hash() != self.fingerprint:
                raise FedLassoError("the data file has changed since it was read; restart the site")
            self._stamp = stamp

    def problems(self) -> Iterator[tuple[str, str]]:
        """Columns that a fit would refuse, and why; no values."""
        for name in self._frame.columns:
            column = self._frame[name]
            if column.dtype.kind not in "fiub":
                yield str(name), "not numeric"
            elif not np.isfinite(column).all():
                bad = int((~np.isfinite(column.astype(float))).sum())
                yield str(name), f"{bad} missing or infinite values"

    def site(
        self, name: str, columns: tuple[str, ...], target: str, validation: float, seed: int
    ) -> Site:
        """The table as a site: a share of its rows is held out, half for each purpose."""
        X = self._frame[list(columns)].to_numpy()
        y = self._frame[target].to_numpy()
        # The split depends on the site's name and the seed alone, wherever it is done.
        stream = [seed, *name.encode()]
        order = np.random.default_rng(stream).permutation(self.rows)
        each = round(self.rows * validation / 2)
        train = np.sort(order[2 * each :])
        held: dict[str, Any] = {}
        if each:
            for k, purpose in enumerate(("penalty", "candidate")):
                rows = np.sort(order[k * each : (k + 1) * each])
                held[purpose] = (X[rows], y[rows])
        return Site(name, X[train], y[train], validation=held, columns=columns)


def read_table(path: Path) -> Any:
    """A pandas table from CSV or Parquet; an error names the file and no value."""
    try:
        if path.suffix.lower() == ".parquet":
            return pd.read_parquet(path)
        if path.suffix.lower() == ".csv":
            return pd.read_csv(path)
    except OSError as error:
        raise FedLassoError(f"cannot read {path.name}: {error.strerror or 'no table'}") from None
    except Exception as error:
        raise FedLassoError(f"{path.name} is no readable table: {type(error).__name__}") from None
    raise FedLassoError(f"{path.name} is neither .csv nor .parquet")
