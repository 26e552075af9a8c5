"""``fedlasso fit``, ``predict`` and ``inspect``: an analyst's own files."""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from fedlasso.cli.common import add_action, stop_on_term
from fedlasso.cli.progress import Display, say
from fedlasso.errors import FedLassoError
from fedlasso.federation import Journal, Ledger
from fedlasso.fitting import GOALS, RULES
from fedlasso.models import (
    FileSource,
    FitPlan,
    ModelFolder,
    Settings,
    constant_notices,
    describe_model,
    make_model,
    open_sites,
    predict_file,
    read_document,
)

INTERRUPTED = 130


def add(commands: Any) -> None:
    """Add the commands."""
    fit = add_action(
        commands,
        "fit",
        fit_command,
        "fit one Lasso across files that are sites",
        "fedlasso fit north.csv south.csv west.parquet --target y --out model",
    )
    add_source(fit)
    add_settings(fit)
    fit.add_argument(
        "--no-compare",
        action="store_true",
        help="leave out the card's comparisons and subsamples, which cost messages of their own",
    )
    fit.add_argument("--out", type=Path, metavar="MODEL", help="a new folder for the model")
    fit.add_argument("--resume", type=Path, metavar="MODEL", help="go on with an interrupted fit")

    predict = add_action(
        commands,
        "predict",
        predict_command,
        "predict the rows of a file",
        "fedlasso predict model new.csv --out predictions.csv",
    )
    predict.add_argument("model", type=Path, metavar="MODEL")
    predict.add_argument("file", type=Path, metavar="NEW.csv|NEW.parquet")
    predict.add_argument("--out", type=Path, help="a .csv file; default: the terminal")

    inspect = add_action(
        commands,
        "inspect",
        inspect_command,
        "say what a model is, in a few lines",
        "fedlasso inspect model",
    )
    inspect.add_argument("model", type=Path, metavar="MODEL")


def add_settings(parser: Any) -> None:
    """Options that say what to fit."""
    parser.add_argument("--goal", choices=GOALS, help="default: prediction")
    parser.add_argument("--procedure", metavar="NAME", help="run this procedure at the penalty")
    parser.add_argument("--epochs", type=int, default=1, help="its local epochs per round")
    parser.add_argument("--penalty", type=penalty, default=None, help="a number, or auto (default)")
    held_out = parser.add_mutually_exclusive_group()
    held_out.add_argument("--validation", type=float, default=0.2, help="share held out; 0.2")
    held_out.add_argument("--cv", type=int, help="folds of a cross-validation instead")
    parser.add_argument("--rule", choices=RULES, help="how the penalty is chosen")
    parser.add_argument("--uploads", type=int, default=100, help="vectors per site; 100")
    parser.add_argument("--no-intercept", action="store_false", dest="intercept")
    parser.add_argument("--no-standardise", action="store_false", dest="standardise")
    parser.add_argument("--seed", type=int, default=0, help="seed of every split")


def read_settings(options: argparse.Namespace) -> Settings:
    """Return those options as settings, whose names they have."""
    names = {field.name for field in fields(Settings)}
    return Settings(**{name: value for name, value in vars(options).items() if name in names})


def add_source(parser: Any) -> None:
    """Options that say which files are the sites."""
    parser.add_argument("files", nargs="*", metavar="SITE.csv|SITE.parquet", help="one per site")
    parser.add_argument("--target", help="the column to predict")
    parser.add_argument("--site-column", help="one table: the column that names each row's site")
    parser.add_argument("--drop", default="", help="columns to leave out, comma-separated")
    parser.add_argument(
        "--missing",
        choices=["refuse", "mean"],
        default="refuse",
        help="missing values: refuse them (default), or the mean over all sites",
    )


def read_source(options: argparse.Namespace) -> FileSource:
    """Return those options as a source."""
    if not options.files:
        raise FedLassoError("name at least one file; see `fedlasso fit --help`")
    if options.target is None:
        raise FedLassoError("say which column to predict: --target NAME")
    for file in options.files:
        if not Path(file).exists():
            raise FedLassoError(f"{file}: no such file")
    drop = tuple(name.strip() for name in options.drop.split(",") if name.strip())
    return FileSource(
        tuple(options.files), options.target, options.site_column, drop, options.missing
    )


def penalty(text: str) -> float | None:
    """A number, or auto."""
    if text == "auto":
        return None
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number nor auto") from None


def fit_command(options: argparse.Namespace) -> int:
    """Fit, or go on with a fit."""
    if options.resume is not None:
        folder = ModelFolder(options.resume)
        plan = folder.recall()
    else:
        if options.out is None:
            raise FedLassoError("say where the model goes: --out MODEL")
        compare = not options.no_compare
        plan = FitPlan(read_settings(options), read_source(options), compare)
        folder = ModelFolder(options.out)
        folder.check()
    # An ending terminal and a service manager stop a fit just as Ctrl-C does.
    stop_on_term()
    try:
        sites, schema = open_sites(plan.source, folder.memory, say)
        if options.resume is None:
            folder.begin(plan)
        display = Display()
        document = make_model(
            Ledger(Journal(sites, folder.journal), display.listen),
            plan.settings,
            schema,
            missing=plan.source.missing,
            compare=plan.compare,
            say=display.show,
        )
        folder.finish(document)
    except KeyboardInterrupt:
        resume = f"go on with: fedlasso fit --resume {folder.path}"
        say(f"stopped; {resume if folder.begun else 'nothing is begun'}")
        return INTERRUPTED
    except FedLassoError as error:
        # What cannot be fitted is not worth resuming; a full disk is.
        if options.resume is None and not str(error).startswith("cannot write"):
            folder.discard()
        raise
    for notice in constant_notices(document):
        say(notice)
    print(describe_model(document))
    print(f"The model is in {folder.path}; open {folder.path / 'card.html'}")
    return 0


def predict_command(options: argparse.Namespace) -> int:
    """Predict."""
    values = predict_file(read_document(options.model / "model.json"), options.file)
    text = "prediction\n" + "".join(f"{float(v)!r}\n" for v in values)
    if options.out is None:
        sys.stdout.write(text)
        return 0
    try:
        options.out.write_text(text)
    except OSError as error:
        raise FedLassoError(f"cannot write {options.out}: {error.strerror}") from error
    print(f"{len(values)} predictions in {options.out}")
    return 0


def inspect_command(options: argparse.Namespace) -> int:
    """Tell a model."""
    document = read_document(options.model / "model.json")
    print(describe_model(document))
    for warning in document.warnings or ():
        print(f"warning: {warning}")
    return 0
