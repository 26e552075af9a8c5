"""What is checked of a reply from afar before it is written down or used.

A site may be broken, or lie. What cannot be true is refused here, with the site's name and before
the journal has it, so that a fit goes on once the site is mended. A lie that could be true cannot
be told from the truth. Sites in the same process are not checked.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unicodedata import category

import numpy as np

from fedlasso.errors import FedLassoError, Stopped
from fedlasso.federation.codec import decode, encode
from fedlasso.federation.fixed_point import (
    Words,
    count_words,
    find_excess,
    from_words,
    parts_of_reply,
)
from fedlasso.federation.magnitudes import Magnitudes
from fedlasso.federation.messages import Message, R, Reply, Request, add_up, layout, reply_to, roles

# Sites refuse larger records: their squares, summed over many rows, are no float64 any more.
LARGEST = 1e150
# No site keeps more rows than this in its memory.
MOST_ROWS = 10**9
# Bytes of a reply's head: of one that holds names and numbers, and of one that holds texts.
HEAD = 1 << 16
HEAD_OF_TEXTS = 1 << 24
# Characters of a site's own words that are passed on.
LONGEST = 1000
# Sequences that steer a terminal, strings for it with their ends, and any other escaped character.
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
            f"site {site!r} answered {type(request).__name__} with what cannot be: {what}; nothing "
            "of it was kept: mend the site and resume, or fit without it"
        )


def plain(text: str) -> str:
    """Return a text from afar without escape sequences and what else a terminal would obey.

    >>> plain("no" + chr(27) + "[2J such" + chr(10) + "file")
    'no such file'
    """
    told = _ESCAPES.sub("", text)
    shown = (c if c.isprintable() or category(c) == "Zs" else " " * c.isspace() for c in told)
    return "".join(shown)


def most_bytes(request: Request[Any], p: int) -> int:
    """Return how many bytes the reply to a question has at most, at p columns."""
    if request.reach:
        return 8 * _count_words(request, p) + HEAD
    told = layout(reply_to(type(request)))
    shapes = [shape for shape in request.expects(p).values() if shape is not None]
    scalars = sum(kind in ("float", "int", "flag") for _, kind in told)
    texts = any(kind in ("text", "texts") and name != "site" for name, kind in told)
    return 8 * (scalars + sum(map(math.prod, shapes))) + (HEAD_OF_TEXTS if texts else HEAD)


def read_bounded(request: Request[Any], site: str, data: bytes, p: int) -> Message:
    """Return the message in some bytes, unless they are more than any reply to the question has."""
    most = most_bytes(request, p)
    if len(data) > most:
        raise BadReply(site, request, f"{len(data)} bytes, and a reply has {most} at most")
    try:
        return decode(data)
    except FedLassoError as error:
        text = plain(str(error))
        raise Stopped(f"site {site!r}: {text}; is fedlasso the same there?") from None


def check_reply(
    request: Request[R],
    site: str,
    data: bytes,
    reply: Any,
    p: int,
    rows: int = MOST_ROWS,
    grid: Magnitudes | None = None,
) -> R:
    """Return a site's reply with its texts made plain; one that cannot be true is an error.

    `data` is what came back and `reply` the message in it; the site has so many `rows` by its own
    word, and `grid` is what the words of a reply mean, where they are not masked and it is known.
    """
    kind: type[Any] = Words if request.reach else reply_to(type(request))
    if type(reply) is not kind:
        raise BadReply(site, request, f"a {type(reply).__name__} instead of a {kind.__name__}")
    if reply.site != site:
        raise Stopped(f"site {site!r} answered in another's name")
    what = _find_impossible(request, reply, p, rows)
    what = what or _find_impossible_words(request, reply, grid, rows)
    if not what and encode(reply) != data:
        what = "bytes that no site writes in this way"
    if what:
        raise BadReply(site, request, what)
    checked: R = _make_plain(reply)
    return checked


def check_total(
    request: Request[Any], replies: Sequence[Any], rows: int, grid: Magnitudes | None
) -> None:
    """Refuse words whose total cannot be, of all sites with so many rows by their own word.

    Where they are masked, nobody can tell whose fault it is.
    """
    if what := _find_impossible_words(request, add_up(tuple(replies)), grid, rows):
        raise Stopped(
            f"what the sites answer {type(request).__name__} with comes to what cannot be: {what}; "
            "nothing of it was kept: find the site that is wrong, and resume"
        )


def _find_impossible_words(
    request: Request[Any], words: Words, grid: Magnitudes | None, rows: int
) -> str:
    """Return what is impossible about words that are not masked; nothing if nothing is."""
    if grid is None:
        return ""
    read = from_words(words, request, grid)
    excess = find_excess(request, words, grid)
    return excess or _find_impossible(replace(request, reach=0), read, grid.columns.size, rows)


def _count_words(request: Request[Any], p: int) -> int:
    return count_words(parts_of_reply(request, Magnitudes.unknown(p)))


def _find_impossible(request: Request[Any], reply: Reply, p: int, rows: int) -> str:
    """Return what is impossible about a reply, in words; nothing if nothing is."""
    if isinstance(reply, Words):
        expected = _count_words(request, p)
        kind = reply_to(type(request)).__name__
        if (reply.of, reply.words.shape) != (kind, (expected,)):
            return f"{reply.words.shape} words of a {reply.of} instead of {expected} of a {kind}"
    else:
        for name, shape in request.expects(p).items():
            came = getattr(getattr(reply, name), "shape", None)
            if came != shape:
                return f"{name} of shape {came} instead of {shape}"
    for name, form in layout(type(reply)):
        value = getattr(reply, name)
        if form not in ("text", "texts", "words") and value is not None:
            # A whole number may have more digits than a float64 can tell.
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
    """Return which number of rows a site of so many rows cannot have, in words."""
    odd = [c for c in np.ravel(counts).tolist() if c < 0 or c > rows or c != round(c)]
    return f"{name} of {odd[0]:.15g} at a site of {rows} rows" if odd else ""


def _make_plain(reply: R) -> R:
    """Return a reply with plain texts; one that has no others keeps its bytes."""
    changed: dict[str, Any] = {}
    for name, kind in layout(type(reply)):
        if kind in ("text", "texts"):
            value = getattr(reply, name)
            shown = plain(value) if kind == "text" else tuple(map(plain, value))
            if shown != value:
                changed[name] = shown
    return replace(reply, **changed) if changed else reply
