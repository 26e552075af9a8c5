"""``fedlasso report`` and ``fedlasso compare``: read a results folder, never compute it again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fedlasso.cli.common import need


def add(commands: Any) -> None:
    """Add the commands."""
    report = commands.add_parser(
        "report", help="tables, figures, supplement and a page from a results folder",
        description="Write tables, figures, a supplement and a page that works offline.",
        epilog="Example: fedlasso report results/two",
    )  # fmt: skip
    report.add_argument("folder", type=Path, metavar="DIR")
    report.add_argument("--out", type=Path, help="where to write; default: DIR/report")
    report.add_argument(
        "--also", type=Path, action="append", default=[], metavar="DIR",
        help="another study for the supplement, e.g. the earlier experiment",
    )  # fmt: skip
    report.set_defaults(run=report_command)

    compare = commands.add_parser(
        "compare", help="compare a results folder with published means",
        description="Print z-scores cell by cell and a verdict; exit code 1 unless all agree.",
        epilog="Example: fedlasso compare results/paper --published table2.csv",
    )  # fmt: skip
    compare.add_argument("folder", type=Path, metavar="DIR")
    compare.add_argument(
        "--published", type=Path, required=True, metavar="FILE.csv",
        help="columns scenario, method, epochs, metric, mean, se; optional budget, panel, rule",
    )  # fmt: skip
    compare.set_defaults(run=compare_command)


def report_command(options: argparse.Namespace) -> int:
    """Write the report and say where it is."""
    need("report")
    from fedlasso.report import write_report

    out = options.out or options.folder / "report"
    results = write_report(options.folder, out, options.also)
    print(results.completeness)
    for line in results.missing:
        print(f"  {line}")
    print(f"report: {out / 'index.html'}")
    return 0


def compare_command(options: argparse.Namespace) -> int:
    """Print z-scores and a verdict."""
    need("report")
    from fedlasso.cli.formats import print_frame
    from fedlasso.report import compare

    comparison = compare(options.folder, options.published)
    print_frame(comparison.cells)
    print(comparison.verdict)
    return 0 if comparison.agrees else 1
