"""``fedlasso fit``, ``predict``, ``inspect`` and ``diagnose``: an analyst's own files."""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from fedlasso import models
from fedlasso.cli.common import (
    INTERRUPTED,
    Display,
    add_action,
    names,
    say,
    say_constant,
    stop_on_term,
)
from fedlasso.errors import FedLassoError
from fedlasso.federation import Journal, Ledger
from fedlasso.files import write_atomically
from fedlasso.fitting import GOALS, RULES


def add(commands: Any) -> None:
    """Add the commands."""
    example = "north.csv south.csv west.parquet --target y --out model"
    fit = add_action(commands, fit_command, example)
    add_source(fit)
    add_settings(fit)
    costs = "leave out the card's comparisons and subsamples, which cost messages of their own"
    fit.add_argument("--no-compare", action="store_false", dest="compare", help=costs)
    fit.add_argument("--out", type=Path, metavar="MODEL", help="a new folder for the model")
    fit.add_argument("--resume", type=Path, metavar="MODEL", help="go on with an interrupted fit")

    predict = add_action(commands, predict_command, "model new.csv --out predictions.csv")
    predict.add_argument("model", type=Path, metavar="MODEL")
    predict.add_argument("file", type=Path, metavar="NEW.csv|NEW.parquet")
    predict.add_argument("--out", type=Path, help="a .csv file; default: the terminal")

    inspect = add_action(commands, inspect_command, "model")
    inspect.add_argument("model", type=Path, metavar="MODEL")

    example = "north.csv south.csv --target y --out diagnosis.html"
    diagnosis = add_action(commands, diagnose_command, example)
    add_source(diagnosis)
    diagnosis.add_argument("--penalty", type=_penalty, help="a number, or auto (default)")
    diagnosis.add_argument("--uploads", type=int, help="vectors per site; default: as planned")
    diagnosis.add_argument("--seed", type=int, default=0, help="seed of the held-out rows")
    out = Path("diagnosis.html")
    diagnosis.add_argument("--out", type=Path, default=out, help=f"default: {out}")


def add_settings(parser: Any) -> None:
    """Options that say what to fit."""
    parser.add_argument("--goal", choices=GOALS, help="default: prediction")
    parser.add_argument("--procedure", metavar="NAME", help="run this procedure at the penalty")
    parser.add_argument("--epochs", type=int, default=1, help="its local epochs per round")
    parser.add_argument("--penalty", type=_penalty, help="a number, or auto (default)")
    held_out = parser.add_mutually_exclusive_group()
    held_out.add_argument("--cv", type=int, help="folds that choose; 10 where affordable")
    held_out.add_argument("--validation", type=float, help="share held out to choose, instead")
    parser.add_argument("--rule", choices=RULES, help="how the penalty is chosen")
    most = "vectors of p numbers that a site may send; default: as planned, and told"
    parser.add_argument("--uploads", type=int, help=most)
    parser.add_argument("--no-intercept", action="store_false", dest="intercept")
    parser.add_argument("--no-standardise", action="store_false", dest="standardise")
    parser.add_argument("--seed", type=int, default=0, help="seed of every split")


def read_settings(options: argparse.Namespace) -> models.Settings:
    """Return those options as settings, whose names they have."""
    known = {field.name for field in fields(models.Settings)}
    chosen = {name: value for name, value in vars(options).items() if name in known}
    return models.Settings(**chosen)


def add_source(parser: Any) -> None:
    """Options that say which files are the sites."""
    parser.add_argument("files", nargs="*", metavar="SITE.csv|SITE.parquet", help="one per site")
    parser.add_argument("--target", help="the column to predict")
    parser.add_argument("--site-column", help="one table: the column that names each row's site")
    drop = "columns to leave out, comma-separated"
    parser.add_argument("--drop", type=names, default=(), help=drop)
    how = "missing values: refuse them (default), or the mean over all sites"
    parser.add_argument("--missing", choices=["refuse", "mean"], default="refuse", help=how)
    rows = "rows that a level of text needs at some site; rarer ones are pooled; default: 10"
    parser.add_argument("--min-level", type=int, default=10, help=rows)


def read_source(options: argparse.Namespace) -> models.FileSource:
    """Return those options as a source."""
    if not options.files:
        raise FedLassoError("name at least one file; see `fedlasso fit --help`")
    if options.target is None:
        raise FedLassoError("say which column to predict: --target NAME")
    for file in options.files:
        if not Path(file).exists():
            raise FedLassoError(f"{file}: no such file")
    return models.FileSource(
        tuple(options.files),
        options.target,
        options.site_column,
        options.drop,
        options.missing,
        options.min_level,
    )


def _penalty(text: str) -> float | None:
    if text == "auto":
        return None
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number nor auto") from None


def fit_command(options: argparse.Namespace) -> int:
    """Fit one Lasso across files that are sites."""
    if options.resume is not None:
        folder = models.ModelFolder(options.resume)
        plan = folder.recall()
    else:
        if options.out is None:
            raise FedLassoError("say where the model goes: --out MODEL")
        plan = models.FitPlan(read_settings(options), read_source(options), options.compare)
        folder = models.ModelFolder(options.out)
        folder.check()
    # An ending terminal and a service manager stop a fit just as Ctrl-C does.
    stop_on_term()
    try:
        sites, schema = models.open_sites(plan.source, folder.memory, say)
        if options.resume is None:
            folder.begin(plan)
        display = Display()
        document = models.make_model(
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
    say_constant(document)
    print(models.describe_model(document))
    print(f"The model is in {folder.path}; open {folder.path / 'card.html'}")
    return 0


def predict_command(options: argparse.Namespace) -> None:
    """Predict the rows of a file."""
    values = models.predict_file(models.read_document(options.model / "model.json"), options.file)
    text = "prediction\n" + "".join(f"{float(v)!r}\n" for v in values)
    if options.out is None:
        sys.stdout.write(text)
        return
    try:
        options.out.write_text(text)
    except OSError as error:
        raise FedLassoError(f"cannot write {options.out}: {error.strerror}") from error
    print(f"{len(values)} predictions in {options.out}")


def inspect_command(options: argparse.Namespace) -> None:
    """Say what a model is, in a few lines."""
    document = models.read_document(options.model / "model.json")
    print(models.describe_model(document))
    for warning in document.warnings or ():
        print(f"warning: {warning}")


def diagnose_command(options: argparse.Namespace) -> None:
    """Measure what averaging does on these sites.

    How far it ends from the pooled Lasso, how its support grows, and which columns one site alone
    selects.
    """
    if options.out.suffix != ".html":
        raise FedLassoError(f"{options.out}: name a .html file for the pictures")
    source = read_source(options)
    settings = read_settings(options)
    sites, _ = models.open_sites(source, say=say)
    display = Display()
    found = models.diagnose(Ledger(sites, display.listen), settings)
    display.show("diagnosed")
    for line in found.lines():
        print(line)
    write_atomically(options.out, models.draw_diagnosis(found).encode())
    print(f"Pictures are in {options.out}")
