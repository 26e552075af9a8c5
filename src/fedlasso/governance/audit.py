"""The audit: what has left a site, written down before it leaves, in a chain of hashes.

It holds one JSON line per answer, refused or sent. Each line carries the hash of the line before
it, so that a changed, removed or inserted line shows.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from fedlasso.errors import FedLassoError

FIRST = "0" * 64


@dataclass(frozen=True)
class Entry:
    """One answer of a site.

    Attributes
    ----------
    fit, question : for which fit, and what was asked
    verdict : ``sent``, or ``refused``
    why : the rule that refused
    shapes : shapes of the arrays that left
    numbers, payload, size : numbers sent, their bytes, and bytes of the whole message
    sha256, asked : hash of the reply's and of the question's bytes
    split : the split of the rows that was asked about, if one was
    """

    fit: str
    question: str
    verdict: str
    why: str = ""
    shapes: dict[str, list[int]] = field(default_factory=dict)
    numbers: int = 0
    payload: int = 0
    size: int = 0
    sha256: str = ""
    asked: str = ""
    split: str = ""
    number: int = 0
    time: str = ""
    before: str = FIRST


@dataclass(frozen=True)
class Audit:
    """A site's audit file; entries are on disk before `write` returns."""

    path: Path

    def write(self, entry: Entry, payload: bytes | None = None) -> Entry:
        """Append an entry, and keep the whole reply if it is given."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            _lock(file)
            number, before, end = _last(file.fileno())
            # A line torn by a kill was never followed by a reply: it is taken back.
            file.truncate(end)
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            entry = replace(entry, number=number + 1, time=now, before=before)
            file.write(json.dumps(vars(entry), separators=(",", ":")).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if payload is not None:
            folder = self.path.parent / "payloads"
            folder.mkdir(exist_ok=True)
            (folder / f"{entry.number:06d}-{entry.question}.bin").write_bytes(payload)
        return entry

    def entries(self, fit: str | None = None) -> Iterator[Entry]:
        """Entries in order, the chain verified; a break is an error that says where."""
        if not self.path.exists():
            return
        before = FIRST
        for at, line in enumerate(self.path.read_bytes().splitlines(keepends=True), start=1):
            if not line.endswith(b"\n"):
                return
            try:
                entry = _parse(line)
            except ValueError:
                raise FedLassoError(f"{self.path}: line {at} is not an audit entry") from None
            if entry.before != before or entry.number != at:
                raise FedLassoError(
                    f"{self.path}: the chain breaks at line {at}; it or the line before was changed"
                )
            before = hashlib.sha256(line).hexdigest()
            if fit in (None, entry.fit):
                yield entry

    @property
    def head(self) -> str:
        """Hash of the last line: whoever noted it can tell whether lines went missing since."""
        if not self.path.exists():
            return FIRST
        with self.path.open("rb") as file:
            return _last(file.fileno())[1]


def _lock(file: BinaryIO) -> None:
    """Wait until no other process writes this file."""
    try:
        import fcntl
    except ModuleNotFoundError:
        raise FedLassoError("an audit takes file locks, which this system does not have") from None
    fcntl.flock(file, fcntl.LOCK_EX)


def _parse(line: bytes) -> Entry:
    """Return the entry on a line; anything else is a `ValueError`."""
    return msgspec.convert(json.loads(line), Entry)


def _last(descriptor: int) -> tuple[int, str, int]:
    """Number and hash of the last whole line, and where it ends."""
    size = os.fstat(descriptor).st_size
    length = 1 << 14
    while True:
        start = max(0, size - length)
        tail = os.pread(descriptor, size - start, start)
        end = tail.rfind(b"\n") + 1
        begin = tail.rfind(b"\n", 0, max(end - 1, 0)) + 1
        if end == 0 and start == 0:
            return 0, FIRST, 0
        if end and (begin > 0 or start == 0):
            line = tail[begin:end]
            try:
                number = _parse(line).number
            except ValueError:
                raise FedLassoError(
                    "the audit file is damaged; move it away and tell the others"
                ) from None
            return number, hashlib.sha256(line).hexdigest(), start + end
        length *= 4
