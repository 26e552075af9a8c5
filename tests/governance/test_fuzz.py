"""Whatever bytes come in, a site answers properly or refuses in a few words, and is as before."""

import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.draws import draw_sites
from helpers.governance.hostile import ALL, Fuzz, ask_properly, wrong_forms
from helpers.kinds import own_messages
from helpers.loops import loop
from helpers.nets import COLUMNS, FIT, SECRET, opening, write_tables

from fedlasso import FedLassoError, Site
from fedlasso.deploy.schemas import write_schema
from fedlasso.deploy.site_data import TableRecords
from fedlasso.federation import Message, Reply, Request, decode, encode
from fedlasso.federation.checking import LONGEST_REFUSAL
from fedlasso.federation.codec import _read_head, _write_head
from fedlasso.federation.fixed_point import Words
from fedlasso.federation.messages import layout
from fedlasso.governance import Audit, Door, GuardedSite, policy
from fedlasso.governance.door_messages import (
    DescribeColumns,
    FindOthers,
    Introduce,
    Opened,
    Refusal,
    SummariseAudit,
)
from fedlasso.numerics import Array
from fedlasso.sites import Memory, Rows
from fedlasso.sites.views import Standardise
from fedlasso.tables import Column, Schema

# Divisions by zero and overflows are what hostile numbers are for.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
SEEDS = range(4)
OPEN, CLOSED, GUARDED, CODED = 900, 100, 500, 500
SPLIT = "holdout 0.2 0"


class Watch:
    """Asks, and checks what must hold of every answer."""

    def __init__(self, answer: Callable[[bytes], bytes], values: Array) -> None:
        self._answer, self._values = answer, np.sort(np.abs(values))
        self._replies: dict[str, str] = {}
        self.answered: set[str] = set()

    def ask(self, data: bytes) -> Message:
        reply = decode(self._answer(data))
        assert isinstance(reply, Reply)
        assert reply.site == "a"
        if isinstance(reply, Refusal):
            self._check_words(reply.text, data)
            return reply
        question = decode(data)
        # Whoever says how many steps to take gets no more than the policy takes at once.
        if hasattr(question, "epochs"):
            assert reply.steps <= ALL.max_steps
        name = type(question).__name__
        self.answered.add(name)
        kind = reply.of if isinstance(reply, Words) else type(reply).__name__
        assert self._replies.setdefault(name, kind) == kind
        return reply

    def ask_all(self, requests: list[Request[Any]]) -> list[bytes]:
        """Answers to proper questions, none of them refused."""
        replies = [self.ask(encode(request)) for request in requests]
        assert not [r.text for r in replies if isinstance(r, Refusal)]
        return [encode(reply) for reply in replies]

    def _check_words(self, text: str, data: bytes) -> None:
        assert 0 < len(text) <= LONGEST_REFUSAL
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


class House:
    """A door with all that is asked there properly."""

    def __init__(self, folder: Path) -> None:
        records = TableRecords(write_tables(folder)["a"], b"key")
        data = records.site("a", opening()).training
        audit = Audit(folder / "books" / "a")
        self.door = Door("a", records, ALL, audit, folder / "memory", "1")
        self.watch = Watch(self.door.answer_bytes, np.append(data.columns, data.y))
        zero = np.zeros(len(COLUMNS))
        self.view = Standardise(zero, zero + 1.0, 0.0, SPLIT)
        self.opening = opening(fingerprints=(f"a:{records.fingerprint}",))
        note = Schema("y", (Column("note", "text", ("known", "(other)")),))
        self.with_text = opening(note, missing="mean", na=("NA",))
        self.always: list[Request[Any]] = [
            Introduce(),
            SummariseAudit(FIT),
            DescribeColumns(FIT, "y", ("x00", "note"), ("NA",), 10),
            FindOthers(FIT, "y", ("note",), write_schema(note), ()),
        ]
        self.asked = ask_properly(len(COLUMNS), self.view.name, SPLIT)

    def answers(self) -> list[bytes]:
        """What is answered once a fit is open."""
        self.watch.ask_all([self.opening, self.view])
        return self.watch.ask_all(self.asked)


@pytest.mark.full
@loop("seed", SEEDS)
def test_a_door_withstands_anything(seed: int, tmp_path: Path) -> None:
    house = House(tmp_path)
    watch, before = house.watch, files(tmp_path)
    fuzz = Fuzz([*house.asked, *house.always], len(COLUMNS), tmp_path, seed)
    for _ in range(CLOSED):
        watch.ask(fuzz.case())
    assert watch.answered <= {type(request).__name__ for request in house.always}
    first = house.answers()
    openings = [house.opening, house.with_text]
    fuzz = Fuzz([*house.asked, *house.always, *openings], len(COLUMNS), tmp_path, seed)
    for _ in range(OPEN):
        if isinstance(watch.ask(fuzz.case()), Opened):
            watch.ask_all([house.opening])
    assert house.answers() == first
    watch.ask_all(house.always)
    assert files(tmp_path) == before


class Guarded:
    """A site with far more columns than rows: the kernels that work on X, not those on X'X."""

    def __init__(self, folder: Path) -> None:
        (site,) = draw_sites((6,), p := 100)
        assert not site.least_squares.prefers_gram
        site.memory = Memory(folder / "memory")
        self.p, self.audit = p, Audit(folder / "books" / "a")
        self._site = GuardedSite(site, ALL, self.audit, FIT)
        self.watch = Watch(self._answer, np.append(site.training.columns, site.training.y))
        self.asked = ask_properly(p, "", "")

    def _answer(self, data: bytes) -> bytes:
        try:
            return self._site.answer_bytes(data)
        except FedLassoError as error:
            return encode(Refusal(str(error), site="a"))


@pytest.mark.standard
@loop("seed", SEEDS)
def test_a_guarded_site_withstands_anything_and_writes_it_down(seed: int, tmp_path: Path) -> None:
    site = Guarded(tmp_path)
    first = site.watch.ask_all(site.asked)
    fuzz = Fuzz(site.asked, site.p, tmp_path, seed)
    for _ in range(GUARDED):
        site.watch.ask(fuzz.case())
    assert len(list(site.audit.entries())) == len(site.asked) + GUARDED
    assert site.watch.ask_all(site.asked) == first
    assert not files(tmp_path)


@pytest.mark.full
def test_a_question_wrong_in_one_way_is_refused_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house, site = House(tmp_path), Guarded(tmp_path / "guarded")
    house.answers()
    reached: list[Request[Any]] = []

    def answer(self: Site, request: Request[Any]) -> Reply:
        reached.append(request)
        raise AssertionError

    monkeypatch.setattr(Site, "answer", answer)
    asked = [(house.watch, data) for request in house.asked for data in wrong_forms(request)]
    asked += [(site.watch, data) for request in site.asked for data in wrong_forms(request)]
    for watch, data in asked:
        assert isinstance(watch.ask(data), Refusal)
    assert reached == []
    # The codec stops some by itself. The others reach the kernels, which trust shapes, if nobody
    # checks shapes and roles.
    monkeypatch.setattr(policy, "check_fields", lambda request, p, max_steps: None)
    for watch, data in asked:
        watch._answer(data)
    assert len(reached) > len(asked) / 4


class Bomb:
    """What an unpickler would run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@loop("seed", SEEDS)
def test_the_codec_reads_a_message_or_raises_its_own_error(seed: int, tmp_path: Path) -> None:
    arrays = dict.fromkeys(("array", "optional array"), np.ones((3, 2)))
    words = np.arange(3, dtype=np.uint64) + np.uint64(2**64 - 2)
    values = arrays | {"words": words, "float": 0.5, "int": 3, "note": 3, "text": "a"}
    values |= {"whole array": np.array([3, 0]), "flag": True}
    messages = [
        cls(**{name: values.get(kind, ("a", "b")) for name, kind in layout(cls)})
        for cls in own_messages().values()
    ]
    for message in messages:
        assert encode(replace(decode(encode(message)))) == encode(replace(message))
    fuzz = Fuzz(messages, 3, tmp_path, seed)
    bomb = pickle.dumps(Bomb(tmp_path / "outside"))
    for case in range(CODED):
        data = fuzz.case() if case % 50 else fuzz.case()[:7] + bomb
        try:
            message = decode(data)
        except FedLassoError:
            continue
        assert encode(replace(decode(encode(message)))) == encode(replace(message))
    assert not files(tmp_path)


def test_long_heads_are_not_remembered() -> None:
    kept = [cache.cache_info().currsize for cache in (_read_head, _write_head)]
    for case in range(60):
        decode(encode(Rows(to=(f"{case}" * 20_000,) * 20)))
    assert [cache.cache_info().currsize for cache in (_read_head, _write_head)] == kept
