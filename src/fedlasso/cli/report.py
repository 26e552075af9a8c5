"""``fedlasso report`` and ``fedlasso compare``: read a results folder, never compute it again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fedlasso.errors import FedLassoError


def add(commands: Any) -> None:
    """Add the commands."""
    report = commands.add_parser(
        "report", help="tables, figures, supplement and a page from a results folder",
        description="Write tables, figures, a supplement and a page that works offline.",
        epilog="Example: fedlasso report results/two",
    )  # fmt: skip
    report.add_argument("folder", type=Path, metavar="DIR")
    report.add_argument("--out", type=Path, help="where to write; default: DIR/report")
    report.set_defaults(run=report_command)


def report_command(options: argparse.Namespace) -> int:
    """Write the report and say where it is."""
    try:
        from fedlasso.report import write_report
    except ModuleNotFoundError as error:
        raise FedLassoError(f"{error}; install it with: pip install 'fedlasso[report]'") from error
    out = options.out or options.folder / "report"
    results = write_report(options.folder, out)
    print(results.completeness)
    for line in results.missing:
        print(f"  {line}")
    print(f"report: {out / 'index.html'}")
    return 0
