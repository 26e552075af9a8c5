"""The door of a site without a network: introductions, openings, refusals, fingerprints."""

from pathlib import Path
from typing import Any

import pytest
from helpers.nets import COLUMNS, FIT, SECRET, opening, write_tables

from fedlasso import FedLassoError, __version__
from fedlasso.deploy.site_data import TableRecords
from fedlasso.federation import Message, Request, decode, encode
from fedlasso.governance import Audit, Door, Policy
from fedlasso.governance.door_messages import (
    AuditSummary,
    Introduce,
    Introduction,
    Opened,
    Refusal,
    SummariseAudit,
)
from fedlasso.sites import Rows
from fedlasso.sites.questions import RowCount


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    return write_tables(tmp_path)


def door(path: Path, policy: Policy | None = None, name: str = "a", version: str = "") -> Door:
    records = TableRecords(path, b"key")
    books = Audit(path.parent / "books" / f"{name}.jsonl")
    memory = path.parent / "memory"
    return Door(name, records, policy or Policy(), books, memory, version or __version__)


def ask(site: Door, request: Request[Any]) -> Message:
    return decode(site.answer_bytes(encode(request)))


def test_a_door_introduces_opens_answers_and_keeps_books(tables: dict[str, Path]) -> None:
    site = door(tables["a"], Policy(columns=(*COLUMNS, "y")))
    who = ask(site, Introduce())
    assert isinstance(who, Introduction)
    assert (who.site, who.version, who.rows) == ("a", __version__, 120)
    assert set(who.columns) == {*COLUMNS, "y"}
    refused = ask(site, Rows())
    assert isinstance(refused, Refusal)
    assert refused.text == "no fit is open here"
    assert isinstance(ask(site, opening(fingerprints=(f"a:{who.fingerprint}",))), Opened)
    rows = ask(site, Rows())
    assert isinstance(rows, RowCount)
    assert rows.rows == 120
    books = ask(site, SummariseAudit(FIT))
    assert isinstance(books, AuditSummary)
    assert len(books.hashes) == 1


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"sites": ("a", "b")}, "the fit has 2 sites, but the policy here requires at least 3"),
        ({"target": "none"}, "there is no column 'none' here"),
        ({"columns": ("x00", "x01", "x00")}, "a column is named twice; name each once"),
        ({"columns": ("x00", "note")}, "there is no column 'note' here"),
        ({"fingerprints": ("a:00",)}, "the data file has changed since this fit began"),
        ({"fit": "../../etc"}, "the fit's identity is not valid"),
    ],
)
def test_a_door_refuses_in_its_own_words(
    changes: dict[str, Any], text: str, tables: dict[str, Path]
) -> None:
    site = door(tables["a"], Policy(columns=(*COLUMNS, "y")))
    refused = ask(site, opening(**changes))
    assert isinstance(refused, Refusal)
    assert text in refused.text
    (entry,) = site.audit.entries()
    assert (entry.question, entry.verdict, entry.why) == ("Open", "refused", refused.text)


def test_changed_data_are_refused_without_a_value(tables: dict[str, Path]) -> None:
    site = door(tables["a"])
    ask(site, opening())
    tables["a"].touch()
    assert isinstance(ask(site, Rows()), RowCount)
    tables["a"].write_text(tables["a"].read_text().replace(SECRET, "changed"))
    refused = ask(site, Rows())
    assert isinstance(refused, Refusal)
    assert refused.text.startswith("the data file has changed since it was read; restore it")
    assert isinstance(decode(site.answer_bytes(b"FL1 nonsense")), Refusal)


def test_a_table_that_nobody_can_read_is_refused_without_a_value(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"u,v\n1,2\n{SECRET},3,4\n")
    with pytest.raises(FedLassoError) as bad:
        TableRecords(path)
    # The row is for the owner of the file.
    assert str(bad.value).startswith("a.csv is not a CSV table: row 2 has 3 cells")
    assert SECRET not in str(bad.value)
    assert bad.value.unquoted == "a.csv is not a readable table"


def test_a_message_is_decoded_once(
    tables: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fedlasso.federation import codec

    read: list[bytes] = []

    def count(data: bytes) -> Message:
        read.append(data)
        return decode(data)

    site = door(tables["a"])
    monkeypatch.setattr(codec, "decode", count)
    for request in (Introduce(), opening(), Rows(), Rows()):
        assert not isinstance(ask(site, request), Refusal)
    assert len(read) == 4


def test_what_is_no_question_is_refused_and_written_down(tables: dict[str, Path]) -> None:
    site = door(tables["a"], Policy(max_bytes=1000))
    ask(site, opening())
    for data, text in ((encode(Opened()), "not a question"), (bytes(2000), "longer than 1000")):
        refused = decode(site.answer_bytes(data))
        assert isinstance(refused, Refusal)
        assert text in refused.text
        assert list(site.audit.entries())[-1].why == refused.text


def test_a_door_names_the_heads_that_its_audit_has_lost(tables: dict[str, Path]) -> None:
    site = door(tables["a"])
    ask(site, Introduce())
    first = site.audit.head
    ask(site, Introduce())
    known = (f"a:1:{first}", f"a:2:{site.audit.head}")
    # An audit that was written anew has as many lines, and other hashes.
    others = (f"a:1:{'0' * 64}", f"a:2:{first}", f"a:9:{first}")
    summary = ask(site, SummariseAudit(FIT, (*known, *others, f"b:1:{'0' * 64}")))
    assert isinstance(summary, AuditSummary)
    assert summary.lost == others
