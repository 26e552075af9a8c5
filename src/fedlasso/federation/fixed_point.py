"""Fixed-point totals: sites round their numbers to a common grid, so that sums are exact.

Sums of floating-point numbers depend on the order of the sites. Sums of integers modulo 2^64 do
not, and masks that cancel in the total can be added to them. So over a view every number of a reply
travels as one or two 64-bit words, on a grid as fine as the largest total allows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError
from fedlasso.federation.federation import Federation, Prepared, ask_together
from fedlasso.federation.magnitudes import COARSE, Bound, Magnitudes, power_above
from fedlasso.federation.messages import R, Reply, Request, Word, layout, reply_to, roles

# Bits in the lower of two words, and how many sites can be added up before it overflows.
LOWER = 56
MAX_SITES = 1 << (63 - LOWER)
# A number without a bound may be this many powers of two larger than the residuals.
UNBOUNDED = 40
# Added to a reach on the wire, so that it is positive.
OFFSET = 4096
_NUMBERS = ("array", "optional array", "float", "int")


class Words(Reply):
    """A reply as integers on the grid that its question defines; `of` is the reply's type."""

    words: Word
    of: str


def prepare_words(
    federation: Federation, request: Request[Any], magnitudes: Magnitudes
) -> Prepared:
    """Return a question that is answered by the total of the replies, added up as integers."""
    if len(federation.sites) > MAX_SITES:
        raise FedLassoError(f"a federation adds up at most {MAX_SITES} sites")
    sent = federation.prepare(replace(request, reach=magnitudes.reach + OFFSET))
    return replace(sent, read=lambda replies: from_words(sent.read(replies), request, magnitudes))


def total_in_words(federation: Federation, request: Request[R], magnitudes: Magnitudes) -> R:
    """Ask one question and return the total of all sites' replies, added up as integers."""
    (total,) = ask_together([prepare_words(federation, request, magnitudes)])
    return cast(R, total)


@dataclass(frozen=True, eq=False)
class Part:
    """The place of one field among a reply's words, and its encoding."""

    name: str
    kind: str
    shape: tuple[int, ...]
    bound: Bound
    place: slice


def parts_of_reply(request: Request[Any], magnitudes: Magnitudes) -> tuple[Part, ...]:
    """Return the places of a reply's fields among its words."""
    shapes = request.expects(magnitudes.columns.size)
    bounds = request.bounds(magnitudes)
    parts = []
    at = 0
    for name, kind in layout(reply_to(type(request))):
        shape = shapes.get(name, ())
        if kind not in _NUMBERS or shape is None:
            continue
        bound = bounds.get(name, Bound(magnitudes.reach + UNBOUNDED, coarse=COARSE + UNBOUNDED))
        end = at + bound.words * math.prod(shape)
        parts.append(Part(name, kind, shape, bound, slice(at, end)))
        at = end
    return tuple(parts)


def to_words(
    reply: Reply, request: Request[R], magnitudes: Magnitudes, clip: bool = False
) -> Words:
    """Round a reply to the grid of its question.

    A number beyond its bound is an error, or with `clip` is clipped: the total is then wrong, and
    the coordinator does not learn at which site.
    """
    parts = parts_of_reply(request, magnitudes)
    words = np.zeros(count_words(parts), np.uint64)
    for part in parts:
        value = np.asarray(getattr(reply, part.name), dtype=np.float64)
        words[part.place] = _round(value, part.bound, clip)
    return Words(
        words, type(reply).__name__, site=reply.site, steps=reply.steps, operations=reply.operations
    )


def from_words(total: Words, request: Request[R], magnitudes: Magnitudes) -> R:
    """Return the words of a reply, or of a total, as the reply that was requested."""
    cls = reply_to(type(request))
    parts = parts_of_reply(request, magnitudes)
    if total.of != cls.__name__ or total.words.size != count_words(parts):
        raise FedLassoError(f"the sites did not answer {type(request).__name__} as it was asked")
    values: dict[str, Any] = {"steps": total.steps, "operations": total.operations}
    for part in parts:
        value = _join(total.words[part.place], part.shape, part.bound)
        if part.kind == "int":
            values[part.name] = round(float(value))
        else:
            values[part.name] = value if "array" in part.kind else float(value)
    return cls(**values)


def count_words(parts: Sequence[Part]) -> int:
    return parts[-1].place.stop if parts else 0


def find_excess(request: Request[Any], total: Words, grid: Magnitudes) -> str:
    """Name the first field of a total that exceeds its bound; empty if none does."""
    for part in parts_of_reply(request, grid):
        words = total.words[part.place].reshape(-1, part.bound.words)
        upper = words[:, 0].astype(np.uint64).view(np.int64)
        bits = part.bound.bits - (LOWER if part.bound.words == 2 else 0)
        most = 1 << max(bits, 0)
        if (upper > most).any() or (upper < -most).any():
            return f"{part.name} is beyond its bound"
    return ""


def grid_of(request: Request[Any], view: Magnitudes | None, p: int) -> Magnitudes | None:
    """Return the grid of a question's words; None without words or where its view is unknown."""
    if not request.reach:
        return None
    if not request.on:
        view = Magnitudes.unknown(p)
    return None if view is None else replace(view, reach=request.reach - OFFSET)


def reaching(magnitudes: Magnitudes, request: Request[R]) -> Magnitudes:
    """Return magnitudes with a question's reach: the maximum size of its models' residuals."""
    columns = np.ldexp(1.0, magnitudes.terms)
    least = float(np.ldexp(1.0, magnitudes.response)) if request.about_response else 0.0
    most = least
    for field, role in roles(type(request)).items():
        points = getattr(request, field)
        if role.kind in ("points", "model", "accumulated") and points is not None:
            norms = columns[getattr(request, role.within)] if role.within else columns
            sizes = np.abs(points).T @ norms
            most = max(most, least + float(np.max(sizes, initial=0.0)))
    return replace(magnitudes, reach=power_above(most))


def _round(value: NDArray[np.float64], bound: Bound, clip: bool = False) -> NDArray[np.uint64]:
    most = 2.0**bound.bits
    # Numbers far too large become infinite here.
    with np.errstate(over="ignore"):
        whole = np.rint(np.ldexp(value, bound.bits - bound.over(value.shape))).ravel()
    if clip:
        whole[np.isnan(whole)] = most
        whole = np.minimum(np.maximum(whole, -most), most)
    elif not (np.abs(whole) <= most).all():
        raise FedLassoError("a number here is larger than the bound that the sites agreed on")
    if bound.words == 1:
        return whole.astype(np.int64).view(np.uint64)
    # The nearest upper word leaves a signed lower one, which a double holds exactly.
    upper = np.rint(np.ldexp(whole, -LOWER))
    lower = whole - np.ldexp(upper, LOWER)
    return np.stack([upper, lower]).astype(np.int64).view(np.uint64).T.ravel()


def _join(words: NDArray[np.uint64], shape: tuple[int, ...], bound: Bound) -> NDArray[np.float64]:
    parts = words.view(np.int64).reshape(*shape, bound.words).astype(np.float64)
    total = parts[..., 0]
    if bound.words == 2:
        total = np.ldexp(total, LOWER) + parts[..., 1]
    return np.ldexp(total, bound.over(shape) - bound.bits)
