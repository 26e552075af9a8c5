"""What the audit and whoever approves are told of a fit, a question and a reply, in words."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedlasso.federation import Reply, Request
from fedlasso.federation.codec import size
from fedlasso.federation.messages import layout
from fedlasso.governance.audit import Entry
from fedlasso.governance.door_messages import AboutColumns
from fedlasso.governance.policy import values_of
from fedlasso.governance.refusals import LONGEST

# Names of columns that are listed in words.
LISTED = 8
# Kinds of fields whose values are shown.
_SHOWN = ("float", "int", "flag", "text")


def list_names(names: Sequence[str]) -> str:
    """Return some names of columns in words."""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"columns {', '.join(map(repr, names[:LISTED]))}{more}"


def describe_fit(request: Request[Any]) -> str:
    """Say what a fit is about: its columns, its target, and what else it takes of every row."""
    if not isinstance(request, AboutColumns):
        return ""
    words = f"fit {request.fit}: {list_names(request.columns)}, target {request.target!r}"
    for role in ("event", "offset", "weights"):
        name = getattr(request, role)
        words += f", {role} {name!r}" if name else ""
    return "".join(c for c in words if c.isprintable())[:500]


def describe_question(entry: Entry, request: Request[Any]) -> Entry:
    """Return an entry with what the question says, in words."""
    (split,) = values_of(request, "split") or [""]
    words = []
    for name, kind in layout(type(request)):
        value = getattr(request, name)
        if "array" in kind and value is not None:
            ends = f" from {value.min():.3g} to {value.max():.3g}" if value.size else ""
            shape = " x ".join(map(str, value.shape)) or "1"
            words.append(f"{name}: {shape} numbers{ends}, {np.count_nonzero(value)} not zero")
        elif kind in _SHOWN and name not in ("on", "split") and value != "":
            words.append(f"{name}: {value if kind != 'float' else format(value, '.6g')}")
    return replace(
        entry,
        question=type(request).__name__,
        split=split[:200] if split.isprintable() else "",
        view=request.on[:64] if request.on.isprintable() else "",
        parameters="".join(c for c in "; ".join(words) if c.isprintable())[:LONGEST],
    )


def describe_reply(entry: Entry, reply: Reply, answer: bytes, clear: bytes) -> Entry:
    """Return an entry with what leaves."""
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
