"""What a card states besides the model: title, author, date, versions and hashes of the data.

It is not in model.json, whose bytes depend on data and settings alone.
"""

import hashlib
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from fedlasso import __version__


class About(msgspec.Struct, frozen=True):
    """Title and author of a card, and the SHA-256 of each file with data, by name."""

    title: str | None = None
    author: str | None = None
    data: dict[str, str] = {}


def hash_files(files: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of every file by its name, or by its path where names repeat."""
    paths = [Path(file) for file in files]
    names = [path.name for path in paths]
    found = {}
    for path in paths:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        found[path.name if names.count(path.name) == 1 else str(path)] = digest
    return found


def date_of_today() -> str:
    """Return the date in UTC, or that of SOURCE_DATE_EPOCH, for cards of the same bytes."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    at = time.gmtime(float(seconds)) if seconds else time.gmtime()
    return time.strftime("%Y-%m-%d", at)


def versions() -> dict[str, str]:
    """Return the versions of what computed the model."""
    return {
        "fedlasso": __version__,
        "numpy": np.__version__,
        "Python": platform.python_version(),
    }
