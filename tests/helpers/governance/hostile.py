"""Proper questions, and damaged and hostile forms of them."""

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from helpers.kinds import own_questions
from helpers.nets import SECRET

from fedlasso.federation import Request, Role, encode
from fedlasso.federation.messages import layout, roles
from fedlasso.governance import Policy
from fedlasso.governance.policy import LARGEST_INT, LONGEST_TEXT, WIDEST
from fedlasso.numerics import Array
from fedlasso.sites.assessing import AboutFolds

LIMIT = 1 << 20
# Every question is answered, about few rows too, so that the cases reach the kernels.
ALL = Policy(
    allow=tuple(own_questions()), min_rows=5, max_numbers=1e6, max_splits=10**6, max_bytes=LIMIT,
    max_active_per_row=1e9, min_validation_rows=3, max_candidates=10**6, max_refusals=10**6,
    max_fit_refusals=10**6, max_comparisons=10**6, min_effective_rows=0, min_cell_rows=0,
    min_part_cell_rows=0,
)  # fmt: skip
T = TypeVar("T")


def ask_properly(
    p: int, on: str, split: str, candidates: int = 2, folds: int = 2
) -> list[Request[Any]]:
    """Every question that sites answer, as a fit might ask it."""
    # A question about every fold needs rows that are dealt.
    dealt = {"FoldMoments": f"folds {folds} 0"}
    one_each = f"folds {candidates} 0" if candidates > 1 else ""
    in_folds = [name for name, cls in own_questions().items() if issubclass(cls, AboutFolds)]
    dealt |= dict.fromkeys(in_folds, one_each)
    # What is asked of a split is asked of the site itself.
    return [
        _fill(cls, p, candidates, {"split": dealt.get(name, split), "on": _view(cls, on)})
        for name, cls in own_questions().items()
    ]


def _view(cls: type[Request[Any]], on: str) -> str:
    splits = any(role.kind == "split" for role in roles(cls).values())
    # Batches are of all rows, so they are not asked for on a view of a split.
    return "" if splits or cls.discloses.batches or cls.kind == "scaling" else on


def _fill(cls: Any, p: int, candidates: int, given: dict[str, Any]) -> Request[Any]:
    """A question with proper values in all fields, by their roles and kinds."""
    rng = np.random.default_rng(0)
    vector, table = rng.standard_normal(p), rng.standard_normal((p, candidates))
    by_role = {
        "per candidate": np.linspace(0.1, 2.0, candidates), "columns": np.array([0, 3]),
        "weights": np.linspace(0.0, 2.0, p), "purpose": "candidate", "steps": 2,
        "times": np.array([0.0, 1.5]), "directions": table,
        "shifts": np.linspace(-1.0, 1.0, candidates),
    }  # fmt: skip
    by_kind = {"float": 0.5, "int": 1, "flag": True, "text": "", "texts": (), "note": 0}
    # A first round remembers nothing, a fit has a name, columns are new or known and not both.
    given = given | {"round": 0, "fit": "a fit", "known": np.array([1])}
    values = {}
    for field, kind in layout(cls):
        role = roles(cls).get(field, Role("signed"))
        if role.kind in ("points", "model", "accumulated", "centre", "factors"):
            values[field] = table if 2 in role.dims else vector
            values[field] = values[field][:2] if role.within else values[field]
        else:
            values[field] = given.get(field, by_role.get(role.kind, by_kind.get(kind)))
    return cls(**values)  # type: ignore[no-any-return]


def wrong_forms(request: Request[Any]) -> Iterator[bytes]:
    """Forms of a proper question, each wrong in one way, that nobody may answer."""
    data = encode(request)
    for cut in (0, 3, 6, len(data) // 2, len(data) - 1):
        yield data[:cut]
    yield data + b"\0"
    yield data + bytes(LIMIT)
    yield data.replace(b'"type":"', b'"type":"No', 1)
    for field, kind in layout(type(request)):
        for value in _wrong_values(request, field, kind):
            yield encode(replace(request, **{field: value}))
    kinds = [
        kind
        for field, kind in layout(type(request))
        if "text" not in kind and getattr(request, field) is not None
    ]
    if kinds and kinds[-1] != "int":
        for number in (np.nan, np.inf, -np.inf):
            yield data[:-8] + struct.pack("<d", number)


def _wrong_values(request: Request[Any], field: str, kind: str) -> list[Any]:
    old = getattr(request, field)
    role = roles(type(request)).get(field)
    if role == Role("columns", (1,)):
        return [np.array([0.0, 0.0]), np.array([-1.0]), np.array([0.5]), np.array([1e9])]
    if role == Role("per candidate", (1,)):
        return [-old, old[:, None], np.ones(WIDEST + 1), np.ones(0)]
    if role == Role("times", (1,)):
        return [np.array([-1.0]), old[:, None]]
    if role == Role("weights", (1,)):
        return [-old, old[:, None], old[:-1], np.ones(len(old) + 1), np.array(1.0)]
    if kind == "array":
        longer = np.ones((len(old) + 1, *old.shape[1:]))
        wide = [np.ones((len(old), width)) for width in (0, WIDEST + 1)]
        return [longer, old[:-1], np.array(1.0), np.ones((0, *old.shape[1:])), *wide]
    if kind == "int":
        return [-1, LARGEST_INT + 1, *([ALL.max_steps + 1] if role == Role("steps") else [])]
    if kind == "flag":
        return [-1, 2]
    if kind == "float":
        signed = (Role("signed"), Role("centre of response"))
        return [] if role in signed else [-1.0, -5e-324]
    if kind == "text":
        return ["x" * (LONGEST_TEXT + 1), "a\0b", *(["none"] if field == "on" else [])]
    return []


class Fuzz:
    """Damaged and hostile forms of some messages, p columns wide."""

    def __init__(self, messages: list[Any], p: int, folder: Path, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self._messages, self._samples, self._p = messages, [encode(m) for m in messages], p
        nest: Any = []
        for _ in range(90):
            nest = [nest]
        self._texts: list[str] = [
            "", " ", "x" * 70_000, "../../outside", str(folder / "outside"), "..", "a\0b", "\ud800",
            SECRET, "note", "fold 1 of 100 0", "holdout 0.99 0", "holdout nan 0", "half 1 -1",
            "fold 0 of -3 5", "half 1 " + "9" * 5000, "fold 1 of 99999999999999999999 0", "ff" * 8,
            "[" * 100_000, '{"target":"y","columns":[{"name":"note"}]}',
            '{"target":"y","columns":[{"name":"note","kind":"number"}]}',
            '{"target":"y","columns":[{"name":"note","kind":"text","levels":["\\ud800"]}]}',
            '{"target":"y","columns":[{"name":"note","kind":"text","levels":["","",3]}]}',
        ]  # fmt: skip
        self._heads: list[Any] = [
            None, True, 0, -1, 10**4000, 1.5, [], {}, nest, [[10**12]], [[2**62, 4]], [[-1]], [[0]],
            [[1 << 20] * 1000], [[0] * 100], [["3"]], "Nobody", "Request", "State", "Refusal",
            ["x"] * 50_000, *own_questions(), *self._texts,
        ]  # fmt: skip
        numbers = (np.nan, np.inf, -np.inf, 1e308, -1.0, 0.0)
        self._bits = [struct.pack("<d", x) for x in numbers]
        self._bits += [struct.pack("<q", n) for n in (-1, 10**9, 2**62, -(2**63))]

    def case(self) -> bytes:
        """The next one; some are proper."""
        which, kind = self.rng.integers(len(self._samples)), self.rng.random()
        data = self._samples[which]
        if kind < 0.5:
            return self._swap_field(self._messages[which])
        if kind < 0.65:
            return self._swap_head(data)
        if kind < 0.75:
            # One number of the payload has other bits.
            at = len(data) - 8 * int(self.rng.integers(1, 6))
            return data[:at] + self._pick(self._bits) + data[at + 8 :]
        return self._damage(data) if kind < 0.9 else data

    def _pick(self, values: Sequence[T]) -> T:
        return values[int(self.rng.integers(len(values)))]

    def _swap_field(self, message: Any) -> bytes:
        """One field has another value: well formed, and wrong."""
        fields = dict(layout(type(message)))
        field = str(self.rng.choice(list(fields)))
        old = getattr(message, field)
        value: Any = self._pick(self._texts)
        if "array" in fields[field]:
            value = self._array(old.shape)
        elif fields[field] == "words":
            value = self.rng.integers(0, 2**64 - 1, self.rng.integers(5), np.uint64)
        elif fields[field] == "float":
            value = self._pick([0.0, -0.0, -1.0, 1e-300, 5e-324, 1e300, 1e-8, 3.0, 1e8])
        elif fields[field] in ("int", "flag", "note"):
            value = self._pick([0, 1, 3, 1000, 1001, 10**9, 2**40, 2**62])
            value *= self._pick([1, -1, -2]) if fields[field] != "note" else 1
        elif fields[field] == "texts":
            more = [self._pick(self._texts) for _ in range(self.rng.integers(4))]
            value = (*old, *self._pick([more, old]))
        return encode(replace(message, **{field: value}))

    def _array(self, shape: tuple[int, ...]) -> Array:
        p = self._p
        shapes = [(), (0,), (1,), (p,), (p + 1,), (1, 1), (0, p), (2, p), (p, p)]
        shapes += [(p, q) for q in (0, 1, 2, 3, 256, 257)]
        shape = shape if self.rng.random() < 0.4 else self._pick(shapes)
        draws: list[Any] = [self.rng.standard_normal, np.ones, np.zeros]
        scale = self._pick([1.0, 1.0, 1.0, 1e-300, 1e8, 1e155, 1e300])
        value: Array = scale * self._pick(draws)(shape)
        return np.round(value) if self.rng.random() < 0.3 else value

    def _swap_head(self, data: bytes) -> bytes:
        """One entry of the head is something else: another type, a deep nest, a vast array."""
        (length,) = struct.unpack_from("<I", data, 3)
        head = json.loads(data[7 : 7 + length])
        key = self._pick(
            ["type", "shapes", "on", "to", "split", "fit", "columns", "schema", "na", "__class__"]
        )
        head[key] = self._pick(self._heads)
        text = json.dumps(head).encode() if self.rng.random() < 0.95 else b"[" * 100_000
        return struct.pack("<3sI", b"FL1", len(text)) + text + data[7 + length :]

    def _damage(self, data: bytes) -> bytes:
        """Bytes cut, flipped, spliced, drawn, or far too many."""
        cut, kind = int(self.rng.integers(len(data) + 1)), self.rng.integers(6)
        if kind == 0:
            return data[:cut]
        if kind == 1:
            return self.rng.bytes(cut)
        if kind == 2:
            return b"FL1" + self.rng.bytes(cut)
        if kind == 3:
            return data[:cut] + self._pick(self._samples)[cut:]
        if kind == 4 and self.rng.random() < 0.1:
            return data + bytes(LIMIT)
        flipped = bytearray(data)
        for at in self.rng.integers(len(data), size=self.rng.integers(1, 5)):
            flipped[at] ^= 1 << int(self.rng.integers(8))
        return bytes(flipped)
