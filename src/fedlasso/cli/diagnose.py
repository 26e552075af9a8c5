"""``fedlasso diagnose``: what averaging does on an analyst's own sites."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fedlasso.cli.fit import add_source, penalty, read_source
from fedlasso.cli.progress import Display, say
from fedlasso.errors import FedLassoError


def add(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "diagnose",
        help="measure what averaging does on these sites",
        description="Measure how far averaging ends from the pooled Lasso on these sites, how its "
        "support grows, and which columns one site alone selects.",
        epilog="Example: fedlasso diagnose north.csv south.csv --target y --out diagnosis.html",
    )
    parser.set_defaults(run=diagnose_command)
    add_source(parser)
    parser.add_argument("--penalty", type=penalty, default=None, help="a number, or auto (default)")
    parser.add_argument("--uploads", type=int, default=100, help="for the pooled Lasso; 100")
    parser.add_argument("--seed", type=int, default=0, help="seed of the held-out rows")
    parser.add_argument(
        "--out", type=Path, default=Path("diagnosis.html"), help="default: diagnosis.html"
    )


def diagnose_command(options: argparse.Namespace) -> int:
    """Measure, say and draw."""
    from fedlasso.federation import Ledger
    from fedlasso.files import write_atomically
    from fedlasso.models import Settings, diagnose, draw_diagnosis, open_sites

    if options.out.suffix != ".html":
        raise FedLassoError(f"{options.out}: name a .html file for the pictures")
    source = read_source(options)
    settings = Settings(penalty=options.penalty, uploads=options.uploads, seed=options.seed)
    sites, _ = open_sites(source, say=say)
    display = Display()
    found = diagnose(Ledger(sites, display.listen), settings)
    display.show("diagnosed")
    for line in found.lines():
        print(line)
    write_atomically(options.out, draw_diagnosis(found).encode())
    print(f"Pictures are in {options.out}")
    return 0
