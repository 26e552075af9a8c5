"""The terminal: texts of others are shown on it, and it executes control characters."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO
from unicodedata import category


def plain_text(text: str) -> str:
    """Return a text whose control characters are written out, as in ``\\x1b``."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(map(_plain_character, text))


def _plain_character(c: str) -> str:
    if c in "\n\t" or c.isprintable() or category(c) == "Zs":
        return c
    return c.encode("unicode_escape").decode()


class PlainStream:
    """A stream to which only plain text is written; a lone return, of our progress, is kept."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text with its control characters written out."""
        self._stream.write(text if text == "\r" else plain_text(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def plain_terminal() -> Iterator[None]:
    """Write only plain text to standard output and error: names of columns may be anything."""
    before = sys.stdout, sys.stderr
    streams: Any = tuple(map(PlainStream, before))
    sys.stdout, sys.stderr = streams
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def own_stream(stream: Any) -> TextIO:
    """Return the stream behind, for what draws on the terminal itself."""
    return stream._stream if isinstance(stream, PlainStream) else stream
