"""``fedlasso fit``, ``predict``, ``inspect`` and ``diagnose``: an analyst's own files."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from fedlasso import models
from fedlasso.atomic_files import CannotWrite, write_atomically
from fedlasso.cli.common import INTERRUPTED, Display, add_action, notify, say_constant, stop_on_term
from fedlasso.cli.options import (
    PENALTY,
    add_outcome,
    add_settings,
    add_source,
    options_of,
    read_penalty,
    read_settings,
    read_source,
)
from fedlasso.errors import FedLassoError
from fedlasso.federation import Journal, Ledger
from fedlasso.fitting.examination.averaging_diagnosis import diagnose
from fedlasso.models.predicting import ENDINGS as PREDICTION_ENDINGS
from fedlasso.tables import KINDS

MODEL = "the folder that a fit wrote"


def add(commands: Any) -> None:
    """Add the commands."""
    example = "north.csv south.csv west.parquet --target y --out model"
    fit = add_action(commands, fit_command, example)
    add_source(fit)
    add_outcome(fit)
    add_settings(fit)
    option = options_of(fit)
    costs = "leave out the card's comparisons and subsamples, which cost messages of their own"
    option("--no-compare", action="store_false", dest="compare", help=costs)
    fit.add_argument("--out", type=Path, metavar="MODEL", help="a new folder for the model")
    alone = "go on with an interrupted fit, as it was asked for"
    fit.add_argument("--resume", type=Path, metavar="MODEL", help=alone)

    predict = add_action(commands, predict_command, "model new.csv --out predictions.csv")
    predict.add_argument("model", type=Path, metavar="MODEL", help=MODEL)
    predict.add_argument("file", type=Path, metavar="FILE", help=f"new rows: {KINDS}")
    beside = "a column of the file to copy beside the predictions"
    predict.add_argument("--id", metavar="COLUMN", help=beside)
    out = "a .csv or .parquet file; default: the terminal"
    predict.add_argument("--out", type=Path, help=out)
    predict.add_argument("--overwrite", action="store_true", help="replace --out if it exists")

    inspect = add_action(commands, inspect_command, "model")
    inspect.add_argument("model", type=Path, metavar="MODEL", help=MODEL)

    example = "north.csv south.csv --target y --out diagnosis.html"
    diagnosis = add_action(commands, diagnose_command, example)
    add_source(diagnosis)
    option = options_of(diagnosis)
    option("--penalty", type=read_penalty, help=PENALTY)
    most = "the most that each site may send to choose a penalty, in vectors of p numbers"
    option("--uploads", type=int, help=f"{most}; default: as planned")
    option("--seed", type=int, help="seed of the held-out rows; default: 0")
    page = Path("diagnosis.html")
    diagnosis.add_argument("--out", type=Path, default=page, help=f"default: {page}")


def _refuse_beside_resume(options: argparse.Namespace) -> None:
    """A fit goes on as it was begun; what else was said would be ignored."""
    always = {"command", "debug", "run", "extra", "resume", "files", "out"}
    beside = [*options.files, *(["--out"] if options.out is not None else [])]
    for name in [name for name in vars(options) if name not in always]:
        no = "no-" if name in ("intercept", "standardise", "compare") else ""
        beside.append(f"--{no}{name.replace('_', '-')}")
    if beside:
        remedy = f"leave out {', '.join(beside)}, or fit anew into another folder"
        raise FedLassoError(f"--resume goes on with the fit as it was asked for; {remedy}")


def fit_command(options: argparse.Namespace) -> int:
    """Fit one Lasso across files that are sites."""
    if options.resume is not None:
        _refuse_beside_resume(options)
        folder = models.ModelFolder(options.resume)
        plan = folder.recall()
    else:
        if options.out is None:
            raise FedLassoError("say where the model goes: --out MODEL")
        compare = getattr(options, "compare", True)
        plan = models.FitPlan(read_settings(options), read_source(options), compare)
        # What contradicts itself is refused before anything is read or made.
        plan.source.outcome(plan.settings)
        folder = models.ModelFolder(options.out)
        folder.check()
    # An ending terminal and a service manager stop a fit just as Ctrl-C does.
    stop_on_term()
    resume = f"go on with: fedlasso fit --resume {folder.path}"
    said: list[str] = []

    def tell(text: str) -> None:
        said.append(text)
        notify(text)

    try:
        sites, schema = models.open_sites(plan.source, plan.settings, folder.memory, tell)
        if options.resume is None:
            folder.begin(plan)
        display = Display()
        ledger = Ledger(Journal(sites, folder.journal), display.listen)
        asked: dict[str, Any] = {"missing": plan.source.missing, "compare": plan.compare}
        document = models.make_model(ledger, plan.settings, schema, notify=display.show, **asked)
        folder.finish(document)
    except KeyboardInterrupt:
        notify(f"stopped; {resume if folder.begun else 'nothing is begun'}")
        return INTERRUPTED
    except FedLassoError as error:
        # What cannot be fitted is not worth resuming; a full disk is.
        if isinstance(error, CannotWrite) and folder.begun:
            remedy = f"make room, then {resume}"
            raise FedLassoError(f"{error.what}; what is finished is kept: {remedy}") from error
        if options.resume is None:
            folder.discard()
        raise
    say_constant(document)
    for warning in document.warnings or ():
        if f"warning: {warning}" not in said:
            notify(f"warning: {warning}")
    print(models.describe_model(document))
    print(f"The model is in {folder.path}; open {folder.path / 'card.html'}")
    return 0


def predict_command(options: argparse.Namespace) -> None:
    """Predict the rows of a file."""
    out: Path | None = options.out
    if out is not None and out.suffix.lower() not in PREDICTION_ENDINGS:
        raise FedLassoError(f"{out}: name a {' or '.join(PREDICTION_ENDINGS)} file")
    if out is not None and os.path.exists(out):
        if os.path.exists(options.file) and os.path.samefile(out, options.file):
            raise FedLassoError(f"{out} holds the rows to predict; name another file with --out")
        if not options.overwrite:
            raise FedLassoError(f"{out} exists; name another file, or replace it with --overwrite")
    document = models.read_document(options.model / "model.json")
    found = models.predict_file(document, options.file, options.id)
    if out is None:
        sys.stdout.write(found.to_bytes(".csv").decode())
    else:
        write_atomically(out, found.to_bytes(out.suffix.lower()))
        print(f"{len(found.values)} predictions in {out}")
    if found.errors is not None:
        # On the terminal the predictions stand alone.
        tell = notify if out is None else print
        tell(f"{options.file} has the target {document.schema.target!r}: {found.errors}")


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
    sites, _ = models.open_sites(source, notify=notify)
    display = Display()
    found = diagnose(Ledger(sites, display.listen), settings)
    display.show("diagnosed")
    print(*models.describe_diagnosis(found), sep="\n")
    write_atomically(options.out, models.draw_diagnosis(found).encode())
    print(f"Pictures are in {options.out}")
