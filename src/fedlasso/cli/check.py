"""``fedlasso check``: what is wrong with an analyst's own files, and Table 1 of them."""

import argparse
from pathlib import Path
from typing import Any

from fedlasso.atomic_files import write_atomically
from fedlasso.cli import options as shared
from fedlasso.cli.common import add_action, names
from fedlasso.errors import FedLassoError
from fedlasso.families import FAMILIES
from fedlasso.models.check_page import describe_check, draw_check, write_findings_csv
from fedlasso.models.checkup import Checked, check_files
from fedlasso.models.table_one_cells import write_table_csv

PROBLEMS = 1


def add(commands: Any) -> None:
    example = "north.csv south.csv --target relapse --family binomial --out check.html"
    check = add_action(commands, check_command, example)
    shared.add_source(check)
    shared.add_outcome(check)
    add_family(check)
    option = shared.optional(check)
    option("--keep", type=names, metavar="COLUMNS", help="columns that are no identifiers")
    add_out(check)


def add_family(parser: Any) -> None:
    option = shared.optional(parser)
    option("--family", choices=list(FAMILIES), help="type of the response; default: linear")


def add_out(parser: Any) -> None:
    page = "page to write, .html; two .csv files with Table 1 and the findings go beside it"
    parser.add_argument("--out", type=Path, metavar="PAGE", help=page)


def check_command(options: argparse.Namespace) -> int:
    """Report every problem of all files at once, and Table 1 by site.

    Finds columns, types, levels and units that differ between sites, missing values and codes for
    them, identifiers, constants, copies, columns that contain the outcome, and how the outcome is
    coded. The exit code is 0 if nothing must be mended, and 1 otherwise.
    """
    check_out(options.out)
    source = shared.read_source(options, readable=False)
    return report(check_files(source, shared.read_settings(options)), options.out)


def check_out(out: Path | None) -> None:
    if out is not None and out.suffix != ".html":
        raise FedLassoError(f"{out}: name an .html file for the page")


def report(checked: Checked, out: Path | None) -> int:
    """Print a check and write its page; return the exit code."""
    print(describe_check(checked))
    if out is not None:
        files = {out: draw_check(checked), _beside(out, "findings"): write_findings_csv(checked)}
        if checked.table is not None:
            files[_beside(out, "table1")] = write_table_csv(checked.table)
        for path, text in files.items():
            write_atomically(path, text.encode())
        print(f"The page is in {out}, with {', '.join(path.name for path in files if path != out)}")
    return PROBLEMS if checked.mends else 0


def _beside(out: Path, what: str) -> Path:
    return out.with_name(f"{out.stem}-{what}.csv")
