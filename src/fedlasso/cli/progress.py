"""Progress of a fit: one line that is rewritten on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TypeVar

from fedlasso.federation import Around, Federation, Reply, Request
from fedlasso.federation.codec import size
from fedlasso.models.page import bytes_of

R = TypeVar("R", bound=Reply)
_EVERY = 5.0


def say(text: str) -> None:
    """Print one line for the user, beside the output."""
    print(f"fedlasso: {text}", file=sys.stderr, flush=True)


class Watched(Around):
    """A federation that shows how many questions were asked, and how much the busiest site sent."""

    def __init__(self, inner: Federation) -> None:
        super().__init__(inner)
        self._sent: dict[str, int] = {}
        self._asked = 0
        self._start = self._shown = time.monotonic()

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        """Ask, and show."""
        replies = self.inner.replies(request)
        self._asked += 1
        for reply in replies:
            self._sent[reply.site] = self._sent.get(reply.site, 0) + size(reply).payload
        terminal = sys.stderr.isatty()
        now = time.monotonic()
        if now - self._shown > (0.1 if terminal else _EVERY):
            self._shown = now
            end = "\r" if terminal else "\n"
            print(f"fedlasso: {self._line(request.kind)}   ", end=end, file=sys.stderr, flush=True)
        return replies

    def _line(self, doing: str) -> str:
        sent = bytes_of(max(self._sent.values(), default=0))
        elapsed = time.monotonic() - self._start
        return f"{doing}: {self._asked} questions, {sent} sent by a site, {elapsed:.0f} s"

    def show(self, done: str) -> None:
        """Show a line that stays."""
        say(self._line(done))
