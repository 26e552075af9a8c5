"""Where files are left for each other: a folder, or a place that fsspec can reach by a URL."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
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
    try:
        from fsspec.core import url_to_fs
    except ModuleNotFoundError:
        raise FedLassoError(
            "URLs need fsspec; install with: pip install 'fedlasso[courier]'"
        ) from None
    try:
        system, path = url_to_fs(place)
    except (ValueError, ImportError, OSError) as error:
        raise FedLassoError(f"cannot use {place}: {error}") from None
    return Remote(system, path.rstrip("/"), place)


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


@dataclass(frozen=True)
class Remote:
    """A folder at a URL, such as ``s3://bucket/trial`` or ``sftp://host/trial``."""

    system: Any
    path: str
    place: str

    def names(self) -> list[str]:
        # Listings are cached, but others write here.
        self.system.invalidate_cache()
        _repeat(lambda: self.system.makedirs(self.path, exist_ok=True), self.place)
        found = _repeat(lambda: self.system.ls(self.path, detail=False), self.place)
        names = (str(each).rstrip("/").rsplit("/", 1)[-1] for each in found)
        return sorted(name for name in names if is_ours(name))

    def read(self, name: str) -> bytes:
        path = f"{self.path}/{name}"
        return bytes(_repeat(lambda: self.system.cat_file(path, 0, LARGEST + 1), self.place))

    def write(self, name: str, data: bytes) -> None:
        path = f"{self.path}/{name}"
        part = f"{self.path}/.{name}.part"

        def write() -> None:
            self.system.pipe_file(part, data)
            self.system.mv(part, path)

        _repeat(write, self.place)

    def remove(self, name: str) -> None:
        path = f"{self.path}/{name}"

        def remove() -> None:
            if self.system.exists(path):
                self.system.rm_file(path)

        _repeat(remove, self.place)


def _repeat(do: Callable[[], T], place: str) -> T:
    """Repeat what a weak connection interrupts; after the last attempt one line says so."""
    pause = PAUSE
    for attempt in range(ATTEMPTS):
        try:
            return do()
        except OSError as error:
            if attempt == ATTEMPTS - 1:
                why = error.strerror or str(error) or type(error).__name__
                raise Interrupted(f"{place}: {why}; tried {ATTEMPTS} times") from None
        time.sleep(pause)
        pause *= 2
    raise AssertionError
