"""The command line: thin, one module per group of commands."""

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from fedlasso import __version__
from fedlasso.cli.common import Waiting, require, to_flags
from fedlasso.cli.terminal import plain_terminal
from fedlasso.errors import FedLassoError

# All commands and their help, by module: only the module of the command given is imported.
COMMANDS = {
    "fit": {
        "fit": "fit one Lasso across sites, one file each",
        "predict": "predict the rows of a file",
        "inspect": "print a summary of a model",
        "diagnose": "measure the error of averaging local models on these sites",
    },
    "check": {"check": "report every problem of all files at once, and Table 1 by site"},
    "study": {"study": "run and summarise Monte Carlo studies"},
    "report": {
        "report": "write tables, figures, supplement and an offline page from study results",
        "compare": "compare study results with published means",
    },
    "federation": {"federation": "fit across sites on a network, as coordinator"},
    "courier": {"courier": "fit by files, across sites without a connection"},
    "site": {"site": "take part in a federation with your own records"},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the ``fedlasso`` command; return its exit code."""
    with plain_terminal():
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    # Imports and compilation create many objects and no garbage: searching costs a tenth of a fit.
    gc.set_threshold(50_000)
    given = sys.argv[1:] if arguments is None else arguments
    if "fit" in given[:1]:
        # A first fit may wait seconds for its packages.
        with Waiting("loading"):
            import_module("fedlasso.cli.fit")
    options = make_parser(given).parse_args(given)
    try:
        require(options.extra)
        return options.run(options) or 0
    except FedLassoError as error:
        if options.debug:
            raise
        print(f"fedlasso: {to_flags(str(error))}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader of our output has closed it, as `head` does; print nothing more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # Missing permissions or disks are the user's to correct, so without a traceback.
        if options.debug or error.filename is None:
            raise
        print(f"fedlasso: cannot use {error.filename}: {error.strerror}", file=sys.stderr)
        return 2


def make_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return a parser of all commands, with the options of the one given."""
    parser = argparse.ArgumentParser(
        prog="fedlasso",
        description="Sparse regression across sites that cannot share records.",
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
            for name, text in listed.items():
                commands.add_parser(name, help=text)
    return parser
