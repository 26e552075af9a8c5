"""Doors, kits and commands without a network: consent, fingerprints, one-line errors."""

import socket
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nvflare")

from nets import COLUMNS, SECRET, SITES, run, write_tables

from fedlasso import FedLassoError, __version__
from fedlasso.deploy.link import Network, Opening
from fedlasso.deploy.nvflare.engine import check_certificate, check_server
from fedlasso.deploy.nvflare.kit import read_kit
from fedlasso.deploy.nvflare.local import reserve_port
from fedlasso.deploy.nvflare.project import create_project
from fedlasso.deploy.records import TableRecords
from fedlasso.federation import Message, Request, decode, encode
from fedlasso.governance import Audit, Desk, Door, Entry, Policy
from fedlasso.governance.door import (
    AuditSummary,
    Introduce,
    Introduction,
    Open,
    Opened,
    Refusal,
    SummariseAudit,
)
from fedlasso.sites import Rows
from fedlasso.sites.questions import RowCount

pytestmark = pytest.mark.filterwarnings("ignore")
FIT = "ab" * 8


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


def opening(**changes: Any) -> Open:
    given: dict[str, Any] = {
        "fit": FIT, "target": "y", "columns": COLUMNS, "sites": SITES, "fingerprints": (),
    }  # fmt: skip
    return Open(**(given | changes))


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
        ({"sites": ("a", "b")}, "a fit of 2 sites, and the policy here joins 3 or more"),
        ({"target": "none"}, "there is no column 'none' here"),
        ({"columns": ("x00", "x01", "x00")}, "a column is named twice; name each once"),
        ({"columns": ("x00", "note")}, "there is no column 'note' here"),
        ({"fingerprints": ("a:00",)}, "the data file is not the one that this fit began with"),
        ({"fit": "../../etc"}, "the fit has no proper identity"),
    ],
)
def test_a_door_refuses_in_its_own_words(
    changes: dict[str, Any], text: str, tables: dict[str, Path]
) -> None:
    site = door(tables["a"], Policy(columns=(*COLUMNS, "y")))
    refused = ask(site, opening(**changes))
    assert isinstance(refused, Refusal)
    assert text in refused.text
    (entry,) = site._audit.entries()
    assert (entry.question, entry.verdict, entry.why) == ("Open", "refused", refused.text)


def test_changed_data_and_text_in_a_column_are_refused_without_a_value(
    tables: dict[str, Path],
) -> None:
    site = door(tables["a"])
    refused = ask(site, opening(columns=("note",)))
    assert isinstance(refused, Refusal)
    assert "column 'note' is not numeric" in refused.text
    assert SECRET not in refused.text
    ask(site, opening())
    tables["a"].touch()
    assert isinstance(ask(site, Rows()), RowCount)
    tables["a"].write_text(tables["a"].read_text().replace(SECRET, "changed"))
    refused = ask(site, Rows())
    assert isinstance(refused, Refusal)
    assert refused.text.startswith("the data file has changed since it was read; restore it")
    assert isinstance(decode(site.answer_bytes(b"FL1 nonsense")), Refusal)


def test_gaps_and_text_are_named_by_column_without_a_value(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    lines = ["u,v,w,y", f"1,,{SECRET},2", "1,2,b,3", "inf,3,c,4"] + ["1,2,d,5"] * 30
    path.write_text("\n".join(lines))
    refused = ask(door(path), opening(columns=("u", "v", "w")))
    assert isinstance(refused, Refusal)
    for text in (
        "site 'a': column 'w' is not numeric; column 'u' has 1 missing or infinite values; "
        "column 'v' has 1 missing or infinite values",
        "takes numeric columns without gaps",
    ):
        assert text in refused.text
    assert SECRET not in refused.text
    path.write_text(f"u,v\n1,2\n{SECRET},3,4\n")
    with pytest.raises(FedLassoError) as bad:
        TableRecords(path)
    assert str(bad.value) == "a.csv is no readable table"


class Doors(Network):
    """The network's side of the line with doors in this process behind it."""

    def __init__(self, doors: Sequence[Door]) -> None:
        super().__init__(None, [d.name for d in doors], 1.0)  # type: ignore[arg-type]
        self.doors = {d.name: d for d in doors}

    def _exchange(
        self, names: Sequence[str], data: bytes, echo: bool = False
    ) -> list[tuple[str, str, bytes]]:
        return [(n, "reply", self.doors[n].answer_bytes(data)) for n in names]


def test_versions_and_columns_must_agree(tables: dict[str, Path]) -> None:
    doors = [door(path, name=name) for name, path in tables.items()]
    Doors(doors).open(Opening(FIT, "y", COLUMNS))
    doors[1] = door(tables["b"], name="b", version="0.0.9")
    with pytest.raises(FedLassoError, match=r"site 'b' runs fedlasso 0.0.9, the coordinator"):
        Doors(doors).open(Opening(FIT, "y"))
    doors[1] = door(tables["b"], Policy(columns=(*COLUMNS[1:], "y", "note")), "b")
    with pytest.raises(FedLassoError, match="columns differ, 'a' alone: x00; 'c' alone: x00"):
        Doors(doors).open(Opening(FIT, "y"))


def test_a_refusal_is_no_receipt(tables: dict[str, Path], tmp_path: Path) -> None:
    network = Doors([door(path, name=name) for name, path in tables.items()])
    network.open(Opening(FIT, "y", COLUMNS))
    network.receipts = tmp_path / "receipts.txt"
    tables["b"].write_text(tables["b"].read_text().replace(SECRET, "changed"))
    with pytest.raises(FedLassoError, match="site 'b': the data file has changed"):
        network.ask(Rows())
    lines = network.receipts.read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["a", "c"]


def test_a_desk_asks_before_a_reply_leaves(tmp_path: Path) -> None:
    import threading

    desk, texts = Desk(tmp_path), []
    words: list[bool] = []
    entry = Entry("ab" * 16, "Rows", "sent", numbers=1, payload=8, asked="cd" * 32)
    waiter = threading.Thread(target=lambda: words.append(desk.approve(entry, RowCount(30))))
    waiter.start()
    while waiter.is_alive():
        desk.serve(lambda text: texts.append(text) or "n")  # type: ignore[func-returns-value]
    waiter.join()
    assert words == [False]
    assert "Allow transfer?" in texts[0]
    assert '"rows": 30' in texts[0]


@pytest.mark.parametrize(
    "command",
    ["federation init", "federation start-server", "federation status", "federation fit",
     "federation resume", "federation demo", "site check", "site start", "site audit"],
)  # fmt: skip
def test_every_command_has_help_with_an_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        run(*command.split(), "--help")
    assert stopped.value.code == 0
    assert f"Example: fedlasso {command}" in " ".join(capsys.readouterr().out.split())


def test_bad_usage_is_one_line_and_exit_code_two(
    tables: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project, data = tmp_path / "p", tables["a"]
    kept = reserve_port()
    port = kept.getsockname()[1]
    with socket.create_server(("", port)):
        create_project(project, f"localhost:{port}", ["a", "b", "c"])
        kit = project / "kits" / "a"
        fit = ["federation", "fit", project, "--target", "y", "--out", tmp_path / "model"]
        cases: list[tuple[list[object], str]] = [
            (["federation", "start-server", project], f"port {port} is in use"),
            (["federation", "start-server", tmp_path / "none"], "holds no project"),
            (["federation", "init", project, "--server", "h:1", "--site", "a"], "is not empty"),
            (["federation", "init", "x", "--server", "h", "--site", "a"], "give HOST:PORT"),
            (["federation", "init", "x", "--server", "h:1"], "at least one --site"),
            (["federation", "init", "x", "--server", "h:1", "--site", "a b"], "use letters"),
            ([*fit, "--validation", "1"], "validation is 1.0; give a share between 0 and 1"),
            ([*fit, "--procedure", "none"], "'none'"),
            ([*fit, "--columns", "u", "--drop", "v"], "give --columns or --drop, not both"),
            (["federation", "resume", tmp_path / "none"], "holds no fit over the network"),
            (["site", "start", tmp_path, data], "is no kit"),
            (["site", "start", project / "server", data], "is a kit for a server"),
            (["site", "start", kit, tmp_path / "none.csv"], "cannot read none.csv"),
            (["site", "check", kit, data, "--policy", "none.toml"], "cannot read none.toml"),
            (["site", "audit", kit, "--fit", "ff"], "nothing in the audit"),
        ]
        for arguments, message in cases:
            assert run(*arguments) == 2, arguments
            errors = capsys.readouterr().err
            assert message in errors
            assert errors.count("\n") == 1
    cases = [
        (["federation", "status", project], f"no server at localhost:{port}"),
        (["site", "start", kit, data], f"no server at localhost:{port}"),
    ]
    with kept:
        for arguments, message in cases:
            assert run(*arguments) == 2
            assert message in capsys.readouterr().err
    assert run("site", "check", kit, data) == 0
    said = capsys.readouterr().out
    assert "120 rows, 14 columns" in said
    assert "column 'note' is not numeric" in said
    assert "Would be refused:  AllMoments, MomentsOf" in said
    (kit / "startup" / "client.crt").write_text("changed")
    assert run("site", "check", kit, data) == 2
    assert "the seal is broken" in capsys.readouterr().err


def test_names_that_do_not_resolve_and_old_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_project(tmp_path / "p", "no-such-host.invalid:8443", ["a"])
    kit = tmp_path / "p" / "kits" / "a"
    with pytest.raises(FedLassoError, match=r"the name no-such-host.invalid cannot be resolved"):
        check_server(kit, read_kit(kit))

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> "Later":
            return cls(2100, 1, 1, tzinfo=UTC)

    monkeypatch.setattr("fedlasso.deploy.nvflare.engine.datetime", Later)
    with pytest.raises(FedLassoError, match=r"certificate client.crt of 'a' expired on"):
        check_certificate(kit, read_kit(kit))


def test_a_line_that_says_nothing_of_us_is_no_reply(tables: dict[str, Path]) -> None:
    doors = [door(path, name=name) for name, path in tables.items()]
    network = Doors(doors)
    network.doors["b"] = doors[0]
    with pytest.raises(FedLassoError, match="site 'b' answered in another's name"):
        network.ask(Introduce())
