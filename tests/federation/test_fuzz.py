"""Whatever bytes come in, a site answers properly or refuses in a few words, and is as before."""

import json
import pickle
import re
import resource
import struct
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from draws import draw_sites
from nets import COLUMNS, SECRET, SITES, write_tables

import fedlasso.study  # noqa: F401  (every question is known)
from fedlasso import FedLassoError
from fedlasso.deploy.records import TableRecords
from fedlasso.federation import Message, Reply, Request, decode, encode
from fedlasso.federation.messages import TYPES, layout
from fedlasso.governance import Audit, Door, GuardedSite, Policy
from fedlasso.governance.door import Introduce, Open, Opened, Refusal, SummariseAudit
from fedlasso.governance.guard import LONGEST
from fedlasso.governance.policy import QUESTIONS, RATES
from fedlasso.numerics import Array
from fedlasso.sites import Memory, Rows
from fedlasso.sites.views import Standardise

# Divisions by zero and overflows are what hostile numbers are for.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
SEEDS = range(8)
OPEN, CLOSED, GUARDED, CODED = 900, 100, 500, 500
LIMIT = 1 << 20
# Every question is answered, about few rows too, so that the cases reach the kernels.
ALL = Policy(
    allow=tuple(QUESTIONS), min_rows=5, max_vectors=10**6, max_splits=10**6, max_bytes=LIMIT,
    max_active_per_row=1e9,
)  # fmt: skip
T = TypeVar("T")
FIT, SPLIT = "ab" * 8, "holdout 0.2 0"


def ask_properly(p: int, on: str, split: str) -> list[Request[Any]]:
    """Every question that a policy knows, as a fit might ask it."""
    rng = np.random.default_rng(0)
    vector, table = rng.standard_normal(p), rng.standard_normal((p, 2))
    places = np.array([0.0, 3.0])
    given: dict[str, Any] = {
        **dict.fromkeys(RATES, np.array([0.1, 2.0])), "factors": np.ones(p),
        "new": places, "known": np.array([1.0]), "A": places, "N": places, "v": table[:2],
        "split": split, "on": on, "fit": "a fit", "purpose": "candidate",
        "round": 0, "first_step": 2, "epochs": 2, "shared": 1, "count": 5,
    }  # fmt: skip
    requests = []
    for name, question in QUESTIONS.items():
        cls: Any = TYPES[name]
        other = {"array": table if 2 in question.dims else vector, "float": 0.5, "texts": ()}
        values = {field: given.get(field, other.get(kind)) for field, kind in layout(cls)}
        # What is asked of a split is asked of the site itself.
        requests.append(cls(**values | ({"on": ""} if "split" in values else {})))
    return requests


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
        ]  # fmt: skip
        self._heads: list[Any] = [
            None, True, 0, -1, 10**4000, 1.5, [], {}, nest, [[10**12]], [[2**62, 4]], [[-1]], [[0]],
            [[1 << 20] * 1000], [[0] * 100], [["3"]], "Nobody", "Request", "State", "Refusal",
            ["x"] * 50_000, *QUESTIONS, *self._texts,
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
        if fields[field] == "array":
            value = self._array(old.shape)
        elif fields[field] == "float":
            value = self._pick([0.0, -0.0, -1.0, 1e-300, 5e-324, 1e300, 1e-8, 3.0, 1e8])
        elif fields[field] in ("int", "note"):
            value = self._pick([0, 1, 3, 1000, 1001, 10**9, 2**40, 2**62])
            value *= self._pick([1, -1, -2]) if fields[field] == "int" else 1
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
        key = self._pick(["type", "shapes", "on", "to", "split", "fit", "columns", "__class__"])
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


class Watch:
    """Asks, and checks what must hold of every answer."""

    def __init__(self, answer: Callable[[bytes], bytes], values: Array) -> None:
        self._answer, self._values = answer, np.sort(np.abs(values))
        self._replies: dict[str, type[Message]] = {}
        self.answered: set[str] = set()
        self.refused = 0

    def ask(self, data: bytes) -> Message:
        began = time.process_time()
        reply = decode(self._answer(data))
        # Whatever is asked is a matter of milliseconds on so few records; kernels may compile.
        assert time.process_time() - began < 30.0, data[:300]
        assert isinstance(reply, Reply)
        assert reply.site == "a"
        if isinstance(reply, Refusal):
            self.refused += 1
            self._check_words(reply.text, data)
        else:
            question = type(decode(data)).__name__
            self.answered.add(question)
            assert self._replies.setdefault(question, type(reply)) is type(reply)
        return reply

    def _check_words(self, text: str, data: bytes) -> None:
        assert 0 < len(text) <= LONGEST
        assert text.isprintable()
        assert "Traceback" not in text
        assert SECRET not in text or SECRET.encode() in data
        for number in re.findall(r"\d+\.\d+(?:e[+-]?\d+)?", text):
            low, high = np.searchsorted(
                self._values, float(number) * np.array([1 - 1e-6, 1 + 1e-6])
            )
            assert low == high or number.encode() in data, text


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fdatasync", lambda descriptor: None)
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


def files(folder: Path) -> set[Path]:
    """All but what a site may write."""
    kept = {folder / "memory", folder / "books"}
    return {path for path in folder.rglob("*") if not kept & {path, *path.parents}}


def peak() -> int:
    """Bytes that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


@pytest.mark.parametrize("seed", SEEDS)
def test_a_door_withstands_anything(seed: int, tmp_path: Path) -> None:
    records = TableRecords(write_tables(tmp_path)["a"], b"key")
    data = records.site("a", COLUMNS, "y").training
    door = Door("a", records, ALL, Audit(tmp_path / "books" / "a"), tmp_path / "memory", "1")
    watch = Watch(door.answer_bytes, np.append(data.columns, data.y))
    zero = np.zeros(len(COLUMNS))
    view = Standardise(zero, zero + 1.0, 0.0, SPLIT)
    opening = Open(FIT, "y", COLUMNS, SITES, (f"a:{records.fingerprint}",))
    asked = ask_properly(len(COLUMNS), view.name, SPLIT)
    before, memory = files(tmp_path), peak()

    fuzz = Fuzz([*asked, Introduce(), SummariseAudit(FIT)], len(COLUMNS), tmp_path, seed)
    for _ in range(CLOSED):
        watch.ask(fuzz.case())
    assert watch.answered <= {"Introduce", "SummariseAudit"}

    def answers() -> list[bytes]:
        for request in (opening, view):
            assert not isinstance(watch.ask(encode(request)), Refusal)
        return [door.answer_bytes(encode(request)) for request in asked]

    first = answers()
    watch.answered.clear()
    watch.refused = 0
    fuzz = Fuzz([*asked, Introduce(), SummariseAudit(FIT), opening], len(COLUMNS), tmp_path, seed)
    for _ in range(OPEN):
        if isinstance(watch.ask(fuzz.case()), Opened):
            door.answer_bytes(encode(opening))
    assert watch.answered == {*QUESTIONS, "Introduce", "SummariseAudit", "Open"}
    assert watch.refused > OPEN / 3
    assert answers() == first
    assert files(tmp_path) == before
    assert peak() - memory < 100 << 20


@pytest.mark.parametrize("seed", SEEDS)
def test_a_guarded_site_withstands_anything_and_writes_it_down(seed: int, tmp_path: Path) -> None:
    """Far more columns than rows: the kernels that work on X, where the door has those on X'X."""
    (site,) = draw_sites((6,), p := 100)
    assert not site.training.prefers_gram
    site.memory = Memory(tmp_path / "memory")
    guarded = GuardedSite(site, ALL, Audit(tmp_path / "books" / "a"), FIT)

    def answer(data: bytes) -> bytes:
        try:
            return guarded.answer_bytes(data)
        except FedLassoError as error:
            return encode(Refusal(str(error), site="a"))

    watch = Watch(answer, np.append(site.training.columns, site.training.y))
    asked = ask_properly(p, "", "")
    first = [guarded.answer_bytes(encode(request)) for request in asked]
    fuzz = Fuzz(asked, p, tmp_path, seed)
    for _ in range(GUARDED):
        watch.ask(fuzz.case())
    assert watch.answered == set(QUESTIONS)
    assert watch.refused > GUARDED / 3
    assert len(list(Audit(tmp_path / "books" / "a").entries())) == len(asked) + GUARDED
    assert [guarded.answer_bytes(encode(request)) for request in asked] == first
    assert not files(tmp_path)


class Bomb:
    """What an unpickler would run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_codec_reads_a_message_or_raises_its_own_error(seed: int, tmp_path: Path) -> None:
    values = {"array": np.ones((3, 2)), "float": 0.5, "int": 3, "note": 3, "text": "a"}
    messages = [
        cls(**{name: values.get(kind, ("a", "b")) for name, kind in layout(cls)})
        for cls in TYPES.values()
        if cls.__module__.startswith("fedlasso.")
    ]
    fuzz = Fuzz(messages, 3, tmp_path, seed)
    bomb = pickle.dumps(Bomb(tmp_path / "outside"))
    read = 0
    for case in range(CODED):
        data = fuzz.case() if case % 50 else fuzz.case()[:7] + bomb
        try:
            message = decode(data)
        except FedLassoError:
            continue
        read += 1
        assert encode(decode(encode(message))) == encode(message)
    assert CODED / 5 < read < CODED * 4 / 5
    assert not files(tmp_path)


def test_long_heads_are_not_remembered() -> None:
    tracemalloc.start()
    try:
        for case in range(60):
            decode(encode(Rows(to=(f"{case}" * 20_000,) * 20)))
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 4 << 20
    assert most < 40 << 20
