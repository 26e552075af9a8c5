"""``fedlasso report`` and ``fedlasso compare``: read study results."""

import argparse
import gc
from pathlib import Path
from typing import Any

from fedlasso.cli.common import RESULTS, add_action, print_frame


def add(commands: Any) -> None:
    report = add_action(commands, report_command, "results/two", "report")
    example = "results/paper --published table2.csv"
    compare = add_action(commands, compare_command, example, "report")
    for parser in (report, compare):
        parser.add_argument("folder", type=Path, metavar="DIR", help=RESULTS)
    report.add_argument("--out", type=Path, help="folder to write; default: DIR/report")
    more = "results of another study, for the supplement"
    report.add_argument("--also", type=Path, action="append", default=[], metavar="DIR", help=more)
    columns = (
        "columns scenario, method, epochs, metric, mean, se; optional budget, panel, rule; "
        "default: the paper's main table"
    )
    compare.add_argument("--published", type=Path, metavar="FILE.csv", help=columns)


def report_command(options: argparse.Namespace) -> None:
    """Write tables, figures, supplement and an offline page from study results."""
    # Garbage collection would take a seventh of the time.
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
    """Compare study results with published means.

    Prints z-scores by cell and a verdict; the exit code is 1 unless all agree.
    """
    from fedlasso.report import compare

    comparison = compare(options.folder, options.published)
    print_frame(comparison.cells)
    print(comparison.verdict)
    return 0 if comparison.agrees else 1
