"""What is inside the files of a fit, and where the parts of a question come from."""

from __future__ import annotations

import hashlib
from typing import TypeVar

import msgspec

from fedlasso.errors import FedLassoError
from fedlasso.federation.codec import is_batch, unpack

T = TypeVar("T", bound=msgspec.Struct)


class QuestionContents(msgspec.Struct, frozen=True):
    """One round trip's questions to a site.

    Attributes
    ----------
    asked : the encoded question, or a batch of them
    heads : ``site:lines:head`` of the site's audit in its last answer
    drop : columns that are not described, where the question describes all
    title, author : of the model, as the coordinator states them
    """

    asked: bytes
    heads: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    title: str = ""
    author: str = ""


class AnswerContents(msgspec.Struct, frozen=True):
    """A site's replies, and the summary of its audit after them, both encoded."""

    replies: bytes
    audit: bytes


def write(contents: QuestionContents | AnswerContents) -> bytes:
    return msgspec.msgpack.encode(contents)


def read(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (ValueError, RecursionError):
        raise FedLassoError("has contents of another version; update fedlasso") from None


def divide_batch(data: bytes) -> list[bytes]:
    """Return the messages of a batch, or the one message."""
    return unpack(data) if is_batch(data) else [data]


def session_of(fit: str) -> str:
    """Return the session for masks: a fit by files has one, which its identity determines."""
    return hashlib.sha256(f"courier session of {fit}".encode()).hexdigest()[:32]


def short(fit: str) -> str:
    """Return the beginning of a fit's identity, which names its files."""
    return fit[:8]


def question_pattern(site: str) -> str:
    """Return the pattern of the names of a site's question files.

    Programs that synchronise or download may have added to a name, as in ``... (1).flq``.
    """
    return f"{site}-{'[0-9a-f]' * 8}-*.flq"


def name_file(site: str, fit: str, trip: int, kind: str) -> str:
    """Return the name of a question's or an answer's file."""
    ending = "fla" if kind == "answer" else "flq"
    number = "end" if kind == "end" else f"{trip:02d}"
    return f"{site}-{short(fit)}-{number}.{ending}"
