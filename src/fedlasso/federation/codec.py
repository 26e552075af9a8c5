"""Messages to bytes and back, without pickle.

A message on the wire is ``FL1``, the length of a JSON head, the head (type, names, shapes), and the
payload: every number as eight little-endian bytes. Nothing but the payload is charged.
"""

from __future__ import annotations

import json
import math
import struct
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation.messages import TYPES, Message, layout

_MAGIC = b"FL1"
_PREFIX = struct.Struct("<3sI")
_LARGEST_HEAD = 1 << 24
_REMEMBERED_HEAD, _LISTED = 1 << 12, 16
_NUMBERS = {"array": "<d", "optional array": "<d", "float": "<d", "int": "<q"}


class Size(NamedTuple):
    """Bytes of one message: numbers, and the framing around them."""

    payload: int
    framing: int


def encode(message: Message) -> bytes:
    """Bytes of a message; numbers that are not finite are refused."""
    head = _head(message)
    chunks = [_PREFIX.pack(_MAGIC, len(head)), head]
    for name, kind in layout(type(message)):
        if kind not in _NUMBERS:
            continue
        value = getattr(message, name)
        if value is None:
            continue
        if kind != "int" and not np.isfinite(value).all():
            raise FedLassoError(
                f"{type(message).__name__}: {name} is not finite; the procedure diverges on these "
                "data: lower its rate or rescale the columns"
            )
        if "array" in kind:
            chunks.append(np.asarray(value, dtype="<f8").tobytes())
        else:
            chunks.append(struct.pack(_NUMBERS[kind], value))
    return b"".join(chunks)


def size(message: Message) -> Size:
    """How many bytes `encode` makes of a message."""
    numbers = 0
    for name, kind in layout(type(message)):
        value = getattr(message, name)
        if kind in _NUMBERS and value is not None:
            numbers += value.size if "array" in kind else 1
    return Size(8 * numbers, _PREFIX.size + len(_head(message)))


def _head(message: Message) -> bytes:
    cls = type(message)
    values, long = [], False
    for name, kind in layout(cls):
        value = getattr(message, name)
        if "array" in kind:
            values.append(None if value is None else value.shape)
        elif kind not in _NUMBERS:
            values.append(value)
            long |= kind == "texts" and len(value) > _LISTED
    write = _write_head.__wrapped__ if long else _write_head
    return write(cls.__name__, tuple(values))


# Rounds repeat the same few short heads, so writing and reading one is worth remembering.
@lru_cache(maxsize=4096)
def _write_head(cls: str, values: tuple[Any, ...]) -> bytes:
    head: dict[str, Any] = {"type": cls}
    rest = iter(values)
    shapes = []
    for name, kind in layout(TYPES[cls]):
        if kind == "array":
            shapes.append(next(rest))
        elif kind == "optional array":
            # An array that is not there costs no framing either.
            if (shape := next(rest)) is not None:
                head[name] = shape
        elif kind not in _NUMBERS and (value := next(rest)):
            head[name] = value
    if shapes:
        head["shapes"] = shapes
    return json.dumps(head, separators=(",", ":")).encode()


@lru_cache(maxsize=4096)
def _read_head(text: bytes) -> tuple[type[Message], tuple[Any, ...]]:
    """A message's type, and in wire order its shapes and texts (None for a number)."""
    head = json.loads(text)
    cls = TYPES.get(head["type"])
    if cls is None:
        raise FedLassoError(f"unknown kind of message {head['type']!r}: update fedlasso")
    shapes = iter(head.get("shapes", ()))
    values: list[Any] = []
    for name, kind in layout(cls):
        if kind == "array":
            values.append(_checked_shape(next(shapes, None)))
        elif kind == "optional array":
            values.append(_checked_shape(head[name]) if name in head else None)
        else:
            values.append(None if kind in _NUMBERS else _checked_text(head.get(name), kind))
    return cls, tuple(values)


def decode(data: bytes) -> Message:
    """The message in some bytes; anything malformed is a `FedLassoError`."""
    try:
        return _decode(data)
    except FedLassoError:
        raise
    except (ValueError, TypeError, KeyError, struct.error, RecursionError, OverflowError) as error:
        raise FedLassoError(f"malformed message: {type(error).__name__}") from error


def _decode(data: bytes) -> Message:
    magic, length = _PREFIX.unpack_from(data)
    if magic != _MAGIC or length > _LARGEST_HEAD:
        raise FedLassoError("malformed message: not one of ours")
    at = _PREFIX.size + length
    read = _read_head if length <= _REMEMBERED_HEAD else _read_head.__wrapped__
    cls, fixed = read(data[_PREFIX.size : at])
    values: list[Any] = []
    for (name, kind), value in zip(layout(cls), fixed, strict=True):
        if "array" in kind and value is None:
            values.append(None)
        elif "array" in kind:
            array = np.frombuffer(data, "<f8", math.prod(value), at).reshape(value)
            if not np.isfinite(array).all():
                raise FedLassoError(f"malformed message: {name} is not finite")
            values.append(array)
            at += array.nbytes
        elif kind in _NUMBERS:
            (number,) = struct.unpack_from(_NUMBERS[kind], data, at)
            if not math.isfinite(number):
                raise FedLassoError(f"malformed message: {name} is not finite")
            values.append(number)
            at += 8
        else:
            values.append(value)
    if at != len(data):
        raise FedLassoError("malformed message: bytes left over")
    return cls(**{name: value for (name, _), value in zip(layout(cls), values, strict=True)})


def _checked_shape(shape: Any) -> tuple[int, ...]:
    if (
        isinstance(shape, list)
        and len(shape) <= 2
        and all(type(n) is int and n >= 0 for n in shape)
    ):
        return tuple(shape)
    raise FedLassoError("malformed message: bad shape")


def _checked_text(value: Any, kind: str) -> Any:
    if kind == "texts":
        value = [] if value is None else value
        if isinstance(value, list) and all(isinstance(v, str) for v in value):
            return tuple(value)
    elif kind == "note":
        if value is None or (type(value) is int and value >= 0):
            return value or 0
    elif value is None or isinstance(value, str):
        return value or ""
    raise FedLassoError("malformed message: bad text")
