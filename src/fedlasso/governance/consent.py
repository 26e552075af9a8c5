"""Descriptions of what would leave a site, and approval by an operator before it does."""

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedlasso.atomic_files import write_atomically
from fedlasso.federation import Reply, Request
from fedlasso.federation.checking import LONGEST_REFUSAL
from fedlasso.federation.codec import size
from fedlasso.federation.messages import layout
from fedlasso.governance.audit import Entry
from fedlasso.governance.door_messages import AboutColumns, Open
from fedlasso.governance.policy import Policy, values_of
from fedlasso.governance.refusals import Withheld

# Seconds between two looks into a desk's folder, and characters of values that are shown in all,
# and of one reply of many.
POLL = 0.2
MAX_SHOWN = 2000
FEWEST_SHOWN = 200
# Names of columns that are listed.
LISTED = 8
# Kinds of fields whose values are shown.
_SHOWN = ("float", "int", "flag", "text")
# What would leave: the entry for the audit, and the unmasked reply.
Transfer = tuple[Entry, Reply]
# Called before the replies to a question or a batch of questions leave, if given.
Approve = Callable[[Sequence[Transfer]], bool] | None


def list_names(names: Sequence[str]) -> str:
    """Return the names of some columns as text."""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"columns {', '.join(map(repr, names[:LISTED]))}{more}"


def describe_fit(request: Request[Any]) -> str:
    """Return the columns, the target and the other roles of a fit as text."""
    if not isinstance(request, AboutColumns):
        return ""
    text = f"fit {request.fit}: {list_names(request.columns)}, target {request.target!r}"
    for role in ("event", "offset", "weights", "cluster"):
        name = getattr(request, role)
        text += f", {role} {name!r}" if name else ""
    text += f", family {request.family!r}"
    if isinstance(request, Open):
        text += f", sites {', '.join(sorted(request.sites))}"
    return "".join(c for c in text if c.isprintable())[:500]


def describe_question(entry: Entry, request: Request[Any]) -> Entry:
    """Return an entry with the question's name, split, view and other fields."""
    (split,) = values_of(request, "split") or [""]
    fields = []
    for name, kind in layout(type(request)):
        value = getattr(request, name)
        if "array" in kind and value is not None:
            ends = f" from {value.min():.3g} to {value.max():.3g}" if value.size else ""
            shape = " x ".join(map(str, value.shape)) or "1"
            fields.append(f"{name}: {shape} numbers{ends}, {np.count_nonzero(value)} not zero")
        elif kind in _SHOWN and name not in ("on", "split") and value != "":
            fields.append(f"{name}: {value if kind != 'float' else format(value, '.6g')}")
    return replace(
        entry,
        question=type(request).__name__,
        split=split[:200] if split.isprintable() else "",
        view=request.on[:64] if request.on.isprintable() else "",
        parameters="".join(c for c in "; ".join(fields) if c.isprintable())[:LONGEST_REFUSAL],
    )


def describe_reply(entry: Entry, reply: Reply, answer: bytes, clear: bytes) -> Entry:
    """Return an entry with shapes, sizes and hashes of what leaves."""
    names = [name for name, kind in layout(type(reply)) if "array" in kind or kind == "words"]
    arrays = {name: array for name in names if (array := getattr(reply, name)) is not None}
    payload, _ = size(reply)
    return replace(
        entry,
        verdict="sent",
        shapes={name: list(array.shape) for name, array in arrays.items()},
        numbers=payload // 8,
        payload=payload,
        size=len(answer),
        sha256=hashlib.sha256(answer).hexdigest(),
        clear=hashlib.sha256(clear).hexdigest() if clear != answer else "",
    )


def describe_transfers(transfers: Sequence[Transfer]) -> str:
    """Return the prompt for approval: the questions, and the unmasked values that would leave."""
    first, _ = transfers[0]
    many = len(transfers) > 1
    name = f"{len(transfers)} questions in one batch" if many else first.question
    lines = [f"The coordinator asks {name} for fit {first.fit}"]
    if first.about:
        lines.append(f"The fit: {first.about}")
    if many:
        numbers = sum(entry.numbers for entry, _ in transfers)
        payload = sum(entry.payload for entry, _ in transfers)
        lines.append(f"Would leave in all, in clear: {numbers} numbers, {payload} bytes")
    for k, (entry, reply) in enumerate(transfers, start=1):
        if many:
            lines.append(f"{k}. {entry.question}")
        lines += _describe_one(entry, reply, max(MAX_SHOWN // len(transfers), FEWEST_SHOWN))
    lines.append(
        "Allow transfer? [y]es, [n]o, [a]ll further replies of this fit, whatever they are, until "
        "this site stops: "
    )
    return "\n".join(lines)


def _describe_one(entry: Entry, reply: Reply, most: int) -> list[str]:
    values = {name: getattr(reply, name) for name, _ in layout(type(reply))}
    shown = json.dumps(values, default=np.ndarray.tolist)
    return [
        *([f"The question: {entry.parameters}"] if entry.parameters else []),
        *([f"Split of the rows: {entry.split}"] if entry.split else []),
        f"Would leave, in clear: {entry.numbers} numbers, {entry.payload} bytes",
        shown if len(shown) < most else shown[:most] + " ...",
    ]


def require_approval(
    policy: Policy, approve: Approve, entry: Entry, reply: Reply, what: str
) -> None:
    """Withhold a reply in a dry run, or without the operator's approval if the policy needs it."""
    if policy.dry_run:
        raise Withheld(f"dry run: {what} would have left")
    if policy.approval and (approve is None or not approve([(entry, reply)])):
        raise Withheld("the transfer was not approved here")


def approval_scope(transfers: Sequence[Transfer]) -> str:
    """Return what a yes to a whole fit is about: its identity, and all that it was opened with.

    The coordinator chooses identities, so the columns, target, family, options and sites count too.
    """
    first, _ = transfers[0]
    return f"{first.fit} {first.opening} {first.data}"


class Desk:
    """A folder where replies wait for the operator's decision.

    After `patience` seconds silence counts as no. A yes to all replies of a fit holds while the
    desk that serves is running, and is never on disk.
    """

    def __init__(self, folder: Path, patience: float = 600.0) -> None:
        self._folder = folder
        self._patience = patience
        self._approved: set[str] = set()

    def approve(self, transfers: Sequence[Transfer]) -> bool:
        """Wait for the operator's decision on the replies to one question or batch."""
        # An unpredictable name: no decision can be there before the question is.
        waiting = self._folder / f"{secrets.token_hex(16)}.txt"
        decision = waiting.with_suffix(".word")
        prompt = {"about": approval_scope(transfers), "text": describe_transfers(transfers)}
        write_atomically(waiting, json.dumps(prompt).encode(), private=True)
        end = time.monotonic() + self._patience
        try:
            while time.monotonic() < end:
                if decision.exists():
                    return decision.read_text() == "yes"
                time.sleep(POLL)
            return False
        finally:
            waiting.unlink(missing_ok=True)
            decision.unlink(missing_ok=True)

    def serve(self, ask: Callable[[str], str]) -> None:
        """Show every waiting reply once and pass on the operator's decision."""
        for path in sorted(self._folder.glob("*.txt")):
            decision = path.with_suffix(".word")
            if decision.exists():
                continue
            try:
                prompt = json.loads(path.read_bytes())
            except FileNotFoundError:
                continue
            approved = prompt["about"] in self._approved
            answer = "y" if approved else ask(prompt["text"]).strip().lower()[:1]
            if answer == "a":
                self._approved.add(prompt["about"])
            write_atomically(decision, b"yes" if answer in ("y", "a") else b"no", private=True)
