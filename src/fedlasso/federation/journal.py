"""A journal: every question's replies kept on disk, so that an interrupted fit loses nothing.

Procedures are pure functions of the replies. Resuming is running the same fit again: questions that
the journal has seen are answered from it, and the first one it has not seen goes to the sites.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from fedlasso.errors import FedLassoError
from fedlasso.federation.codec import decode, encode
from fedlasso.federation.federation import Around, Federation, asked, check_replies
from fedlasso.federation.messages import Reply, Request
from fedlasso.files import write_atomically

R = TypeVar("R", bound=Reply)
_LENGTH = struct.Struct("<Q")


class Journal(Around):
    """A federation that writes down what another one answers.

    Parameters
    ----------
    federation : the sites
    folder : where entries are kept, one file per question, each named by its number

    Every entry holds the hash of the question, the hash of the entry before, the replies, and a
    hash over all of it; it appears in one rename. An altered entry is refused, not used.
    """

    def __init__(self, federation: Federation, folder: Path) -> None:
        super().__init__(federation)
        self._folder = folder
        self._asked = 0
        self._last = ""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FedLassoError(f"cannot write to {folder}: {error.strerror}") from error

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        """Answer from the journal if it has seen the question, else from the sites."""
        question = hashlib.sha256(encode(request)).hexdigest()
        path = self._folder / f"{self._asked:06d}.entry"
        if path.exists():
            replies = [cast(R, decode(data)) for data in self._read(path, question)]
        else:
            replies = list(self.inner.replies(request))
            self._write(path, question, [encode(reply) for reply in replies])
        self._asked += 1
        return check_replies(asked(self.sites, request), replies)

    def _read(self, path: Path, question: str) -> Sequence[bytes]:
        head, replies, digest = _parse(path)
        if head["question"] != question or head["before"] != self._last:
            raise FedLassoError(
                f"{self._folder} belongs to another fit; resume with the same settings and data, "
                "or use another folder"
            )
        self._last = digest
        return replies

    def _write(self, path: Path, question: str, replies: Sequence[bytes]) -> None:
        sizes = [len(reply) for reply in replies]
        head = json.dumps({"question": question, "before": self._last, "sizes": sizes}).encode()
        body = b"".join((_LENGTH.pack(len(head)), head, *replies))
        digest = hashlib.sha256(body)
        write_atomically(path, body + digest.digest())
        self._last = digest.hexdigest()


def _parse(path: Path) -> tuple[Any, Sequence[bytes], str]:
    """Head, replies and hash of an entry."""
    data = path.read_bytes()
    body, digest = data[:-32], data[-32:]
    if hashlib.sha256(body).digest() != digest:
        raise FedLassoError(f"{path} is damaged; remove it and all later entries, then resume")
    (length,) = _LENGTH.unpack_from(body)
    head = json.loads(body[_LENGTH.size : _LENGTH.size + length])
    replies, at = [], _LENGTH.size + length
    for size in head["sizes"]:
        replies.append(body[at : at + size])
        at += size
    return head, replies, digest.hex()


def read_replies(folder: Path) -> Iterator[Sequence[bytes]]:
    """What a journal holds: every question's replies, in order."""
    for path in sorted(folder.glob("*.entry")):
        yield _parse(path)[1]
