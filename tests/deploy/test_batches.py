"""A batch of questions over a network: as single questions, and no site answers more to it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.deploy.doors import DoorLine, make_door, make_doors
from helpers.governance.authority import Authority
from helpers.nets import COLUMNS, FIT, SITES, in_process, opening, write_tables

from fedlasso import FedLassoError
from fedlasso.deploy import network as network_room
from fedlasso.deploy.network import Answer, Network
from fedlasso.errors import Refused
from fedlasso.federation import Prepared, Request, ask_together, decode, encode
from fedlasso.federation.checking import BadReply
from fedlasso.federation.codec import MAX_PARTS, is_batch, pack, unpack
from fedlasso.governance import Door, Entry, Policy
from fedlasso.governance.consent import Transfer, describe_transfers
from fedlasso.governance.door_messages import Refusal
from fedlasso.models import NetworkSource
from fedlasso.procedures.one_shot import AllMoments
from fedlasso.sites import GradientAt, Rows, Viewed, folds, standardise
from fedlasso.sites.views import ColumnSizes, Standardise

P = len(COLUMNS)
ZERO = np.zeros(P)


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    return write_tables(tmp_path)


class Counted(DoorLine):
    """A line that records every exchange, and repeats each if told to."""

    repeats = False

    def __init__(self, doors: dict[str, Door]) -> None:
        super().__init__(doors)
        self.asked: list[bytes] = []
        self.changes: list[Any] = []

    def exchange(self, sites: Sequence[str], question: bytes, seconds: float) -> list[Answer]:
        self.asked.append(question)
        answers = super().exchange(sites, question, seconds)
        if self.repeats:
            assert super().exchange(sites, question, seconds) == answers
        for change in self.changes:
            answers = [a._replace(data=change(a.data)) if a.site == "b" else a for a in answers]
        return answers


def join(doors: dict[str, Door]) -> tuple[Network, Counted]:
    line = Counted(doors)
    network = Network(line, list(doors), 1.0)
    network.open(NetworkSource("project", FIT, "y", COLUMNS))
    line.asked.clear()
    return network, line


def views_of(tables: dict[str, Path]) -> list[Standardise]:
    """Views of three folds, as the server defines them."""
    return [standardise(in_process(tables), split)[0].view for split in folds(3, 0)]


def questions_on(network: Any, views: Sequence[Standardise]) -> list[Prepared]:
    """For each view its definition, and two gradients on it."""
    points = (ZERO, np.linspace(-1.0, 1.0, P))
    return [
        question
        for view in views
        for question in (
            network.prepare(view, own=True),
            *(Viewed(network, view).prepare(GradientAt(b)) for b in points),
        )
    ]


def entries(door: Door) -> list[Entry]:
    return [e for e in door.audit.entries() if e.fit == FIT]


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("repeats", [False, True])
def test_a_batch_is_one_exchange_with_the_answers_of_single_questions(
    masked: bool, repeats: bool, tables: dict[str, Path], tmp_path: Path
) -> None:
    authority = Authority(tmp_path / "authority")
    policy = Policy() if masked else Policy(sums="clear")
    views = views_of(tables)
    alone = [ask_together([q])[0] for q in questions_on(in_process(tables), views)]
    network, line = join(make_doors(tables, policy, authority))
    line.repeats = repeats
    network.receipts = tmp_path / "receipts.txt"
    asked = questions_on(network, views)
    together = ask_together(asked)
    assert len(line.asked) == 1
    for some, others in zip(together, alone, strict=True):
        assert encode_all(some) == encode_all(others)
    # The same question again, alone, with another number.
    assert encode_all(ask_together([asked[-1]])[0]) == encode_all(together[-1])
    for door in line.doors.values():
        names = [e.question for e in entries(door) if e.verdict == "sent"]
        first = ["Standardise", "GradientAt", "GradientAt"] * 3
        assert names[-2 if repeats else -1] == "GradientAt"
        assert names[: len(first)] == first
        sent = {e.sha256 for e in entries(door)}
        lines = network.receipts.read_text().splitlines()
        arrived = [text.split()[1] for text in lines if text.startswith(f"{door.name} ")]
        assert len(arrived) == len(asked) + 1
        assert set(arrived) <= sent


def encode_all(answer: Any) -> list[bytes]:
    return [encode(part) for part in (answer if isinstance(answer, tuple) else (answer,))]


def test_a_refusal_ends_a_batch_and_is_named_by_site(tables: dict[str, Path]) -> None:
    doors = make_doors(tables)
    doors["b"] = make_door(tables["b"], "b", Policy(deny=("GradientAt",)))
    network, _ = join(doors)
    view = views_of(tables)[0]
    asked: list[Request[Any]] = [view, GradientAt(ZERO, on=view.name), Rows()]
    with pytest.raises(Refused, match=r"site 'b': the policy here does not answer GradientAt"):
        network.replies_together(asked)
    verdicts = [(e.question, e.verdict) for e in entries(doors["b"])]
    assert verdicts == [("Standardise", "sent"), ("GradientAt", "refused")]
    assert [e.question for e in entries(doors["a"])] == ["Standardise", "GradientAt", "Rows"]


def test_budgets_are_charged_question_by_question(tmp_path: Path) -> None:
    asked = [GradientAt(np.full(P, float(k))) for k in range(6)]
    spent = {}
    for how in ("batch", "alone"):
        (tmp_path / how).mkdir()
        tables = write_tables(tmp_path / how)
        doors = make_doors(tables, Policy(max_numbers=3 / 120))
        network, _ = join(doors)
        if how == "batch":
            with pytest.raises(Refused, match="would exceed 2% of its rows"):
                network.replies_together(asked)
        else:
            network.replies_together(asked[:3])
            with pytest.raises(Refused, match="would exceed 2% of its rows"):
                network.replies(asked[3])
        sent = [(e.question, e.verdict, e.spent) for e in entries(doors["a"])]
        spent[how] = (doors["a"].lifetime.used("numbers"), sent)
    assert spent["batch"] == spent["alone"]
    assert spent["batch"][0] == pytest.approx(3 / 120)


def batch_to(door: Door, parts: Sequence[bytes | Request[Any]]) -> list[Any]:
    data = pack([part if isinstance(part, bytes) else encode(part) for part in parts])
    answer = door.answer_bytes(data)
    return [decode(part) for part in (unpack(answer) if is_batch(answer) else [answer])]


def test_whatever_a_batch_contains_a_door_answers_or_refuses(tables: dict[str, Path]) -> None:
    door = make_door(tables["a"], "a", Policy(max_bytes=4096))
    (refused,) = batch_to(door, [Rows(), Rows()])
    assert isinstance(refused, Refusal)
    assert "no fit is open" in refused.text
    door.answer_bytes(encode(opening()))
    for hostile in (opening(), AllMoments(), b"FL1 nonsense", pack([encode(Rows())]), b""):
        first, last = batch_to(door, [Rows(), hostile, Rows()])
        assert first.rows == door.records.rows
        assert isinstance(last, Refusal)
    for data in (
        pack([]),
        pack([encode(Rows())])[:-1],
        pack([b""] * (MAX_PARTS + 1)),
        pack([encode(Rows())]) + b"more",
        pack([bytes(4096)]),
        b"FB1",
    ):
        assert isinstance(decode(door.answer_bytes(data)), Refusal)
    assert len(batch_to(door, [Rows()])) == 1


def test_a_door_answers_any_bytes_that_a_batch_may_become(tables: dict[str, Path]) -> None:
    door = make_door(tables["a"], "a")
    door.answer_bytes(encode(opening()))
    whole = pack([encode(Rows()), encode(GradientAt(ZERO)), encode(Rows())])
    rng = np.random.default_rng(0)
    for _ in range(100):
        data = bytearray(whole)
        for at in rng.integers(0, min(len(data), 120), 3):
            data[at] = rng.integers(256)
        answer = door.answer_bytes(bytes(data[: rng.integers(len(data) // 2, len(data) + 1)]))
        parts = unpack(answer) if is_batch(answer) else [answer]
        replies: list[Any] = [decode(part) for part in parts]
        assert all(reply.site == "a" for reply in replies)
        assert not any(isinstance(reply, Refusal) for reply in replies[:-1])


def test_a_batch_beyond_what_sites_read_takes_several_exchanges(
    tables: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    network, line = join(make_doors(tables))
    asked = [GradientAt(np.full(P, float(k))) for k in range(6)]
    most = len(pack([encode(request) for request in asked[:4]]))
    monkeypatch.setattr(network_room, "MAX_BATCH", most)
    replies = network.replies_together(asked)
    assert list(map(len, line.asked)) == [most, len(pack(list(map(encode, asked[4:]))))]
    alone = [network.replies(request) for request in asked]
    assert [encode_all(r) for r in replies] == [encode_all(r) for r in alone]
    # Questions to some sites only go to these.
    line.asked.clear()
    some = network.replies_together([Rows(), Rows(to=("b",)), Rows()])
    assert [len(part) for part in some] == [3, 1, 3]
    assert len(line.asked) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: pack(unpack(data)[:1]), "1 replies to 2 questions"),
        (lambda data: pack(unpack(data) * 2), "4 replies to 2 questions"),
        (lambda data: data + bytes(1 << 26), "bytes that the batch can have"),
        (lambda data: data[:-1], "malformed batch"),
        (lambda data: pack(unpack(data)[::-1]), "impossible reply to"),
    ],
)
def test_a_bad_batch_of_replies_is_rejected(
    change: Any, message: str, tables: dict[str, Path]
) -> None:
    network, line = join(make_doors(tables))
    line.changes.append(change)
    with pytest.raises(BadReply, match=message) as caught:
        network.replies_together([Rows(), ColumnSizes()])
    assert "site 'b'" in str(caught.value)


def test_the_operator_approves_a_batch_once(tables: dict[str, Path]) -> None:
    view = views_of(tables)[0]
    gradients = [GradientAt(np.full(P, float(k)), on=view.name) for k in range(2)]
    asked: list[Request[Any]] = [view, *gradients, AllMoments()]
    shown: list[Sequence[Transfer]] = []
    decision = [False]

    def approve(transfers: Sequence[Transfer]) -> bool:
        shown.append(transfers)
        return decision[0]

    door = make_door(tables["a"], "a", Policy(approval=True))
    door.approve = approve
    door.answer_bytes(encode(opening()))
    (refused,) = batch_to(door, asked)
    assert isinstance(refused, Refusal)
    assert [e.why for e in entries(door)] == ["the transfer was not approved here"]
    # The view that nobody approved does not exist.
    assert "not stored" in batch_to(door, gradients[:1])[0].text
    decision[0] = True
    shown.clear()
    *sent, last = batch_to(door, asked)
    assert len(shown) == 1
    assert isinstance(last, Refusal)
    assert [type(reply).__name__ for reply in sent] == ["Sizes", "GradientSum", "GradientSum"]
    for (_, seen), reply in zip(shown[0], sent, strict=True):
        assert encode(seen) == encode(reply)
    text = describe_transfers(shown[0])
    numbers = sum(entry.numbers for entry, _ in shown[0])
    assert f"3 questions in one batch for fit {FIT}" in text
    assert f"Would leave in all, in clear: {numbers} numbers, {8 * numbers} bytes" in text
    assert "2. GradientAt" in text
    assert [e.verdict for e in entries(door)][-4:] == ["sent"] * 3 + ["refused"]


def test_an_answer_that_was_not_shown_does_not_leave(tables: dict[str, Path]) -> None:
    door = make_door(tables["a"], "a", Policy(approval=True))
    door.answer_bytes(encode(opening()))
    site = door._site
    assert site is not None

    def approve(transfers: Sequence[Transfer]) -> bool:
        # The records change while the operator reads.
        site.site.training.response.y[:] += 1.0
        return True

    site.approve = approve
    first, refused = batch_to(door, [Rows(), GradientAt(ZERO)])
    assert first.rows == door.records.rows
    assert isinstance(refused, Refusal)


def test_a_dry_run_answers_no_part_of_a_batch(tables: dict[str, Path]) -> None:
    door = make_door(tables["a"], "a", replace(Policy(), dry_run=True, approval=True))
    door.answer_bytes(encode(opening()))
    (refused,) = batch_to(door, [Rows(), Rows()])
    assert isinstance(refused, Refusal)
    assert [e.why for e in entries(door)] == ["dry run: 1 numbers would have left"]


def test_sites_are_asked_once_for_a_batch_by_name() -> None:
    with pytest.raises(FedLassoError, match="no site is called 'z'"):
        Network(DoorLine({}), SITES, 1.0).replies_together([Rows(to=("z",))])
