"""Writing files atomically: a file is complete or absent."""

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from fedlasso.errors import FedLassoError


class CannotWrite(FedLassoError):
    """A file could not be written; `what` names it and the `cause`, without the remedy."""

    def __init__(self, path: Path, error: OSError) -> None:
        self.cause = error.strerror
        self.what = f"cannot write {path}: {self.cause}"
        super().__init__(
            f"{self.what}; what is finished is kept: make room or choose another folder, then run "
            "the same command again"
        )

    @property
    def unquoted(self) -> str:
        """The message without paths of this machine."""
        return "a file cannot be written there; make room on its disk, then ask again"


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Let errors of the disk while a file is written be `CannotWrite`."""
    try:
        yield
    except OSError as error:
        raise CannotWrite(path, error) from error


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can read; an existing folder is not changed."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


# Symbolic links are not followed: another user may have put one there.
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | _NO_LINKS, 0o600)


def _open_new(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_EXCL | _NO_LINKS, 0o666)


def _open_new_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_EXCL | _NO_LINKS, 0o600)


def write_atomically(
    path: Path, data: bytes, *, private: bool = False, durable: bool = True
) -> None:
    """Write a file atomically; if `private`, only the owner can read it and a new folder.

    Unless `durable`, a power failure may leave the file empty; the process may end at any time.
    """
    # A name that nobody can foresee.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    opener = _open_new_private if private else _open_new
    try:
        if private:
            make_private(path.parent)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb", opener=opener) as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise CannotWrite(path, error) from error


def append_privately(path: Path, text: str) -> None:
    """Append a whole text, or nothing, to a file that only its owner can read."""
    try:
        with open(path, "ab", buffering=0, opener=_open_private) as file:
            end = file.tell()
            try:
                data = text.encode()
                # A disk that fills up accepts a part without an error.
                if file.write(data) < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
            except OSError:
                file.truncate(end)
                raise
    except OSError as error:
        raise CannotWrite(path, error) from error
