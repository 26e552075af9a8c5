"""The command line: thin, one module per group of commands."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from fedlasso import __version__
from fedlasso.errors import FedLassoError

# Every command is listed, by its module, with what it does; only the one that is run is imported.
COMMANDS = {
    "fit": {
        "fit": "fit one Lasso across files that are sites",
        "predict": "predict the rows of a file",
        "inspect": "say what a model is, in a few lines",
        "diagnose": "measure what averaging does on these sites",
    },
    "study": {"study": "run and read Monte Carlo studies"},
    "report": {
        "report": "tables, figures, supplement and a page that works offline, from a results "
        "folder",
        "compare": "compare a results folder with published means",
    },
    "federation": {"federation": "fit across real sites over a network"},
    "site": {"site": "take part in a federation with your own records"},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the ``fedlasso`` command."""
    given = sys.argv[1:] if arguments is None else arguments
    options = make_parser(given).parse_args(given)
    from fedlasso.cli.common import need

    try:
        # A command whose extra is missing says so when it is run.
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
    except OSError as error:
        # A folder that may not be entered, a disk that is gone: the user's to put right.
        if options.debug or error.filename is None:
            raise
        print(f"fedlasso: cannot use {error.filename}: {error.strerror}", file=sys.stderr)
        return 2


def make_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return a parser that lists every command, and knows the options of the one that is given."""
    parser = argparse.ArgumentParser(
        prog="fedlasso",
        description="One sparse regression across sites that cannot share records.",
        epilog="Example: fedlasso fit north.csv south.csv --target y --out model",
    )
    parser.add_argument("--version", action="version", version=f"fedlasso {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    command = next((word for word in arguments if not word.startswith("-")), "")
    for module, listed in COMMANDS.items():
        if command in listed:
            import_module(f"fedlasso.cli.{module}").add(commands)
        else:
            for name, does in listed.items():
                commands.add_parser(name, help=does)
    return parser
