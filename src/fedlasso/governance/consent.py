"""Consent by hand: a reply waits in a folder until somebody at the site says yes or no."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fedlasso.federation import Reply
from fedlasso.federation.messages import layout
from fedlasso.files import write_atomically
from fedlasso.governance.audit import Entry

# Seconds between two looks into the folder, and characters of values that are shown.
POLL = 0.2
SHOWN = 2000


@dataclass(frozen=True)
class Pending:
    """A reply that waits: what the audit would say of it, and its values."""

    entry: Entry
    values: dict[str, Any]

    def __str__(self) -> str:
        values = json.dumps(self.values)
        cut = values if len(values) < SHOWN else values[:SHOWN] + " ..."
        return (
            f"Fit {self.entry.fit[:8]} asks {self.entry.question}: {self.entry.numbers} numbers, "
            f"{self.entry.payload} bytes\n{cut}\nAllow transfer? [y]es, [n]o, [a]ll of this fit: "
        )


class Desk:
    """A folder where replies wait: the process that answers puts them there, the operator decides.

    Parameters
    ----------
    folder : where they wait
    patience : seconds until silence counts as no
    """

    def __init__(self, folder: Path, patience: float = 600.0) -> None:
        self._folder = folder
        self._patience = patience

    def approve(self, entry: Entry, reply: Reply) -> bool:
        """Wait for the operator's word on one reply."""
        stem = f"{entry.fit[:8]}-{entry.asked[:12]}"
        waiting = self._folder / f"{stem}.json"
        word = self._folder / f"{stem}.word"
        values = {name: getattr(reply, name) for name, _ in layout(type(reply))}
        listed = {n: v.tolist() if isinstance(v, np.ndarray) else v for n, v in values.items()}
        write_atomically(waiting, json.dumps(asdict(Pending(entry, listed))).encode())
        end = time.monotonic() + self._patience
        try:
            while time.monotonic() < end:
                if self._all_of(entry).exists():
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
        for path in sorted(self._folder.glob("*.json")):
            word = path.with_suffix(".word")
            if word.exists():
                continue
            try:
                pending = msgspec.convert(json.loads(path.read_bytes()), Pending)
            except (OSError, ValueError):
                continue
            answer = ask(str(pending)).strip().lower()[:1]
            if answer == "a":
                write_atomically(self._all_of(pending.entry), b"yes")
            write_atomically(word, b"yes" if answer in ("y", "a") else b"no")

    def _all_of(self, entry: Entry) -> Path:
        """Return the file that says yes to every reply of a fit."""
        return self._folder / f"{entry.fit[:8]}.word"
