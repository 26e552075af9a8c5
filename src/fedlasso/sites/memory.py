"""A site's state between rounds, for the procedures that need it (ADMM's u_j)."""

from __future__ import annotations

import hashlib
import io
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlasso.atomic_files import write_atomically
from fedlasso.errors import FedLassoError

_FITS = 4
# Maximum number of files of one fit in a folder.
_FILES = 1000


class Memory:
    """Named arrays per fit and round, so that repeating a round gives the same answer.

    A fit's key identifies everything its rounds depend on (procedure, hyperparameters, penalty).
    The last two rounds of the last few fits are kept; in a folder they outlive the process and, if
    `durable`, a power failure.
    """

    # Number of fits and views that are kept.
    _most = _FITS

    def __init__(self, folder: Path | None = None, durable: bool = True) -> None:
        self._folder = folder
        self._durable = durable
        self._fits: OrderedDict[str, dict[int, Mapping[str, NDArray[Any]]]] = OrderedDict()

    def recall(self, fit: str, round: int) -> Mapping[str, NDArray[Any]]:
        """Return the values stored for a round; none before the first."""
        if round == 0:
            return {}
        if round in self._fits.get(fit, {}):
            return self._fits[fit][round]
        saved = self._file(fit, round)
        if saved is None or not saved.exists():
            raise FedLassoError(f"round {round} of this fit is not stored here; restart the fit")
        with np.load(saved, allow_pickle=False) as values:
            return {name: values[name] for name in values.files}

    def store(self, fit: str, round: int, values: Mapping[str, NDArray[Any]]) -> None:
        """Keep values for a round, besides those of the round before."""
        if (path := self._file(fit, round)) is not None:
            if not path.exists() and sum(1 for _ in path.parent.glob("*")) >= _FILES:
                found = f"this fit has reached the limit of {_FILES} stored rounds and views"
                raise FedLassoError(f"{found}; start another fit")
            buffer = io.BytesIO()
            np.savez(buffer, allow_pickle=False, **values)
            write_atomically(path, buffer.getvalue(), private=True, durable=self._durable)
        rounds = self._fits.setdefault(fit, {})
        self._fits.move_to_end(fit)
        rounds[round] = values
        for old in [r for r in rounds if not round - 1 <= r <= round]:
            del rounds[old]
            if (path := self._file(fit, old)) is not None:
                path.unlink(missing_ok=True)
        while len(self._fits) > self._most:
            self._fits.popitem(last=False)

    def room(self, name: str) -> Memory:
        """Return a separate memory, stored beside this one."""
        return Memory(None if self._folder is None else self._folder / name, self._durable)

    def draft(self) -> Memory:
        """Return a memory that reads this one and stores nothing in it."""
        return _Draft(self)

    def _file(self, fit: str, round: int) -> Path | None:
        if self._folder is None:
            return None
        return self._folder / f"{hashlib.sha256(fit.encode()).hexdigest()}-{round}.npz"


class _Draft(Memory):
    """A memory above another one, which stays as it is; it lasts for one batch of questions."""

    _most = _FILES

    def __init__(self, below: Memory) -> None:
        super().__init__()
        self._below = below

    def recall(self, fit: str, round: int) -> Mapping[str, NDArray[Any]]:
        own = self._fits.get(fit, {})
        return own[round] if round in own else self._below.recall(fit, round)

    def room(self, name: str) -> Memory:
        return _Draft(self._below.room(name))
