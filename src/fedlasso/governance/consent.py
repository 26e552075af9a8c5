"""Manual approval: a reply waits in a folder until somebody at the site says yes or no."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from fedlasso.federation import Reply
from fedlasso.federation.messages import layout
from fedlasso.files import write_atomically
from fedlasso.governance.audit import Entry

POLL = 0.2


class Desk:
    """A folder where replies wait: the engine's job puts them there, the operator answers.

    Parameters
    ----------
    folder : where they wait
    patience : seconds until silence counts as no
    """

    def __init__(self, folder: Path, patience: float = 600.0) -> None:
        self._folder, self._patience = folder, patience

    def approve(self, entry: Entry, reply: Reply) -> bool:
        """Wait for the operator's word on one reply."""
        stem = f"{entry.fit[:8]}-{entry.asked[:12]}"
        waiting, word = self._folder / f"{stem}.json", self._folder / f"{stem}.word"
        whole = self._folder / f"{entry.fit[:8]}.word"
        shown = asdict(entry) | {
            "values": {
                name: getattr(reply, name).tolist() if kind == "array" else getattr(reply, name)
                for name, kind in layout(type(reply))
            }
        }
        write_atomically(waiting, json.dumps(shown).encode())
        end = time.monotonic() + self._patience
        try:
            while time.monotonic() < end:
                if whole.exists():
                    return True
                if word.exists():
                    return word.read_text() == "yes"
                time.sleep(POLL)
            return False
        finally:
            waiting.unlink(missing_ok=True)
            word.unlink(missing_ok=True)

    def waiting(self) -> Iterator[Path]:
        """Replies that wait, oldest first."""
        yield from sorted(self._folder.glob("*.json"), key=lambda path: path.name)

    def serve(self, ask: Callable[[str], str]) -> None:
        """Show every waiting reply once and pass the operator's word on."""
        for path in self.waiting():
            word = path.with_suffix(".word")
            if word.exists():
                continue
            try:
                shown = json.loads(path.read_bytes())
            except (OSError, ValueError):
                continue
            answer = ask(_text(shown)).strip().lower()[:1]
            if answer == "a":
                write_atomically(self._folder / f"{shown['fit'][:8]}.word", b"yes")
            write_atomically(word, b"yes" if answer in ("y", "a") else b"no")


def _text(shown: dict[str, object]) -> str:
    values = json.dumps(shown["values"])
    cut = values if len(values) < 2000 else values[:2000] + " ..."
    return (
        f"Fit {str(shown['fit'])[:8]} asks {shown['question']}: {shown['numbers']} numbers, "
        f"{shown['payload']} bytes\n{cut}\nAllow transfer? [y]es, [n]o, [a]ll of this fit: "
    )
