"""Consent by hand: a reply waits in a folder until somebody at the site says yes or no."""

import json
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fedlasso.atomic_files import write_atomically
from fedlasso.federation import Reply
from fedlasso.federation.messages import layout
from fedlasso.governance.audit import Entry
from fedlasso.governance.policy import Policy
from fedlasso.governance.refusals import Withheld

# Seconds between two looks into a desk's folder, and characters of values that are shown.
POLL = 0.2
SHOWN = 2000
# Who is asked before a reply leaves, if anybody is.
Approve = Callable[[Entry, Reply], bool] | None


def describe_transfer(entry: Entry, reply: Reply) -> str:
    """Say who asks what, and show what would leave in clear."""
    values = {name: getattr(reply, name) for name, _ in layout(type(reply))}
    told = json.dumps(values, default=np.ndarray.tolist)
    cut = told if len(told) < SHOWN else told[:SHOWN] + " ..."
    lines = [
        f"The coordinator asks {entry.question} for fit {entry.fit}",
        *([f"The fit: {entry.about}"] if entry.about else []),
        *([f"The question: {entry.parameters}"] if entry.parameters else []),
        *([f"Split of the rows: {entry.split}"] if entry.split else []),
        f"Would leave, in clear: {entry.numbers} numbers, {entry.payload} bytes",
        cut,
        "Allow transfer? [y]es, [n]o, [a]ll further replies of this fit, whatever they are, until "
        "this site stops: ",
    ]
    return "\n".join(lines)


def ask_leave(policy: Policy, approve: Approve, entry: Entry, reply: Reply, what: str) -> None:
    """Withhold a reply in a dry run, or unless whoever approves agrees."""
    if policy.dry_run:
        raise Withheld(f"dry run: {what} would have left")
    if policy.approval and (approve is None or not approve(entry, reply)):
        raise Withheld("the transfer was not approved here")


class Desk:
    """A folder where replies wait: the process that answers puts them there, the operator decides.

    After `patience` seconds silence counts as no. A yes to all of a fit is kept by the desk that
    serves, for as long as it runs, and never on disk.
    """

    def __init__(self, folder: Path, patience: float = 600.0) -> None:
        self._folder = folder
        self._patience = patience
        self._agreed: set[str] = set()

    def approve(self, entry: Entry, reply: Reply) -> bool:
        """Wait for the operator's word on one reply."""
        # A name that nobody can foresee: no word can be there before the question is.
        waiting = self._folder / f"{secrets.token_hex(16)}.txt"
        word = waiting.with_suffix(".word")
        asked = {"fit": entry.fit, "text": describe_transfer(entry, reply)}
        write_atomically(waiting, json.dumps(asked).encode())
        end = time.monotonic() + self._patience
        try:
            while time.monotonic() < end:
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
                asked = json.loads(path.read_bytes())
            except FileNotFoundError:
                continue
            agreed = asked["fit"] in self._agreed
            answer = "y" if agreed else ask(asked["text"]).strip().lower()[:1]
            if answer == "a":
                self._agreed.add(asked["fit"])
            write_atomically(word, b"yes" if answer in ("y", "a") else b"no")
