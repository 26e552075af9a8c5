"""Progress of a fit: one line that is rewritten on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TypeVar

from fedlasso.federation import Federation, Reply, Request
from fedlasso.federation.codec import size
from fedlasso.models.page import bytes_of

R = TypeVar("R", bound=Reply)
_EVERY = 5.0


def say(text: str) -> None:
    """One line for the user, beside the output."""
    print(f"fedlasso: {text}", file=sys.stderr, flush=True)


class Watched:
    """A federation that shows how many questions were asked, and how much the busiest site sent."""

    def __init__(self, federation: Federation) -> None:
        self._federation = federation
        self.sites, self.columns = federation.sites, federation.columns
        self._sent: dict[str, int] = {}
        self._asked = 0
        self._start = self._shown = time.monotonic()

    def ask(self, request: Request[R]) -> tuple[R, ...]:
        """Ask, and show."""
        replies = self._federation.ask(request)
        self._asked += 1
        for reply in replies:
            self._sent[reply.site] = self._sent.get(reply.site, 0) + size(reply).payload
        terminal, now = sys.stderr.isatty(), time.monotonic()
        if now - self._shown > (0.1 if terminal else _EVERY):
            self._shown = now
            end = "\r" if terminal else "\n"
            print(f"fedlasso: {self._told(request.kind)}   ", end=end, file=sys.stderr, flush=True)
        return replies

    def _told(self, doing: str) -> str:
        sent = bytes_of(max(self._sent.values(), default=0))
        elapsed = time.monotonic() - self._start
        return f"{doing}: {self._asked} questions, {sent} sent by a site, {elapsed:.0f} s"

    def end(self, doing: str) -> None:
        """Show a line that stays."""
        say(self._told(doing))
