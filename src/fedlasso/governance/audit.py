"""The audit: a record of what left a site, written before it leaves.

An audit has one JSON line per answer, refused or sent. Each line has the hash of the line before,
which reveals a changed, removed or inserted line. The anchor, a separate file, has the number and
the hash of the last line, which reveals an audit that was cut and chained anew.
"""

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from fedlasso.atomic_files import CannotWrite, write_atomically, writing
from fedlasso.errors import FedLassoError

GENESIS = "0" * 64
# The end of an empty audit, as `_last` returns it.
_EMPTY = (0, GENESIS, GENESIS, 0)
# The byte that is locked where locks are about bytes; Windows counts them in 32 bits.
_LOCKED_BYTE = (1 << 31) - 2


@dataclass(frozen=True)
class Entry:
    """One answer of a site.

    Attributes
    ----------
    fit, question, split, view : identity of the fit, name, split and view of the question
    verdict, why : ``sent`` or ``refused``, and the reason for a refusal
    shapes, numbers : shapes of the arrays that left, and how many numbers
    payload, size : bytes of the numbers, and of the whole message
    sha256, asked, clear : hashes of the reply, the question, and the unmasked reply if it differs
    about, parameters : columns and target of the fit, and fields of the question, as text
    data, spent : fingerprint of the data file, and what was newly used of its budgets
    sites, opening : the sites of a fit with the fingerprints of their keys, and a hash of all that
        the fit was opened with
    rows, columns : when a fit opens, the records of the data file and the columns of the fit
    total_rows, encoded : when a fit opens, the rows and columns that numbers are counted against:
        of all sites whose sums are masked together, and as the model has them
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
    view: str = ""
    about: str = ""
    parameters: str = ""
    data: str = ""
    spent: dict[str, float] = field(default_factory=dict)
    clear: str = ""
    sites: dict[str, str] = field(default_factory=dict)
    opening: str = ""
    rows: int = 0
    columns: list[str] = field(default_factory=list)
    total_rows: int = 0
    encoded: int = 0
    number: int = 0
    time: str = ""
    before: str = GENESIS


@dataclass(frozen=True)
class Audit:
    """A site's audit file, on disk before `write` returns; its `anchor` is by default beside it."""

    path: Path
    anchor: Path | None = None

    def write(self, entry: Entry, payload: bytes | None = None) -> Entry:
        """Append an entry, and keep the whole reply if it is given."""
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with writing(self.path), self.path.open("a+b", buffering=0) as file:
            lock_file(file)
            self.path.chmod(0o600)
            number, before, earlier, end = _last(file.fileno())
            self._check_anchor(number, before, earlier)
            # No reply followed a line that a kill cut short, so it is removed.
            file.truncate(end)
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            entry = replace(entry, number=number + 1, time=now, before=before)
            line = json.dumps(vars(entry), separators=(",", ":")).encode() + b"\n"
            last = {"number": entry.number, "head": hashlib.sha256(line).hexdigest()}
            try:
                # A disk that fills up accepts a part without an error.
                if file.write(line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
                write_atomically(self._anchor, json.dumps(last).encode(), private=True)
            except (OSError, CannotWrite):
                # Nothing leaves, so the audit ends at its anchor as before.
                file.truncate(end)
                raise
        if payload is not None:
            folder = self.path.parent / "payloads"
            write_atomically(
                folder / f"{entry.number:06d}-{entry.question}.bin", payload, private=True
            )
        return entry

    def entries(self, fit: str | None = None) -> Iterator[Entry]:
        """Yield entries in order and verify the chain; a break is an error that names the line."""
        if not self.path.exists():
            return
        before = GENESIS
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

    def check_anchor(self) -> None:
        """Reject an audit that does not end where its anchor does."""
        self._check_anchor(*self._end[:3])

    @property
    def head(self) -> str:
        """Hash of the last line; whoever noted it can detect lines that were removed since."""
        return self._end[1]

    @property
    def _end(self) -> tuple[int, str, str, int]:
        if not self.path.exists():
            return _EMPTY
        with self.path.open("rb") as file:
            return _last(file.fileno())

    @property
    def _anchor(self) -> Path:
        return self.anchor or self.path.with_suffix(".anchor")

    def _check_anchor(self, number: int, head: str, before: str) -> None:
        if not self._anchor.exists():
            # Nothing was anchored yet; a kill may come between a line and its anchor.
            if number <= 1:
                return
            raise FedLassoError(f"{self._anchor.name}, the audit's anchor, is missing; restore it")
        try:
            anchored = json.loads(self._anchor.read_bytes())
            last = (int(anchored["number"]), str(anchored["head"]))
        except (ValueError, KeyError, TypeError):
            raise FedLassoError(f"{self._anchor.name} is damaged; restore it") from None
        if last not in ((number, head), (number - 1, before)):
            found = f"the audit has {number} lines and does not end at its anchor, line {last[0]}"
            raise FedLassoError(f"{found}: lines were removed or rewritten; restore the audit")


def lock_file(file: BinaryIO) -> None:
    """Wait until no other process writes this file."""
    try:
        import fcntl
    except ModuleNotFoundError:
        _lock_on_windows(file)
        return
    fcntl.flock(file, fcntl.LOCK_EX)


def _lock_on_windows(file: BinaryIO) -> None:
    try:
        import msvcrt
    except ModuleNotFoundError:
        raise FedLassoError("an audit needs file locks, which this system does not have") from None
    windows: Any = msvcrt
    # A byte beyond all contents, so that others can read these.
    os.lseek(file.fileno(), _LOCKED_BYTE, os.SEEK_SET)
    while True:
        try:
            windows.locking(file.fileno(), windows.LK_LOCK, 1)
            break
        except OSError as error:
            # Windows gives up after ten seconds.
            if error.errno not in (errno.EACCES, errno.EDEADLK):
                raise
    os.lseek(file.fileno(), 0, os.SEEK_SET)


def _parse(line: bytes) -> Entry:

    return msgspec.convert(json.loads(line), Entry)


def _last(descriptor: int) -> tuple[int, str, str, int]:
    """Return number, hash, predecessor's hash and end of the last whole line."""
    line, end = _last_line(descriptor)
    if not line:
        return _EMPTY
    try:
        last = _parse(line)
    except ValueError:
        raise FedLassoError(
            "the audit file is damaged; move it away and inform all sites"
        ) from None
    return last.number, hashlib.sha256(line).hexdigest(), last.before, end


def _read(descriptor: int, count: int) -> bytes:
    data = b""
    while len(data) < count and (more := os.read(descriptor, count - len(data))):
        data += more
    return data


def _last_line(descriptor: int) -> tuple[bytes, int]:
    """Return the last whole line and the offset of its end."""
    size = os.fstat(descriptor).st_size
    length = 1 << 14
    while True:
        start = max(0, size - length)
        os.lseek(descriptor, start, os.SEEK_SET)
        tail = _read(descriptor, size - start)
        end = tail.rfind(b"\n") + 1
        begin = tail.rfind(b"\n", 0, max(end - 1, 0)) + 1
        if end == 0 and start == 0:
            return b"", 0
        if end and (begin > 0 or start == 0):
            return tail[begin:end], start + end
        length *= 4
