"""The demo shows every file of a fit, and all that it prints is true."""

import re
from pathlib import Path

import pytest

from fedlasso.cli import main
from fedlasso.deploy.kit import open_audit

pytestmark = pytest.mark.standard


def test_the_demo_shows_every_file_before_what_it_asks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = tmp_path / "demo"
    assert main(["courier", "demo", "--keep", str(base)]) == 0
    lines = capsys.readouterr().out.splitlines()
    shown = {}
    for line in lines:
        if named := re.fullmatch(r"  (\w+) to (\w+): (\S+), (\d+) bytes", line):
            sender, reader, name, size = named.groups()
            site = reader if sender == "coordinator" else sender
            shown[base / site / name] = int(size)
    files = {path for ending in ("flq", "fla") for path in base.glob(f"*/*.{ending}")}
    assert shown == {path: path.stat().st_size for path in files}
    trips = sum(line.startswith("Round trip ") for line in lines)
    assert f"by files: {trips} round trips, 1 of them before the fit" in "\n".join(lines)
    # Three sites, with a question and an answer in every trip, and the end.
    assert len(files) == 3 * (2 * trips + 1)
    # What a question asks stands below its line.
    asks = [k for k, line in enumerate(lines) if line.startswith("    | Project ")]
    assert len(asks) == trips
    for k in asks:
        number = int(lines[k].rpartition(" ")[2])
        assert lines[k - 1].startswith("  coordinator to north: north-")
        assert f"-{number:02d}.flq, " in lines[k - 1]
    assert "The same fit in one process: the same bytes" in lines
    entries = list(open_audit(base / "north" / "kit").entries())
    sent = sum(entry.payload for entry in entries)
    assert f"The audit of 'north' has {len(entries)} lines, {sent} bytes of numbers sent" in lines
