"""Requests and replies: typed, frozen, and all that ever passes between server and sites.

A question annotates its fields with roles, so that a site's policy needs no field names. A role
defines a value's shape at a site with p columns, whether it counts as a model, and whether it
requests work. A number without a role must not be negative; an array without one is refused. A
reply annotates its fields too: row counts, non-negative numbers and sums of products are checked
when they arrive.
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

# Coordinator and sites must have the same protocol, whatever their versions: the meaning of
# questions, replies, views and masks, and the contents of the engine's job. Raise it when another
# version would misunderstand a message, or not understand one that a fit needs. A new question is
# no reason: a site of another version refuses it by name.
PROTOCOL = "1"
Word = NDArray[np.uint64]
Whole = NDArray[np.int64]
ArrayField = Literal["array", "optional array", "whole array", "words"]
FieldKind = Literal[ArrayField, "float", "int", "flag", "text", "texts", "note"]
_VectorKind = Literal["points", "model", "accumulated", "directions", "centre", "factors"]
_OtherKind = Literal[
    "weights", "per candidate", "shifts", "times", "columns", "steps", "signed", "split"
]
_ReplyKind = Literal["rows", "positive", "vectors", "products", "lower products"]
RoleKind = Literal[_VectorKind, _OtherKind, _ReplyKind, "centre of response", "purpose"]
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
# Roles of vectors to which a reply may have one vector each.
_POINTS = ("points", "model", "accumulated")
Layout = tuple[tuple[str, FieldKind], ...]
# Shapes of arrays by field; None for an array that is absent.
Shapes = dict[str, tuple[int, ...] | None]
TYPES: dict[str, type[Message]] = {}
_LAYOUTS: dict[type[Message], Layout] = {}
_ROLES: dict[type[Message], dict[str, Role]] = {}


@dataclass(frozen=True)
class Role:
    """The meaning of a field.

    Attributes
    ----------
    kind : "points" are coefficients at which a loss is evaluated; a "model" is points that the
        policy limits as a model; "accumulated" are summed gradients or models, from which a site
        computes points; "directions" are vectors along which a model is examined; a "centre" is
        subtracted from columns or response; "factors" then multiply the columns; "weights" are
        penalty weights; "shifts" are added to the linear predictors of models side by side; "steps"
        counts local steps, a "split" names a split of the rows and a
        "purpose" a set of held-out rows. In a reply: "rows" counts rows, "positive" numbers are
        not negative, "vectors" have the shape of the question's points, and "products" are sums
        of products as `triangles` packs them, one matrix per row
    dims : allowed numbers of dimensions: one vector, or several side by side
    within : the field that lists the columns of the vectors; all columns by default
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
Shifts = Annotated[Array, Role("shifts", (1,))]
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
    """Arrays, numbers, flags (charged) and names (framing); subclasses are frozen dataclasses."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        known = TYPES.setdefault(cls.__name__, cls)
        if known.__qualname__ != cls.__qualname__ or known.__module__ != cls.__module__:
            both = f"{known.__module__} and {cls.__module__} have a message"
            raise TypeError(f"{both} called {cls.__name__}; rename one")
        TYPES[cls.__name__] = dataclass(frozen=True, eq=False)(cls)


class Reply(Message):
    """A site's answer, with notes on the work it took: recorded, not charged.

    Attributes
    ----------
    adds : how replies of several sites are combined: by their sum, or their maximum
    site : name of the site that answered; empty in a total
    steps : sweeps or gradient evaluations for this answer
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
        """Return bounds on totals by field, where they are the same for all questions."""
        return {}

    def find_contradiction(self, rows: int) -> str:
        """Describe a contradiction in a reply whose shapes and signs are valid; empty if none."""
        for name, role in roles(type(self)).items():
            lower = role.kind == "lower products"
            packed = getattr(self, name) if lower or role.kind == "products" else None
            if packed is not None and not are_products(packed, lower=lower):
                return "moments that no records have"
        return ""


R = TypeVar("R", bound=Reply)
# Errors of any family in the words of a disclosure.
ERRORS = "squared errors or deviances"


@dataclass(frozen=True)
class Disclosure:
    """What a question reveals, and how a site treats it by default.

    Attributes
    ----------
    reveals : what the coordinator learns, in plain words
    allowed : whether a site answers it by default
    single : why each site's own reply is needed, if a total does not suffice
    held_out : whether it is about held-out rows
    ranks : whether it reveals how models rank rows, whichever rows those are
    compares : whether it compares a site's own number with a given one
    batches : whether it is about batches of rows, which are a split of them
    moments : whether it reveals second moments of its columns, or of all columns

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
    batches: bool = False
    moments: bool = False
    ranks: bool = False

    def with_errors(self, name: str) -> str:
        """Return what a question reveals where errors have the name of one family's measure."""
        return self.reveals.replace(ERRORS, name)


class Request(Message, Generic[R]):
    """A question to the sites, with how a site answers it and what the answer reveals.

    The reply may depend on the request and on that site's records only. A class with an `answer`
    but without `discloses` is a `TypeError`.

    Attributes
    ----------
    kind : category of the exchange in the ledger
    about_response : whether the reply depends on the response, which then bounds it
    remembers : whether the reply depends on earlier rounds: then `fit` and `round` identify them
    discloses : what the answer reveals
    to : sites that are asked; empty means every site
    on : view of the records that a site answers from; empty means the records as they are
    reach : exponent of the grid for a reply in fixed-point words; zero requests floating point
    number : number of the question in a session with masked sums, from one on; else zero

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
        # Checked before the class is registered; a parent's disclosure does not cover a new answer.
        if "answer" in cls.__dict__ and "discloses" not in cls.__dict__:
            raise TypeError(f"{cls.__name__} must state what it discloses: set `discloses`")
        super().__init_subclass__()

    def answer(self, site: Any) -> R:
        raise TypeError(f"{type(self).__name__} has no answer; define `answer`")

    def points(self) -> list[Array]:
        """Return the coefficients over all columns at which the question evaluates the loss."""
        declared = roles(type(self)).items()
        names = [n for n, r in declared if r.kind in ("points", "model") and not r.within]
        return [getattr(self, name) for name in names]

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        """Return bounds on the total of each field of the reply, where known."""
        return reply_to(type(self)).bounds(magnitudes)

    def expects(self, p: int) -> Shapes:
        """Return the shapes of the reply's arrays at p columns, by field; None if absent.

        They depend on the question alone, not on the records. By default `Vectors` have the shape
        of the question's points, or one number per column.
        """
        reply = reply_to(type(self))
        arrays = [name for name, kind in layout(reply) if "array" in kind]
        if any(name not in roles(reply) or roles(reply)[name].kind != "vectors" for name in arrays):
            raise TypeError(f"{type(self).__name__}: define `expects`, the shapes of the reply")
        declared = roles(type(self)).items()
        points = [getattr(self, name).shape for name, role in declared if role.kind in _POINTS]
        return dict.fromkeys(arrays, points[0] if points else (p,))


def add_up(replies: tuple[R, ...]) -> R:
    """Return the total of all sites' replies, added in order of site name for the same bits."""
    first = replies[0]
    values: dict[str, Any] = {"site": ""}
    for name, kind in layout(type(first)):
        if kind in ("text", "texts"):
            continue
        # An array that no site has is absent from the total.
        parts = [value for r in replies if (value := getattr(r, name)) is not None]
        if first.adds == "max" and kind != "note":
            values[name] = max(parts)
        elif parts:
            values[name] = reduce(operator.add, parts)
    return replace(first, **values)


def reply_to(cls: type[Request[R]]) -> type[R]:
    for parent in cls.__mro__:
        for base in parent.__dict__.get("__orig_bases__", ()):
            for named in typing.get_args(base):
                if isinstance(named, type) and issubclass(named, Reply):
                    return typing.cast(type[R], named)
    raise TypeError(f"{cls.__name__} does not name its reply: subclass Request[...]")


def layout(cls: type[Message]) -> Layout:
    """Return names and kinds of a message's fields, in wire order; computed once per type."""
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
    """Return the roles of a message's fields that have one; computed once per type."""
    if cls not in _ROLES:
        hints = typing.get_type_hints(cls, include_extras=True).items()
        marks = ((name, getattr(hint, "__metadata__", (None,))[0]) for name, hint in hints)
        _ROLES[cls] = {name: role for name, role in marks if isinstance(role, Role)}
    return _ROLES[cls]


def questions() -> dict[str, type[Request[Any]]]:
    """Return every registered question that sites answer, by name."""
    known = [(name, cls) for name, cls in sorted(TYPES.items()) if issubclass(cls, Request)]
    return {name: cls for name, cls in known if hasattr(cls, "discloses")}
