"""Books that were tampered with: the journal here, the receipts here, an audit at a site."""

import hashlib
import json
import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.deploy.doors import Project
from helpers.nets import COLUMNS, in_process, numbers, same_files, write_tables

from fedlasso.deploy.run import begin_plan, run_plan
from fedlasso.errors import FedLassoError, Stopped
from fedlasso.federation import decode, encode
from fedlasso.federation.ledger import read_journal
from fedlasso.fitting import Settings
from fedlasso.models import (
    FitPlan,
    NetworkSource,
    make_model,
    read_document,
    read_plan,
    write_model,
)
from fedlasso.sites import Rows

# It asks for gradients, of which a site remembers nothing, so that a shorter journal can go on.
SETTINGS = Settings(procedure="FISTA", penalty=0.1, uploads=12)
CUT = 12
Edit = Callable[[list[list[bytes]]], None]


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    return write_tables(tmp_path)


@pytest.fixture
def alone(tables: dict[str, Path], tmp_path: Path) -> Path:
    write_model(tmp_path / "alone", make_model(in_process(tables), SETTINGS, numbers()))
    return tmp_path / "alone"


@pytest.fixture
def project(tables: dict[str, Path]) -> Project:
    return Project(tables)


def begin(out: Path) -> Path:
    begin_plan(out, FitPlan(SETTINGS, NetworkSource("project", "", "y", COLUMNS)))
    return out


@pytest.fixture
def out(project: Project, tmp_path: Path) -> Path:
    """A fit that was interrupted halfway."""
    out = begin(tmp_path / "model")
    project.cuts = [CUT]
    with pytest.raises(FedLassoError, match="did not answer"):
        run_plan(out, project.connect)
    return out


def read_all(journal: Path) -> list[list[bytes]]:
    return [list(kept.replies) for kept in read_journal(journal)]


def rewrite(journal: Path, edit: Edit) -> None:
    """Edit the replies in a journal and recompute every hash in it, as a forger would."""
    kept = read_all(journal)
    paths = sorted(journal.glob("*.entry"))
    heads = []
    for path in paths:
        data = path.read_bytes()
        (length,) = struct.unpack_from("<Q", data)
        heads.append(json.loads(data[8 : 8 + length]))
    edit(kept)
    before = ""
    each = iter(kept)
    for path, head in zip(paths, heads, strict=True):
        parts = list(islice(each, len(head["questions"])))
        head |= {"before": before, "sizes": [[len(data) for data in part] for part in parts]}
        reported = json.dumps(head).encode()
        body = struct.pack("<Q", len(reported)) + reported + b"".join(chain(*parts))
        before = hashlib.sha256(body).hexdigest()
        path.write_bytes(body + bytes.fromhex(before))


def gradients(kept: Sequence[Sequence[bytes]]) -> list[int]:
    """Which entries hold gradients."""
    read = [decode(replies[0]) for replies in kept]
    return [k for k, reply in enumerate(read) if getattr(reply, "of", "") == "GradientSum"]


def triple(kept: list[list[bytes]]) -> None:
    """Site b's last gradient times three."""
    last = gradients(kept)[-1]
    reply: Any = decode(kept[last][1])
    kept[last][1] = encode(replace(reply, words=np.uint64(3) * reply.words))


def swap(kept: list[list[bytes]]) -> None:
    """Site b's last two gradients in each other's place."""
    one, other = gradients(kept)[-2:]
    kept[one][1], kept[other][1] = kept[other][1], kept[one][1]


def same(kept: list[list[bytes]]) -> None:
    """Nothing but the hashes, computed anew."""


def test_the_forger_writes_a_journal_that_is_right_but_for_the_edit(
    project: Project, out: Path, alone: Path
) -> None:
    rewrite(out / "journal", same)
    run_plan(out, project.connect)
    assert same_files(out, alone)


@pytest.mark.parametrize("edit", [triple, swap])
def test_a_journal_that_was_edited_is_refused_by_entry(
    edit: Edit, project: Project, out: Path, alone: Path
) -> None:
    rewrite(out / "journal", edit)
    with pytest.raises(Stopped, match=r"\d{6}\.entry: the reply of site 'b' is not in") as reported:
        run_plan(out, project.connect)
    named = Path(str(reported.value).partition(":")[0])
    entries = sorted((out / "journal").glob("*.entry"))
    assert named in entries[-2:]
    assert not (out / "model.json").exists()
    # As the error says.
    for entry in entries[entries.index(named) :]:
        entry.unlink()
    run_plan(out, project.connect)
    assert same_files(out, alone)


def test_receipts_that_were_edited_as_well_do_not_help(project: Project, out: Path) -> None:
    kept = read_all(out / "journal")
    old = kept[gradients(kept)[-1]][1]
    rewrite(out / "journal", triple)
    kept = read_all(out / "journal")
    new = kept[gradients(kept)[-1]][1]
    receipts = out / "receipts.txt"
    true, forged = (hashlib.sha256(data).hexdigest() for data in (old, new))
    assert true in receipts.read_text()
    receipts.write_text(receipts.read_text().replace(true, forged))
    with pytest.raises(Stopped, match="site 'b' is not in the site's own audit"):
        run_plan(out, project.connect)


@pytest.mark.parametrize("noise", [b"", b"noise", encode(Rows())])
def test_what_is_no_reply_is_refused_by_entry(noise: bytes, project: Project, out: Path) -> None:
    entries = [kept.path.name for kept in read_journal(out / "journal")]

    def put(kept: list[list[bytes]]) -> None:
        kept[entries.index("000002.entry")][1] = noise

    rewrite(out / "journal", put)
    with pytest.raises(Stopped, match=r"000002\.entry is damaged"):
        run_plan(out, project.connect)


def test_an_entry_without_a_head_is_damaged(project: Project, out: Path) -> None:
    for body in (b"", b"\0" * 8, b"\x02" + b"\0" * 7 + b"{}"):
        (out / "journal" / "000001.entry").write_bytes(body + hashlib.sha256(body).digest())
        with pytest.raises(Stopped, match=r"000001\.entry is damaged"):
            run_plan(out, project.connect)


def test_a_reply_without_a_receipt_is_refused(project: Project, out: Path) -> None:
    (out / "receipts.txt").unlink()
    with pytest.raises(Stopped, match=r"000000\.entry: .*site 'a' is not in receipts\.txt"):
        run_plan(out, project.connect)


def test_a_finished_fit_is_compared_at_its_end_too(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal is edited while the fit runs: the model is not written."""
    out = begin(tmp_path / "model")
    real = make_model

    def meanwhile(*given: Any, **named: Any) -> Any:
        document = real(*given, **named)
        rewrite(out / "journal", triple)
        return document

    monkeypatch.setattr("fedlasso.deploy.run.models.make_model", meanwhile)
    with pytest.raises(Stopped, match=r"\d{6}\.entry: the reply of site 'b' is not in"):
        run_plan(out, project.connect)
    assert not (out / "model.json").exists()


def test_without_the_comparison_an_edited_journal_gives_another_model(
    project: Project, out: Path, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedlasso.deploy.run.reconcile", lambda *given: {})
    rewrite(out / "journal", triple)
    run_plan(out, project.connect)
    edited = read_document(out / "model.json")
    assert edited.coefficients != read_document(alone / "model.json").coefficients


def cut_out(audit: Path, fit: str) -> None:
    """Remove a whole fit from an audit, chain the rest anew and move the anchor to its end."""
    before, number = "0" * 64, 0
    lines = []
    for line in audit.read_text().splitlines():
        entry = json.loads(line)
        if entry["fit"] != fit:
            number += 1
            entry |= {"before": before, "number": number}
            lines.append(json.dumps(entry, separators=(",", ":")) + "\n")
            before = hashlib.sha256(lines[-1].encode()).hexdigest()
    audit.write_text("".join(lines))
    anchor = audit.with_suffix(".anchor")
    anchor.write_text(json.dumps({"number": number, "head": before}))


@pytest.mark.parametrize("anchored", [True, False])
def test_a_fit_that_was_cut_out_of_a_sites_audit_shows(
    anchored: bool, project: Project, tmp_path: Path
) -> None:
    earlier = begin(tmp_path / "earlier")
    run_plan(earlier, project.connect)
    later = begin(tmp_path / "later")
    project.cuts = [CUT]
    with pytest.raises(FedLassoError, match="did not answer"):
        run_plan(later, project.connect)
    audit = project.doors["b"].audit.path
    cut_out(audit, read_plan(earlier, NetworkSource).source.fit)
    # The chain is whole again: by itself the audit shows nothing.
    assert list(project.doors["b"].audit.entries())
    if not anchored:
        path = later / "plan.json"
        plan = json.loads(path.read_text())
        assert plan["source"].pop("audits").keys() == project.doors.keys()
        path.write_text(json.dumps(plan))
        run_plan(later, project.connect)
        return
    with pytest.raises(Stopped, match=r"site 'b': its audit does not continue the \d+ lines"):
        run_plan(later, project.connect)


def test_every_attempt_notes_where_the_audits_end(project: Project, out: Path) -> None:
    first = read_plan(out, NetworkSource).source.audits
    run_plan(out, project.connect)
    last = read_plan(out, NetworkSource).source.audits
    for name, door in project.doors.items():
        entries = list(door.audit.entries())
        for lines, head in (first[name], last[name]):
            # The line that follows is the summary itself, chained to what was noted.
            assert (entries[lines].question, entries[lines].before) == ("SummariseAudit", head)
        assert first[name][0] < last[name][0]
    books = json.loads((out / "audit.json").read_text())
    assert {name: (own["lines"], own["head"]) for name, own in books.items()} == last


def modes(folder: Path) -> dict[str, int]:
    paths = [folder, *folder.rglob("*")]
    return {str(path.relative_to(folder)): path.stat().st_mode & 0o777 for path in paths}


def test_without_private_files_others_read_the_journal(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "fedlasso.atomic_files._open_new_private", lambda path, flags: os.open(path, flags, 0o644)
    )
    before = os.umask(0o022)
    try:
        out = begin(tmp_path / "model")
        run_plan(out, project.connect)
    finally:
        os.umask(before)
    assert modes(out)["journal/000000.entry"] & 0o044


def test_what_a_fit_writes_is_for_its_owner_only(project: Project, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        out = begin(tmp_path / "model")
        run_plan(out, project.connect)
    finally:
        os.umask(before)
    found = modes(out)
    private = {".", "journal", "journal/000000.entry", "plan.json", "receipts.txt"}
    assert private | {"model.json", "coefficients.csv", "card.html"} <= found.keys()
    assert [name for name, mode in found.items() if mode & 0o077] == []
