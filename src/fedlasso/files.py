"""Files that are whole or absent."""

import contextlib
import os
from pathlib import Path

from fedlasso.errors import FedLassoError

_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)


class CannotWrite(FedLassoError):
    """A file could not be written; `what` says which and why, without what to do about it."""

    def __init__(self, path: Path, error: OSError) -> None:
        self.what = f"cannot write {path}: {error.strerror}"
        super().__init__(
            f"{self.what}; what is finished is kept: make room or choose another folder, then run "
            "the same command again"
        )


def find_cannot_write(error: BaseException | None) -> CannotWrite | None:
    """Return the failed write behind an error, if that is what it is about."""
    while error is not None and not isinstance(error, CannotWrite):
        error = error.__cause__
    return error


def write_atomically(path: Path, data: bytes, private: bool = False) -> None:
    """Write a file that is whole or absent, whatever happens meanwhile.

    A private one can be read by its owner only, also while it is written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    mode = 0o600 if private else 0o666
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(temporary, _NEW, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise CannotWrite(path, error) from error
