"""``fedlasso report`` and ``fedlasso compare``: read a results folder, never compute it again."""

import argparse
import gc
from pathlib import Path
from typing import Any

from fedlasso.cli.common import RESULTS, add_action, print_frame


def add(commands: Any) -> None:
    """Add the commands."""
    report = add_action(commands, report_command, "results/two", "report")
    report.add_argument("folder", type=Path, metavar="DIR", help=RESULTS)
    report.add_argument("--out", type=Path, help="where to write; default: DIR/report")
    more = "another study for the supplement, e.g. the earlier experiment"
    report.add_argument("--also", type=Path, action="append", default=[], metavar="DIR", help=more)

    example = "results/paper --published table2.csv"
    compare = add_action(commands, compare_command, example, "report")
    compare.add_argument("folder", type=Path, metavar="DIR", help=RESULTS)
    columns = (
        "columns scenario, method, epochs, metric, mean, se; optional budget, panel, rule; "
        "default: the paper's main table"
    )
    compare.add_argument("--published", type=Path, metavar="FILE.csv", help=columns)


def report_command(options: argparse.Namespace) -> None:
    """Tables, figures, supplement and a page that works offline, from a results folder."""
    # Python's search for garbage would take a seventh of the time, for memory that soon is free.
    gc.disable()
    try:
        from fedlasso.report import write_report

        out = options.out or options.folder / "report"
        results = write_report(options.folder, out, options.also)
    finally:
        gc.enable()
    print(results.completeness)
    for line in results.missing:
        print(f"  {line}")
    print(f"report: {out / 'index.html'}")


def compare_command(options: argparse.Namespace) -> int:
    """Compare a results folder with published means.

    Print z-scores cell by cell and a verdict; exit code 1 unless all agree.
    """
    from fedlasso.report import compare

    comparison = compare(options.folder, options.published)
    print_frame(comparison.cells)
    print(comparison.verdict)
    return 0 if comparison.agrees else 1
