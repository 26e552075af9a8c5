"""Requests and replies: typed, frozen, and all that ever passes between server and sites."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_type_hints

from fedlasso.numerics import Array

FieldKind = Literal["array", "float", "int", "text", "texts", "note"]
_KINDS: dict[object, FieldKind] = {
    Array: "array",
    float: "float",
    int: "int",
    str: "text",
    tuple[str, ...]: "texts",
}
_NOTE = {"note": True}
Layout = tuple[tuple[str, FieldKind], ...]
TYPES: dict[str, type[Message]] = {}
_LAYOUTS: dict[type[Message], Layout] = {}


@dataclass(frozen=True, eq=False)
class Message:
    """What the codec can carry: arrays, floats, ints (charged) and names (framing, not charged)."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        known = TYPES.setdefault(cls.__name__, cls)
        if known.__qualname__ != cls.__qualname__ or known.__module__ != cls.__module__:
            raise TypeError(f"two kinds of message are called {cls.__name__}")
        TYPES[cls.__name__] = cls


@dataclass(frozen=True, eq=False)
class Reply(Message):
    """A site's answer. The work it took travels as a note: recorded, not charged.

    Attributes
    ----------
    site : name of the site that answered
    steps : sweeps or gradient evaluations this answer took
    operations : leading arithmetic operations of those steps
    """

    site: str = field(default="", kw_only=True)
    steps: int = field(default=0, kw_only=True, metadata=_NOTE)
    operations: int = field(default=0, kw_only=True, metadata=_NOTE)


R = TypeVar("R", bound=Reply)


@dataclass(frozen=True, eq=False)
class Request(Message, Generic[R]):
    """A question to the sites, which knows how a site answers it.

    The reply may depend on the request and on that site's records only.

    Attributes
    ----------
    kind : what the ledger files the exchange under
    to : the sites that are asked; empty means every site
    on : the view of its records a site answers from; empty means the records as they are
    """

    kind: ClassVar[str] = "training"
    to: tuple[str, ...] = field(default=(), kw_only=True)
    on: str = field(default="", kw_only=True)

    def answer(self, site: Any) -> R:
        """Answer from one site's records."""
        raise TypeError(f"{type(self).__name__} does not say how a site answers it")


def layout(cls: type[Message]) -> Layout:
    """Names and kinds of a message's fields, in wire order; worked out once a type."""
    if cls not in _LAYOUTS:
        _LAYOUTS[cls] = _layout(cls)
    return _LAYOUTS[cls]


def _layout(cls: type[Message]) -> Layout:
    hints = get_type_hints(cls)
    kinds: list[tuple[str, FieldKind]] = []
    for f in fields(cls):
        kind = _KINDS.get(hints[f.name])
        if kind is None:
            raise TypeError(f"{cls.__name__}.{f.name}: a message cannot carry {hints[f.name]}")
        kinds.append((f.name, "note" if f.metadata.get("note") else kind))
    return tuple(kinds)
