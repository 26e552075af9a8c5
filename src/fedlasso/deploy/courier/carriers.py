"""Where files are left for each other: a folder, or a place that fsspec can reach by a URL."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, TypeVar

from fedlasso.atomic_files import CannotWrite, write_atomically
from fedlasso.deploy.courier.envelope import LARGEST, read_limited
from fedlasso.errors import FedLassoError, Interrupted

T = TypeVar("T")
# Attempts of one operation, and seconds before the second one; each later pause is twice as long.
ATTEMPTS = 5
PAUSE = 0.2


class Carrier(Protocol):
    """A place with files, which others read and write too."""

    def names(self) -> list[str]:
        """Return the names of the questions and answers that are there."""

    def read(self, name: str) -> bytes:
        """Return the bytes of a file."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file, of which others see nothing or all."""

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""


def is_ours(name: str) -> bool:
    """Whether a file is a question or an answer by its name."""
    return name.endswith((".flq", ".fla")) and not name.startswith(".")


def open_carrier(place: str) -> Carrier:
    """Return the carrier at a folder or a URL."""
    if "://" not in place:
        return Folder(Path(place))
    if find_spec("fsspec") is None:
        raise FedLassoError("URLs need fsspec; install with: pip install 'fedlasso[courier]'")
    remote = Remote(place)
    try:
        remote.connect()
    except Exception as error:
        raise FedLassoError(f"cannot use {place}: {_describe(error)}") from None
    return remote


@dataclass(frozen=True)
class Folder:
    """A folder on this machine, of a file server, or of a program that synchronises it."""

    path: Path

    def names(self) -> list[str]:
        if not self.path.is_dir():
            raise Interrupted(f"the folder {self.path} cannot be reached; connect it")
        return sorted(path.name for path in self.path.iterdir() if is_ours(path.name))

    def read(self, name: str) -> bytes:
        return read_limited(self.path / name)

    def write(self, name: str, data: bytes) -> None:
        def write() -> None:
            try:
                write_atomically(self.path / name, data)
            except CannotWrite as error:
                raise OSError(error.what) from None

        _repeat(write, str(self.path))

    def remove(self, name: str) -> None:
        _repeat(lambda: (self.path / name).unlink(missing_ok=True), str(self.path))


@dataclass(eq=False)
class Remote:
    """A folder at a URL, such as ``s3://bucket/trial`` or ``sftp://host/trial``.

    Object stores have no folders: one without files is not there. File systems raise errors of
    their libraries, so every error counts as an interruption, after which it connects again.
    """

    place: str
    _opened: tuple[Any, str] | None = field(default=None, init=False)

    def connect(self, again: bool = False) -> tuple[Any, str]:
        """Return the file system and the path there; `again` for a new connection."""
        from fsspec.core import url_to_fs

        if self._opened is None or again:
            system, path = url_to_fs(self.place, skip_instance_cache=again)
            self._opened = (system, str(path).rstrip("/"))
        return self._opened

    def _repeat(self, do: Callable[[Any, str], T]) -> T:
        """Repeat an operation on the file system and the path."""
        failures = 0

        def attempt() -> T:
            nonlocal failures
            try:
                return do(*self.connect(again=failures > 0))
            except Exception:
                failures += 1
                raise

        return _repeat(attempt, self.place)

    def names(self) -> list[str]:
        def names(system: Any, path: str) -> list[str]:
            # Listings are cached, but others write here.
            system.invalidate_cache()
            try:
                found = system.ls(path, detail=False)
            except FileNotFoundError:
                return []
            ends = (str(each).rstrip("/").rsplit("/", 1)[-1] for each in found)
            return sorted(name for name in ends if is_ours(name))

        return self._repeat(names)

    def read(self, name: str) -> bytes:
        def read(system: Any, path: str) -> bytes:
            file = f"{path}/{name}"
            # An object store has no range of an empty file.
            if system.size(file) == 0:
                return b""
            # The position of these arguments differs between file systems.
            return bytes(system.cat_file(file, start=None, end=LARGEST + 1))

        return self._repeat(read)

    def write(self, name: str, data: bytes) -> None:
        def write(system: Any, path: str) -> None:
            part = f"{path}/.{name}.part"
            system.makedirs(path, exist_ok=True)
            system.pipe_file(part, data)
            system.mv(part, f"{path}/{name}")

        self._repeat(write)

    def remove(self, name: str) -> None:
        def remove(system: Any, path: str) -> None:
            if system.exists(f"{path}/{name}"):
                system.rm_file(f"{path}/{name}")

        self._repeat(remove)


def _repeat(do: Callable[[], T], place: str) -> T:
    """Repeat what a weak connection interrupts; after the last attempt one line says so."""
    pause = PAUSE
    for attempt in range(ATTEMPTS):
        try:
            return do()
        except Exception as error:
            if attempt == ATTEMPTS - 1:
                raise Interrupted(f"{place}: {_describe(error)}; tried {ATTEMPTS} times") from None
        time.sleep(pause)
        pause *= 2
    raise AssertionError


def _describe(error: Exception) -> str:
    """Return an error as one line."""
    strerror = error.strerror if isinstance(error, OSError) else None
    return " ".join(str(strerror or error).split()) or type(error).__name__
