"""Messages to bytes and back, without pickle.

A message on the wire is ``FL1``, the length of a JSON head, the head (type, names, shapes), and the
payload: every number as eight little-endian bytes. Only the payload is charged. Arrays of integers
travel as doubles, flags as 0 or 1. A message that was decoded or sealed keeps its bytes, so it is
encoded once however many hops it takes.

A batch of messages is ``FB1``, their number, the length of each, and the messages.
"""

import json
import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Annotated, Any, TypeVar, get_args

import msgspec
import numpy as np
from msgspec import Meta

from fedlasso.errors import CannotFit, FedLassoError
from fedlasso.federation.messages import TYPES, ArrayField, Layout, Message, Request, layout

_MAGIC = b"FL1"
_PREFIX = struct.Struct("<3sI")
_BATCH = b"FB1"
MAX_PARTS = 1024
_LARGEST_HEAD = 1 << 24
_REMEMBERED_HEAD = 1 << 12
_LISTED = 16
# NumPy's type of the eight bytes of one number, by the kind of its array.
_ARRAYS = {kind: "<u8" if kind == "words" else "<f8" for kind in get_args(ArrayField)}
_SCALARS = {"float": struct.Struct("<d"), "int": struct.Struct("<q"), "flag": struct.Struct("<q")}
_Count = Annotated[int, Meta(ge=0)]
_Shape = Annotated[tuple[_Count, ...], Meta(max_length=2)]
# Types of the fields that are in the head, and defaults of those that may be left out of it.
_HEAD_TYPES = {
    **dict.fromkeys(("array", "whole array", "words"), _Shape),
    "optional array": _Shape | None,
    "text": str,
    "texts": tuple[str, ...],
    "note": _Count,
}
_HEAD_DEFAULTS = {"optional array": None, "text": "", "texts": (), "note": 0}
_REQUIRED = {"flag": "0 or 1", "whole array": "whole"}
_SPLITS: dict[type[Message], tuple[Layout, Layout]] = {}
# The attribute with a message's bytes; `dataclasses.replace` does not copy it.
_KEPT = "_bytes"
M = TypeVar("M", bound=Message)


def encode(message: Message) -> bytes:
    """Return a message as bytes; numbers that are not finite are an error."""
    if _KEPT in message.__dict__:
        return bytes(message.__dict__[_KEPT])
    head, _ = _head(message)
    chunks = [_PREFIX.pack(_MAGIC, len(head)), head]
    for name, kind in _split(type(message))[1]:
        value = getattr(message, name)
        if kind in _SCALARS:
            finite = math.isfinite(value)
            chunks.append(_SCALARS[kind].pack(value))
        elif value is None:
            continue
        else:
            finite = bool(np.isfinite(value).all())
            chunks.append(np.asarray(value, _ARRAYS[kind]).tobytes())
        if not finite:
            raise CannotFit(
                f"{type(message).__name__}: {name} is not finite; the procedure diverges on these "
                "data: lower its rate or rescale the columns"
            )
    return b"".join(chunks)


def seal(message: M, **notes: int) -> M:
    """Return a message, with other notes, that keeps its bytes; its arrays must not change."""
    data = encode(message)
    payload = data[_PREFIX.size + _PREFIX.unpack_from(data)[1] :]
    sealed = replace(message, **notes)
    head, _ = _head(sealed)
    sealed.__dict__[_KEPT] = b"".join((_PREFIX.pack(_MAGIC, len(head)), head, payload))
    return sealed


def pack(messages: Sequence[bytes]) -> bytes:
    """Return encoded messages as a batch."""
    lengths = struct.pack(f"<{len(messages)}Q", *map(len, messages))
    return b"".join((_PREFIX.pack(_BATCH, len(messages)), lengths, *messages))


def is_batch(data: bytes) -> bool:
    return data.startswith(_BATCH)


def unpack(data: bytes) -> list[bytes]:
    """Return the messages of a batch, still encoded; anything malformed is a `FedLassoError`."""
    try:
        _, count = _PREFIX.unpack_from(data)
        if not (is_batch(data) and 1 <= count <= MAX_PARTS):
            raise FedLassoError(f"malformed batch: it has 1 to {MAX_PARTS} messages")
        lengths = struct.unpack_from(f"<{count}Q", data, _PREFIX.size)
    except struct.error:
        raise FedLassoError("malformed batch: it is cut short") from None
    ends = list(accumulate(lengths, initial=_PREFIX.size + 8 * count))
    if ends[-1] != len(data):
        raise FedLassoError("malformed batch: the lengths of its messages do not add up")
    return [data[start:end] for start, end in pairwise(ends)]


def size(message: Message) -> tuple[int, int]:
    """Return the bytes of a message's payload, and of the framing around it."""
    head, numbers = _head(message)
    return 8 * numbers, _PREFIX.size + len(head)


def _split(cls: type[Message]) -> tuple[Layout, Layout]:
    """Return the fields in the head, and those in the payload; computed once per type."""
    if cls not in _SPLITS:
        head = tuple((name, kind) for name, kind in layout(cls) if kind in _HEAD_TYPES)
        paid = tuple((name, kind) for name, kind in layout(cls) if kind in {*_SCALARS, *_ARRAYS})
        _SPLITS[cls] = (head, paid)
    return _SPLITS[cls]


def _head(message: Message) -> tuple[bytes, int]:
    """Return the head of a message, and how many numbers follow it."""
    cls = type(message)
    values: list[Any] = []
    long = False
    # One plain loop: every message of a study passes here twice.
    for name, kind in _split(cls)[0]:
        value = getattr(message, name)
        if kind == "texts":
            long |= len(value) > _LISTED
        values.append(getattr(value, "shape", value))
    write = _write_head.__wrapped__ if long else _write_head
    return write(cls.__name__, tuple(values))


# Rounds repeat the same few short heads, so both directions are cached.
@lru_cache(maxsize=4096)
def _write_head(cls: str, values: tuple[Any, ...]) -> tuple[bytes, int]:
    head: dict[str, Any] = {"type": cls}
    shapes = []
    fields, paid = _split(TYPES[cls])
    numbers = sum(kind in _SCALARS for _, kind in paid)
    for (name, kind), value in zip(fields, values, strict=True):
        if kind in _ARRAYS and value is not None:
            numbers += math.prod(value)
        if kind in _ARRAYS and kind not in _HEAD_DEFAULTS:
            shapes.append(value)
        elif value != _HEAD_DEFAULTS[kind]:
            head[name] = value
    if shapes:
        head["shapes"] = shapes
    return json.dumps(head, separators=(",", ":")).encode(), numbers


@lru_cache(maxsize=4096)
def _read_head(text: bytes) -> tuple[type[Message], dict[str, Any], bool]:
    """Return a message's type, the fields in its head, and whether `encode` writes these bytes."""
    head = json.loads(text)
    cls = TYPES.get(head["type"])
    if cls is None:
        raise FedLassoError(f"unknown kind of message {head['type']!r}: update fedlasso")
    shapes = iter(head.get("shapes", ()))
    values: dict[str, Any] = {}
    for name, kind in _split(cls)[0]:
        optional = kind in _HEAD_DEFAULTS
        value = head.get(name, _HEAD_DEFAULTS[kind]) if optional else next(shapes, None)
        try:
            values[name] = msgspec.convert(value, _HEAD_TYPES[kind])
        except msgspec.ValidationError:
            raise FedLassoError(f"malformed message: bad {name}") from None
    own, _ = _write_head.__wrapped__(cls.__name__, tuple(values.values()))
    return cls, values, text == own


def decode(data: bytes) -> Message:
    """Return the message in some bytes; anything malformed is a `FedLassoError`."""
    try:
        return _decode(data)
    except FedLassoError:
        raise
    except (ValueError, TypeError, KeyError, struct.error, RecursionError, OverflowError) as error:
        raise FedLassoError(f"malformed message: {type(error).__name__}") from error


def decode_question(data: bytes) -> Request[Any]:
    """Return the question in some bytes; another kind of message is an error."""
    request = decode(data)
    if not isinstance(request, Request):
        raise FedLassoError(f"{type(request).__name__} is not a question")
    return request


def _decode(data: bytes) -> Message:
    magic, length = _PREFIX.unpack_from(data)
    if magic != _MAGIC or length > _LARGEST_HEAD:
        raise FedLassoError("malformed message: not one of ours")
    at = _PREFIX.size + length
    read = _read_head if length <= _REMEMBERED_HEAD else _read_head.__wrapped__
    cls, fields, as_written = read(data[_PREFIX.size : at])
    values = dict(fields)
    for name, kind in _split(cls)[1]:
        if kind in _SCALARS:
            (values[name],) = _SCALARS[kind].unpack_from(data, at)
            fine = math.isfinite(values[name]) and (kind != "flag" or values[name] in (0, 1))
            at += 8
        elif values[name] is None:
            continue
        else:
            shape = values[name]
            array = np.frombuffer(data, _ARRAYS[kind], math.prod(shape), at).reshape(shape)
            values[name] = array
            fine = bool(np.isfinite(array).all())
            at += array.nbytes
        if kind == "flag":
            values[name] = bool(values[name])
        elif kind == "whole array" and fine:
            with np.errstate(invalid="ignore"):
                values[name] = array.astype(np.int64)
            values[name].flags.writeable = False
            # Every integer has one encoding: 0.5 would be rounded, and -0 lose its sign.
            fine = values[name].astype("<f8").tobytes() == array.tobytes()
        if not fine:
            raise FedLassoError(f"malformed message: {name} is not {_REQUIRED.get(kind, 'finite')}")
    if at != len(data):
        raise FedLassoError("malformed message: bytes left over")
    message = cls(**values)
    if as_written:
        message.__dict__[_KEPT] = data
    return message
