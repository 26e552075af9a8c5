"""The audit's chain of hashes: what is changed, removed or torn shows."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fedlasso import FedLassoError
from fedlasso.governance import Audit, Entry

ROWS = Entry("f1", "Rows", "sent", numbers=1, payload=8)


def test_a_changed_removed_or_inserted_line_breaks_the_chain(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    for _ in range(4):
        Audit(path).write(ROWS)
    lines = path.read_bytes().splitlines(keepends=True)
    head = Audit(path).head
    changes: list[Callable[[list[bytes]], list[bytes]]] = [
        lambda a: [a[0], a[1].replace(b'"payload":8', b'"payload":9'), *a[2:]],
        lambda a: [a[0], *a[2:]],
        lambda a: [a[0], a[0], *a[1:]],
        lambda a: [a[1], a[0], *a[2:]],
    ]
    for change in changes:
        path.write_bytes(b"".join(change(lines)))
        with pytest.raises(FedLassoError, match="the chain breaks at line"):
            list(Audit(path).entries())
    # Lines missing at the end show against the head that the coordinator has noted.
    path.write_bytes(b"".join(lines[:-1]))
    assert Audit(path).head != head


def test_a_line_torn_by_a_kill_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    Audit(path).write(ROWS)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    assert len(list(Audit(path).entries())) == 1
    Audit(path).write(ROWS)
    assert [e.number for e in Audit(path).entries()] == [1, 2]


@pytest.mark.parametrize("line", [b"{}", b"[]", b"nonsense", b'{"fit":1,"question":"a"}'])
def test_a_line_that_is_no_entry_is_named(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(line + b"\n")
    with pytest.raises(FedLassoError, match="line 1 is not an audit entry"):
        list(Audit(path).entries())
    with pytest.raises(FedLassoError, match="the audit file is damaged"):
        Audit(path).write(ROWS)
