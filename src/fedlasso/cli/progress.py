"""Progress of a fit: one line that is rewritten on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time

from fedlasso.federation import Costs, Exchange
from fedlasso.models.page import bytes_of

_EVERY = 5.0


def say(text: str) -> None:
    """Print one line for the user, beside the output."""
    print(f"fedlasso: {text}", file=sys.stderr, flush=True)


class Display:
    """Shows how many questions were asked, and how much the busiest site sent."""

    def __init__(self) -> None:
        self._asked = 0
        self._costs = Costs()
        self._start = self._shown = time.monotonic()

    def listen(self, exchange: Exchange) -> None:
        """Take note of a question, and show it if the last one was shown a while ago."""
        self._asked = exchange.number
        self._costs = exchange.costs
        terminal = sys.stderr.isatty()
        now = time.monotonic()
        if now - self._shown > (0.1 if terminal else _EVERY):
            self._shown = now
            line = self._line(exchange.request.kind)
            end = "\r" if terminal else "\n"
            print(f"fedlasso: {line}   ", end=end, file=sys.stderr, flush=True)

    def _line(self, doing: str) -> str:
        sent = [self._costs.total(None, site).upload for site in self._costs.sites]
        elapsed = time.monotonic() - self._start
        most = bytes_of(max(sent, default=0))
        return f"{doing}: {self._asked} questions, {most} sent by a site, {elapsed:.0f} s"

    def show(self, done: str) -> None:
        """Show a line that stays."""
        say(self._line(done))
