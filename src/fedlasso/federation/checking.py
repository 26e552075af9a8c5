"""Checks on a reply from a remote site before it is journalled or used.

A site may be faulty or malicious. A reply that cannot be true is rejected here, with the site's
name and before the journal has it, so the fit can resume once the site is repaired. A plausible lie
cannot be detected. Sites in the same process are not checked.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unicodedata import category

import numpy as np

from fedlasso.errors import FedLassoError, Stopped
from fedlasso.federation import fixed_point
from fedlasso.federation.codec import decode, encode, is_batch, unpack
from fedlasso.federation.fixed_point import Words
from fedlasso.federation.magnitudes import Magnitudes
from fedlasso.federation.messages import Message, R, Reply, Request, add_up, layout, reply_to, roles

# Sites refuse larger records: the sum of their squares over many rows would overflow a float64.
LARGEST = 1e150
# No site keeps more rows than this in memory.
MAX_ROWS = 10**9
# Maximum bytes of a reply's head: with names and numbers only, and with texts.
HEAD = 1 << 16
HEAD_OF_TEXTS = 1 << 24
# Maximum characters of a refusal, which may quote the question.
LONGEST_REFUSAL = 1000
# Terminal control sequences, control strings up to their end, and any other escaped character.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]).*?(?:\x07|\x1b\\|\x9c|$)"
    r"|\x1b.",
    re.DOTALL,
)


class BadReply(Stopped):
    """A reply that cannot be true."""

    def __init__(self, site: str, request: Request[Any], what: str) -> None:
        super().__init__(
            f"site {site!r} sent an impossible reply to {type(request).__name__}: {what}; it was "
            "discarded: repair the site and resume, or fit without it"
        )


def printable(text: str) -> str:
    """Return a remote text without escape sequences and other terminal control characters."""
    text = _ESCAPES.sub("", text)
    shown = (c if c.isprintable() or category(c) == "Zs" else " " * c.isspace() for c in text)
    return "".join(shown)


def max_reply_bytes(request: Request[Any], p: int) -> int:
    """Return the maximum size of the reply to a question at p columns."""
    if request.reach:
        return 8 * _count_words(request, p) + HEAD
    fields = layout(reply_to(type(request)))
    shapes = [shape for shape in request.expects(p).values() if shape is not None]
    scalars = sum(kind in ("float", "int", "flag") for _, kind in fields)
    texts = any(kind in ("text", "texts") and name != "site" for name, kind in fields)
    return 8 * (scalars + sum(map(math.prod, shapes))) + (HEAD_OF_TEXTS if texts else HEAD)


def max_answer_bytes(requests: Sequence[Request[Any]], p: int) -> int:
    """Return the maximum size of the replies to a question or a batch of questions at p columns."""
    most = sum(max_reply_bytes(request, p) for request in requests)
    return most if len(requests) == 1 else most + HEAD


def read_bounded(request: Request[Any], site: str, data: bytes, p: int) -> Message:
    """Decode a reply, unless it is longer than any reply to the question."""
    most = max_reply_bytes(request, p)
    if len(data) > most:
        raise BadReply(site, request, f"more than the {most} bytes that the reply can have")
    try:
        return decode(data)
    except FedLassoError as error:
        text = printable(str(error))
        raise Stopped(f"site {site!r}: {text}; does it run the same version?") from None


def divide_bounded(requests: Sequence[Request[Any]], site: str, data: bytes, p: int) -> list[bytes]:
    """Return the encoded replies to a batch, or a refusal of all of it, unless too long."""
    most = max_answer_bytes(requests, p)
    if len(data) > most:
        raise BadReply(site, requests[0], f"more than the {most} bytes that the batch can have")
    if not is_batch(data):
        return [data]
    try:
        parts = unpack(data)
    except FedLassoError as error:
        raise BadReply(site, requests[0], str(error)) from None
    if len(parts) > len(requests):
        raise BadReply(site, requests[0], f"{len(parts)} replies to {len(requests)} questions")
    return parts


def check_reply(
    request: Request[R],
    site: str,
    data: bytes,
    reply: Any,
    p: int,
    rows: int = MAX_ROWS,
    grid: Magnitudes | None = None,
) -> R:
    """Return a site's reply with printable texts, or raise `BadReply` if it cannot be true.

    `reply` is the decoded `data`, `rows` the number of rows that the site claims, and `grid` the
    magnitudes of the reply's fixed-point words, if these are known and not masked.
    """
    kind: type[Any] = Words if request.reach else reply_to(type(request))
    if type(reply) is not kind:
        raise BadReply(site, request, f"a {type(reply).__name__} instead of a {kind.__name__}")
    if reply.site != site:
        raise Stopped(f"site {site!r} answered in another's name")
    what = _find_impossible(request, reply, p, rows)
    what = what or _find_impossible_words(request, reply, grid, rows)
    if not what and encode(reply) != data:
        what = "bytes in another encoding"
    if what:
        raise BadReply(site, request, what)
    checked: R = _make_printable(reply)
    return checked


def check_total(
    request: Request[Any], replies: Sequence[Any], rows: int, grid: Magnitudes | None
) -> None:
    """Reject a total that cannot be true; where words are masked, the faulty site is unknown."""
    if what := _find_impossible_words(request, add_up(tuple(replies)), grid, rows):
        raise Stopped(
            f"the total of the sites' replies to {type(request).__name__} is impossible: {what}; "
            "it was discarded: find the faulty site, and resume"
        )


def _find_impossible_words(
    request: Request[Any], words: Words, grid: Magnitudes | None, rows: int
) -> str:
    """Describe what is impossible about unmasked words; empty if nothing is."""
    if grid is None:
        return ""
    read = fixed_point.from_words(words, request, grid)
    excess = fixed_point.find_excess(request, words, grid)
    return excess or _find_impossible(replace(request, reach=0), read, grid.columns.size, rows)


def _count_words(request: Request[Any], p: int) -> int:
    return fixed_point.count_words(fixed_point.parts_of_reply(request, Magnitudes.unknown(p)))


def _find_impossible(request: Request[Any], reply: Reply, p: int, rows: int) -> str:
    """Describe what is impossible about a reply; empty if nothing is."""
    if isinstance(reply, Words):
        expected = _count_words(request, p)
        kind = reply_to(type(request)).__name__
        if (reply.of, reply.words.shape) != (kind, (expected,)):
            return f"{reply.words.shape} words of a {reply.of} instead of {expected} of a {kind}"
    else:
        for name, shape in request.expects(p).items():
            received = getattr(getattr(reply, name), "shape", None)
            if received != shape:
                return f"{name} of shape {received} instead of {shape}"
    for name, form in layout(type(reply)):
        value = getattr(reply, name)
        if form not in ("text", "texts", "words") and value is not None:
            # An int may have more digits than a float64 can hold.
            largest = abs(value) if isinstance(value, int) else np.abs(value).max(initial=0.0)
            if largest > LARGEST:
                return f"{name} beyond {LARGEST:g}"
    for name, role in roles(type(reply)).items():
        value = getattr(reply, name)
        if value is None:
            continue
        if role.kind == "positive" and (smallest := np.min(value, initial=0.0)) < 0:
            return f"{name} of {smallest:.3g}, which cannot be negative"
        if role.kind == "rows" and (odd := find_odd_rows(name, value, rows)):
            return odd
    return reply.find_contradiction(rows)


def find_odd_rows(name: str, counts: Any, rows: int) -> str:
    """Describe the first count that is impossible at a site with so many rows, if any."""
    odd = [c for c in np.ravel(counts).tolist() if c < 0 or c > rows or c != round(c)]
    return f"{name} of {odd[0]:.15g} at a site of {rows} rows" if odd else ""


def _make_printable(reply: R) -> R:
    """Return a reply with printable texts; if they already are, it keeps its bytes."""
    changed: dict[str, Any] = {}
    for name, kind in layout(type(reply)):
        if kind in ("text", "texts"):
            value = getattr(reply, name)
            shown = printable(value) if kind == "text" else tuple(map(printable, value))
            if shown != value:
                changed[name] = shown
    return replace(reply, **changed) if changed else reply
