"""The audit: what has left a site, written down before it leaves; and consent to it by hand.

An audit holds one JSON line per answer, refused or sent. Each line carries the hash of the line
before it, so that a changed, removed or inserted line shows. At a desk a reply waits in a folder
until somebody at the site says yes or no.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Reply
from fedlasso.federation.messages import layout
from fedlasso.files import write_atomically

FIRST = "0" * 64
# Seconds between two looks into a desk's folder, and characters of values that are shown.
POLL = 0.2
SHOWN = 2000


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


class Desk:
    """A folder where replies wait: the process that answers puts them there, the operator decides.

    After `patience` seconds silence counts as no.
    """

    def __init__(self, folder: Path, patience: float = 600.0) -> None:
        self._folder = folder
        self._patience = patience

    def approve(self, entry: Entry, reply: Reply) -> bool:
        """Wait for the operator's word on one reply."""
        waiting = self._folder / f"{entry.fit[:8]}-{entry.asked[:12]}.txt"
        word = waiting.with_suffix(".word")
        values = {name: getattr(reply, name) for name, _ in layout(type(reply))}
        told = json.dumps(values, default=np.ndarray.tolist)
        cut = told if len(told) < SHOWN else told[:SHOWN] + " ..."
        text = (
            f"Fit {entry.fit[:8]} asks {entry.question}: {entry.numbers} numbers, "
            f"{entry.payload} bytes\n{cut}\nAllow transfer? [y]es, [n]o, [a]ll of this fit: "
        )
        write_atomically(waiting, text.encode())
        end = time.monotonic() + self._patience
        try:
            while time.monotonic() < end:
                if (self._folder / f"{entry.fit[:8]}.word").exists():
                    return True
                if word.exists():
                    return word.read_text() == "yes"
                time.sleep(POLL)
            return False
        finally:
            waiting.unlink(missing_ok=True)
            word.unlink(missing_ok=True)

    def serve(self, ask: Callable[[str], str]) -> None:
        """Show every waiting reply once and pass the operator's word on."""
        for path in sorted(self._folder.glob("*.txt")):
            word = path.with_suffix(".word")
            if word.exists():
                continue
            try:
                text = path.read_text()
            except FileNotFoundError:
                continue
            answer = ask(text).strip().lower()[:1]
            if answer == "a":
                # This file says yes to every reply of the fit.
                write_atomically(self._folder / f"{path.stem.split('-')[0]}.word", b"yes")
            write_atomically(word, b"yes" if answer in ("y", "a") else b"no")
