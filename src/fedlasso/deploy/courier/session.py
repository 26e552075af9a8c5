"""What a site keeps of a fit by files between two questions, readable by its owner only."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec.structs import replace

from fedlasso.atomic_files import make_private, write_atomically
from fedlasso.deploy.courier.contents import session_of
from fedlasso.deploy.courier.envelope import Head, hash_of, read_head
from fedlasso.errors import FedLassoError
from fedlasso.federation.codec import decode_question
from fedlasso.governance import Door
from fedlasso.governance.door_messages import Open
from fedlasso.governance.masks import OfferKey

_IDENTITY = re.compile(r"[0-9a-f]{32}")
SESSIONS = "courier"


class HasEnded(FedLassoError):
    """The fit of a question has ended here."""


class Kept(msgspec.Struct, frozen=True):
    """The key for masks, the data file's fingerprint, and the question that opened the fit."""

    secret: bytes = b""
    data: str = ""
    opening: bytes = b""
    opened: bytes = b""


@dataclass(frozen=True)
class PostedSession:
    """A site's answers to the questions of one fit, and the keys of its masks.

    An answer is written once; the same question has the same answer. Keys are deleted at the end.
    """

    kit: Path
    fit: str

    def __post_init__(self) -> None:
        if not _IDENTITY.fullmatch(self.fit):
            raise FedLassoError("names no fit")

    @property
    def folder(self) -> Path:
        return self.kit / SESSIONS / self.fit

    @property
    def ended(self) -> bool:
        return (self.folder / "ended").exists()

    def answers(self) -> list[Path]:
        return sorted(self.folder.glob("[0-9]" * 3 + ".fla"))

    def find(self, head: Head, question: bytes) -> bytes | None:
        """Return the answer to a question answered before; refuse one out of order."""
        if self.ended:
            raise HasEnded("belongs to a fit that has ended here; nothing more is answered")
        path = self._path(head.trip)
        if path.exists():
            answer = path.read_bytes()
            if read_head(answer).about != hash_of(question):
                other = f"question {head.trip} of this fit had other contents when it was answered"
                raise FedLassoError(f"is refused: {other}")
            return answer
        if head.trip != (due := len(self.answers()) + 1):
            raise FedLassoError(f"is question {head.trip} of this fit, but question {due} is due")
        return None

    def _path(self, trip: int) -> Path:
        return self.folder / f"{trip:03d}.fla"

    def keep(self, trip: int, answer: bytes) -> None:
        write_atomically(self._path(trip), answer, private=True)

    @property
    def _kept(self) -> Kept:
        path = self.folder / "session"
        return msgspec.msgpack.decode(path.read_bytes(), type=Kept) if path.exists() else Kept()

    @property
    def last(self) -> int:
        """The number of the last masked question that was answered."""
        answers = self.answers()
        return read_head(answers[-1].read_bytes()).last if answers else 0

    def _write(self, kept: Kept) -> None:
        make_private(self.kit / SESSIONS)
        write_atomically(self.folder / "session", msgspec.msgpack.encode(kept), private=True)

    def restore(self, door: Door) -> None:
        """Let a door go on as after the last answer."""
        kept = self._kept
        if kept.secret:
            offer = OfferKey(self.fit, session_of(self.fit))
            opening = decode_question(kept.opening) if kept.opening else None
            assert opening is None or isinstance(opening, Open)
            door.resume(offer, kept.secret, opening, self.last)

    def find_opened(self, part: bytes) -> bytes:
        """Return the reply to the question that opened the fit; empty for any other."""
        kept = self._kept
        return kept.opened if part == kept.opening else b""

    @property
    def data(self) -> str:
        """The fingerprint of the data file that answered the first question."""
        return self._kept.data

    def note_key(self, secret: bytes, data: str) -> None:
        """Keep a key and the data file's fingerprint before the key is offered."""
        self._write(Kept(secret, data))

    def note_opening(self, opening: bytes, opened: bytes) -> None:
        self._write(replace(self._kept, opening=opening, opened=opened))

    def end(self) -> None:
        """Delete keys and answers; only a mark stays, so that nothing is answered again."""
        write_atomically(self.folder / "ended", b"", private=True)
        for path in self.folder.glob("*"):
            if path.name != "ended":
                path.unlink(missing_ok=True)
        shutil.rmtree(self.kit / "memory" / self.fit, ignore_errors=True)
