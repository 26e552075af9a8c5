"""Requests and replies: typed, frozen, and all that ever passes between server and sites.

A question annotates its fields with roles, so that rules about them need no names. A role says what
shape a value must have at a site with p columns, whether it counts as a model (guarded against
memorising few rows), and whether it asks for work. A number without a role must not be negative; an
array without one is refused at a site, because no rule can judge it. A reply annotates its fields
too: what counts rows, cannot be negative or must be sums of products is checked when it arrives.
"""

from __future__ import annotations

import operator
import typing
from dataclasses import Field, dataclass, field, fields, replace
from functools import reduce
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray

from fedlasso.federation.magnitudes import Bound, Magnitudes
from fedlasso.numerics import Array
from fedlasso.numerics.triangles import are_products

# What coordinator and sites must agree on, whatever their versions are: what questions, replies,
# views and masks mean, and what is in the engine's job. Raise it when something that one version
# sends would be taken for something else by another, or not be understood where a fit needs it. A
# question more is no reason: a site of another version refuses it by name.
PROTOCOL = "1"
Word = NDArray[np.uint64]
Whole = NDArray[np.int64]
ArrayField = Literal["array", "optional array", "whole array", "words"]
FieldKind = Literal[ArrayField, "float", "int", "flag", "text", "texts", "note"]
VectorKind = Literal["points", "model", "accumulated", "directions", "centre", "factors"]
ArrayKind = Literal[VectorKind, "weights", "per candidate", "times", "columns"]
ReplyKind = Literal["rows", "positive", "vectors", "products", "lower products"]
RoleKind = Literal[
    ArrayKind, ReplyKind, "steps", "signed", "centre of response", "split", "purpose"
]
_KINDS: dict[object, FieldKind] = {
    Array: "array",
    Array | None: "optional array",
    Whole: "whole array",
    Word: "words",
    float: "float",
    int: "int",
    bool: "flag",
    str: "text",
    tuple[str, ...]: "texts",
}
_NOTE = {"note": True}
# Roles of vectors that a reply may answer one by one.
_POINTS = ("points", "model", "accumulated")
Layout = tuple[tuple[str, FieldKind], ...]
# Shapes of arrays by field; None for an array that is not there.
Shapes = dict[str, tuple[int, ...] | None]
TYPES: dict[str, type[Message]] = {}
_LAYOUTS: dict[type[Message], Layout] = {}
_ROLES: dict[type[Message], dict[str, Role]] = {}


@dataclass(frozen=True)
class Role:
    """What a field is.

    Attributes
    ----------
    kind : points are coefficients at which a loss is evaluated; a model is points that a site
        judges as a model; accumulated are gradients or models added up, from which a site computes
        points; directions are vectors over the columns along which a model is looked at; a centre
        is subtracted from columns or response, in their units; factors multiply the columns then;
        weights are what each coefficient pays; the others are one number per candidate, times, a
        list of columns, how many steps, a number of either sign, the name of a split of the rows,
        and what held-out rows are for. In a reply: numbers of rows of the site, numbers that cannot
        be negative, vectors shaped as the question's points, and sums of products as `triangles`
        packs them, one matrix per row
    dims : one vector, or several side by side
    within : the field that lists the columns which the vectors are over; all columns by default
    """

    kind: RoleKind
    dims: tuple[int, ...] = ()
    within: str = ""


Points = Annotated[Array, Role("points", (2,))]
AnyPoints = Annotated[Array, Role("points", (1, 2))]
ModelVector = Annotated[Array, Role("model", (1,))]
Models = Annotated[Array, Role("model", (2,))]
Accumulated = Annotated[Array, Role("accumulated", (2,))]
Centre = Annotated[Array, Role("centre", (1,))]
Factors = Annotated[Array, Role("factors", (1,))]
ResponseCentre = Annotated[float, Role("centre of response")]
Weights = Annotated[Array | None, Role("weights", (1,))]
PerCandidate = Annotated[Array, Role("per candidate", (1,))]
Times = Annotated[Array, Role("times", (1,))]
Columns = Annotated[Whole, Role("columns", (1,))]
Directions = Annotated[Array, Role("directions", (2,))]
Steps = Annotated[int, Role("steps")]
Signed = Annotated[float, Role("signed")]
Split = Annotated[str, Role("split")]
Purpose = Annotated[str, Role("purpose")]
T = TypeVar("T")
Count = Annotated[T, Role("rows")]
Positive = Annotated[T, Role("positive")]
Vectors = Annotated[Array, Role("vectors")]
Products = Annotated[Array, Role("products")]
LowerProducts = Annotated[Array, Role("lower products")]


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
class Message:
    """What the codec can carry: arrays, numbers, flags (charged) and names (framing, not charged).

    A subclass is a frozen dataclass by itself, without a decorator.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        known = TYPES.setdefault(cls.__name__, cls)
        if known.__qualname__ != cls.__qualname__ or known.__module__ != cls.__module__:
            raise TypeError(f"two kinds of message are called {cls.__name__}")
        TYPES[cls.__name__] = dataclass(frozen=True, eq=False)(cls)


class Reply(Message):
    """A site's answer. The work it took travels as a note: recorded, not charged.

    Attributes
    ----------
    adds : how the replies of several sites become one: they add up, or the largest counts
    site : name of the site that answered; empty in a total
    steps : sweeps or gradient evaluations this answer took
    operations : leading arithmetic operations of those steps

    Examples
    --------
    >>> from fedlasso.federation.messages import add_up
    >>> from fedlasso.sites.questions import RowCount
    >>> add_up((RowCount(30, site="a"), RowCount(20, site="b"))).rows
    50
    """

    adds: ClassVar[Literal["sum", "max"]] = "sum"
    site: str = field(default="", kw_only=True)
    steps: int = field(default=0, kw_only=True, metadata=_NOTE)
    operations: int = field(default=0, kw_only=True, metadata=_NOTE)

    @classmethod
    def bounds(cls, magnitudes: Magnitudes) -> dict[str, Bound]:
        """Say how large totals can be, where that is the same for all questions."""
        return {}

    def find_contradiction(self, rows: int) -> str:
        """Return how the numbers of a reply contradict each other, in words; empty if they do not.

        Asked of replies from afar, of a site of so many rows, whose shapes and signs are right.
        """
        for name, role in roles(type(self)).items():
            lower = role.kind == "lower products"
            packed = getattr(self, name) if lower or role.kind == "products" else None
            if packed is not None and not are_products(packed, lower=lower):
                return "moments that no records have"
        return ""


R = TypeVar("R", bound=Reply)


@dataclass(frozen=True)
class Disclosure:
    """What a question reveals, and how a site treats it unless its policy says otherwise.

    Attributes
    ----------
    reveals : what whoever asks learns, in plain words
    allowed : whether a site answers it by default
    single : why the replies are needed one by one, where a total will not do
    held_out : whether it is about rows that were held out
    compares : whether it compares a number of the site alone with one that is given

    Examples
    --------
    >>> from fedlasso.sites import GradientAt
    >>> GradientAt.discloses.reveals
    'one combination of second moments per vector: sums over rows'
    """

    reveals: str
    allowed: bool = True
    single: str = ""
    held_out: bool = False
    compares: bool = False


class Request(Message, Generic[R]):
    """A question to the sites, which knows how a site answers it and what the answer reveals.

    The reply may depend on the request and on that site's records only. A question that sites
    answer must say what it discloses; to forget it is a `TypeError` when the class is made.

    Attributes
    ----------
    kind : what the ledger files the exchange under
    about_response : whether the reply depends on the response, whose size then bounds it
    remembers : whether the reply depends on the rounds before: then `fit` and `round` name them
    discloses : what the answer reveals
    to : the sites that are asked; empty means every site
    on : the view of its records a site answers from; empty means the records as they are
    reach : how far whole numbers must reach, as `words` has it; zero asks for numbers as they are
    number : which question of a session with masked sums this is, from one on; else zero

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import Site
    >>> from fedlasso.sites import Rows
    >>> Rows().answer(Site("a", np.eye(3), [1, 2, 3])).rows
    3
    """

    kind: ClassVar[str] = "training"
    about_response: ClassVar[bool] = True
    remembers: ClassVar[bool] = False
    discloses: ClassVar[Disclosure]
    to: tuple[str, ...] = field(default=(), kw_only=True)
    on: str = field(default="", kw_only=True)
    reach: int = field(default=0, kw_only=True, metadata=_NOTE)
    number: int = field(default=0, kw_only=True, metadata=_NOTE)

    def __init_subclass__(cls) -> None:
        # Checked before the class is known to anybody; a parent's word does not cover a new answer.
        if "answer" in cls.__dict__ and "discloses" not in cls.__dict__:
            raise TypeError(f"{cls.__name__} must say what it discloses: set `discloses`")
        super().__init_subclass__()

    def answer(self, site: Any) -> R:
        """Answer from one site's records."""
        raise TypeError(f"{type(self).__name__} does not say how a site answers it")

    def points(self) -> list[Array]:
        """Return the coefficients, one vector or several side by side, that a loss is evaluated at.

        Those over all columns, before a site takes steps of its own.
        """
        return [
            getattr(self, name)
            for name, role in roles(type(self)).items()
            if role.kind in ("points", "model") and not role.within
        ]

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        """Say how large the total of each field of the reply can be, where that is known."""
        return reply_to(type(self)).bounds(magnitudes)

    def expects(self, p: int) -> Shapes:
        """Return the shapes of the arrays that a site with p columns answers with, by field.

        None stands for an array that stays away. The question alone decides, not the records. By
        default `Vectors` are shaped as the points of the question, or have one number per column.
        """
        reply = reply_to(type(self))
        arrays = [name for name, kind in layout(reply) if "array" in kind]
        if any(name not in roles(reply) or roles(reply)[name].kind != "vectors" for name in arrays):
            raise TypeError(f"{type(self).__name__}: say what the reply looks like: define expects")
        asked = roles(type(self)).items()
        points = [getattr(self, name).shape for name, role in asked if role.kind in _POINTS]
        return dict.fromkeys(arrays, points[0] if points else (p,))


def add_up(replies: tuple[R, ...]) -> R:
    """Return all sites' replies as one: added in the order of their names, so no bit can change."""
    first = replies[0]
    values: dict[str, Any] = {"site": ""}
    for name, kind in layout(type(first)):
        if kind in ("text", "texts"):
            continue
        # What no site has is in no total either.
        parts = [value for r in replies if (value := getattr(r, name)) is not None]
        if first.adds == "max" and kind != "note":
            values[name] = max(parts)
        elif parts:
            values[name] = reduce(operator.add, parts)
    return replace(first, **values)


def reply_to(cls: type[Request[R]]) -> type[R]:
    """Return the type of reply that a question asks for."""
    for parent in cls.__mro__:
        for base in parent.__dict__.get("__orig_bases__", ()):
            for named in typing.get_args(base):
                if isinstance(named, type) and issubclass(named, Reply):
                    return typing.cast(type[R], named)
    raise TypeError(f"{cls.__name__} does not say which reply it asks for")


def layout(cls: type[Message]) -> Layout:
    """Return names and kinds of a message's fields, in wire order; worked out once per type."""
    if cls not in _LAYOUTS:
        hints = typing.get_type_hints(cls)
        kinds: list[tuple[str, FieldKind]] = []
        for f in fields(cls):
            kind = _KINDS.get(hints[f.name])
            if kind is None:
                raise TypeError(f"{cls.__name__}.{f.name}: a message cannot carry {hints[f.name]}")
            kinds.append((f.name, "note" if f.metadata.get("note") else kind))
        _LAYOUTS[cls] = tuple(kinds)
    return _LAYOUTS[cls]


def roles(cls: type[Message]) -> dict[str, Role]:
    """Return the roles of a message's fields that have one; worked out once per type."""
    if cls not in _ROLES:
        hints = typing.get_type_hints(cls, include_extras=True).items()
        marks = ((name, getattr(hint, "__metadata__", (None,))[0]) for name, hint in hints)
        _ROLES[cls] = {name: role for name, role in marks if isinstance(role, Role)}
    return _ROLES[cls]


def questions() -> dict[str, type[Request[Any]]]:
    """Return every question that sites answer and the package knows by now, by name."""
    known = [(name, cls) for name, cls in sorted(TYPES.items()) if issubclass(cls, Request)]
    return {name: cls for name, cls in known if hasattr(cls, "discloses")}
