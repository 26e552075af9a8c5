"""The audit's chain of hashes: what is changed, removed or torn shows."""

import errno
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fedlasso import FedLassoError
from fedlasso.atomic_files import CannotWrite
from fedlasso.governance import Audit, Entry
from fedlasso.governance.audit import GENESIS
from fedlasso.governance.audit_report import chain_status

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


@pytest.mark.parametrize("failing", [1, 2])
def test_a_line_that_a_full_disk_cannot_hold_is_removed_and_the_audit_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """The line is written first, and its anchor second; slack in a block may hold the line."""
    audit = Audit(tmp_path / "audit.jsonl", tmp_path / "audit.anchor")
    audit.write(ROWS)
    tried = [0]

    def fsync(_: int) -> None:
        tried[0] += 1
        if tried[0] >= failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for _ in range(3):
        tried[0] = 0
        with monkeypatch.context() as full:
            full.setattr(os, "fsync", fsync)
            with pytest.raises(CannotWrite, match="No space left on device") as refused:
                audit.write(ROWS)
        # What a coordinator may read names no folder of the site.
        assert str(tmp_path) not in refused.value.unquoted
    audit.check_anchor()
    audit.write(ROWS)
    assert len(list(audit.entries())) == 2


def chain_anew(lines: list[bytes]) -> bytes:
    """Lines numbered and chained as if they were all that there ever was."""
    before = GENESIS
    reported = []
    for number, line in enumerate(lines, start=1):
        entry = json.loads(line) | {"number": number, "before": before}
        reported.append(json.dumps(entry, separators=(",", ":")).encode() + b"\n")
        before = hashlib.sha256(reported[-1]).hexdigest()
    return b"".join(reported)


@pytest.mark.parametrize("kept", [[0, 3], [0, 1, 2], [0, 1, 3, 2], []])
def test_an_audit_that_was_cut_and_chained_anew_shows(kept: list[int], tmp_path: Path) -> None:
    path = tmp_path / "books" / "audit.jsonl"
    audit = Audit(path, tmp_path / "audit.anchor")
    for fit in ("f1", "f2", "f2", "f1"):
        audit.write(replace(ROWS, fit=fit))
    audit.check_anchor()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(chain_anew([lines[at] for at in kept]))
    # The chain alone is in order, as it was before there was an anchor.
    assert len(list(audit.entries())) == len(kept)
    with pytest.raises(FedLassoError, match="lines were removed or rewritten"):
        audit.check_anchor()
    # Nothing leaves any more, for nothing can be written down.
    with pytest.raises(FedLassoError, match="lines were removed or rewritten"):
        audit.write(ROWS)
    assert not chain_status(audit)[0]


def test_a_kill_between_a_line_and_its_anchor_is_no_tampering(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.jsonl")
    anchor = tmp_path / "audit.anchor"
    for _ in range(3):
        earlier = anchor.read_bytes() if anchor.exists() else None
        audit.write(ROWS)
        if earlier is None:
            anchor.unlink()
        else:
            anchor.write_bytes(earlier)
        audit.check_anchor()
        audit.write(ROWS)
    assert len(list(audit.entries())) == 6
    anchor.unlink()
    with pytest.raises(FedLassoError, match=r"audit\.anchor, the audit's anchor, is missing"):
        audit.write(ROWS)


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
