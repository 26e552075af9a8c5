"""The command line: thin, one module per group of commands."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from fedlasso import __version__
from fedlasso.errors import FedLassoError


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the ``fedlasso`` command."""
    from fedlasso.cli import federation, fit, report, site, study
    from fedlasso.cli.common import need

    parser = argparse.ArgumentParser(
        prog="fedlasso",
        description="One sparse regression across sites that cannot share records.",
        epilog="Example: fedlasso fit north.csv south.csv --target y --out model",
    )
    parser.add_argument("--version", action="version", version=f"fedlasso {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    # Every command is listed; one whose extra is missing says so when it is run.
    for group in (fit, study, report, federation, site):
        group.add(commands)
    options = parser.parse_args(arguments)
    try:
        need(options.extra)
        return options.run(options) or 0
    except FedLassoError as error:
        if options.debug:
            raise
        print(f"fedlasso: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Whoever read our output has gone, as `head` does; say nothing, and let nothing say more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
