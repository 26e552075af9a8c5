"""Messages to bytes and back, without pickle.

A message on the wire is ``FL1``, the length of a JSON head, the head (type, names, shapes), and the
payload: every number as eight little-endian bytes. Nothing but the payload is charged.
"""

from __future__ import annotations

import json
import math
import struct
from functools import lru_cache
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from fedlasso.errors import FedLassoError
from fedlasso.federation.messages import TYPES, Message, Request, layout

_MAGIC = b"FL1"
_PREFIX = struct.Struct("<3sI")
_LARGEST_HEAD = 1 << 24
_REMEMBERED_HEAD = 1 << 12
_LISTED = 16
_NUMBERS = {"array": "<f8", "optional array": "<f8", "float": "<f8", "int": "<i8"}
_Count = Annotated[int, Meta(ge=0)]
_Shape = Annotated[tuple[_Count, ...], Meta(max_length=2)]
_TOLD = {
    "array": _Shape,
    "optional array": _Shape | None,
    "text": str,
    "texts": tuple[str, ...],
    "note": _Count,
}
_UNTOLD = {"optional array": None, "text": "", "texts": (), "note": 0}


def encode(message: Message) -> bytes:
    """Bytes of a message; numbers that are not finite are refused."""
    head = _head(message)
    chunks = [_PREFIX.pack(_MAGIC, len(head)), head]
    for name, kind in layout(type(message)):
        value = getattr(message, name)
        if kind not in _NUMBERS or value is None:
            continue
        if kind != "int" and not np.isfinite(value).all():
            raise FedLassoError(
                f"{type(message).__name__}: {name} is not finite; the procedure diverges on these "
                "data: lower its rate or rescale the columns"
            )
        chunks.append(np.asarray(value, _NUMBERS[kind]).tobytes())
    return b"".join(chunks)


def size(message: Message) -> tuple[int, int]:
    """How many bytes `encode` makes of a message: its numbers, and the framing around them."""
    numbers = 0
    for name, kind in layout(type(message)):
        value = getattr(message, name)
        if kind in _NUMBERS and value is not None:
            numbers += value.size if "array" in kind else 1
    return 8 * numbers, _PREFIX.size + len(_head(message))


def _head(message: Message) -> bytes:
    cls = type(message)
    values: list[Any] = []
    long = False
    for name, kind in layout(cls):
        if kind not in _TOLD:
            continue
        value = getattr(message, name)
        if kind == "texts":
            long |= len(value) > _LISTED
        values.append(getattr(value, "shape", value))
    write = _write_head.__wrapped__ if long else _write_head
    return write(cls.__name__, tuple(values))


# Rounds repeat the same few short heads, so writing and reading one is worth remembering.
@lru_cache(maxsize=4096)
def _write_head(cls: str, values: tuple[Any, ...]) -> bytes:
    head: dict[str, Any] = {"type": cls}
    shapes = []
    told = [(name, kind) for name, kind in layout(TYPES[cls]) if kind in _TOLD]
    for (name, kind), value in zip(told, values, strict=True):
        if kind == "array":
            shapes.append(value)
        elif value != _UNTOLD[kind]:
            head[name] = value
    if shapes:
        head["shapes"] = shapes
    return json.dumps(head, separators=(",", ":")).encode()


@lru_cache(maxsize=4096)
def _read_head(text: bytes) -> tuple[type[Message], tuple[Any, ...]]:
    """A message's type, and in wire order the shapes of its numbers and its texts."""
    head = json.loads(text)
    cls = TYPES.get(head["type"])
    if cls is None:
        raise FedLassoError(f"unknown kind of message {head['type']!r}: update fedlasso")
    shapes = iter(head.get("shapes", ()))
    values: list[Any] = []
    for name, kind in layout(cls):
        if kind not in _TOLD:
            values.append(())
            continue
        told = next(shapes, None) if kind == "array" else head.get(name, _UNTOLD[kind])
        try:
            values.append(msgspec.convert(told, _TOLD[kind]))
        except msgspec.ValidationError:
            raise FedLassoError(f"malformed message: bad {name}") from None
    return cls, tuple(values)


def decode(data: bytes) -> Message:
    """The message in some bytes; anything malformed is a `FedLassoError`."""
    try:
        return _decode(data)
    except FedLassoError:
        raise
    except (ValueError, TypeError, KeyError, struct.error, RecursionError, OverflowError) as error:
        raise FedLassoError(f"malformed message: {type(error).__name__}") from error


def decode_question(data: bytes) -> Request[Any]:
    """The question in some bytes; another kind of message is refused."""
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
    cls, told = read(data[_PREFIX.size : at])
    values: dict[str, Any] = {}
    for (name, kind), value in zip(layout(cls), told, strict=True):
        values[name] = value
        if kind in _NUMBERS and value is not None:
            array = np.frombuffer(data, _NUMBERS[kind], math.prod(value), at).reshape(value)
            if not np.isfinite(array).all():
                raise FedLassoError(f"malformed message: {name} is not finite")
            values[name] = array if "array" in kind else array.item()
            at += array.nbytes
    if at != len(data):
        raise FedLassoError("malformed message: bytes left over")
    return cls(**values)
