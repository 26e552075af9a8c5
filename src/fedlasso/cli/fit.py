"""``fedlasso fit``, ``predict``, ``inspect`` and ``diagnose``: an analyst's own files."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from fedlasso import models
from fedlasso.atomic_files import CannotWrite, write_atomically
from fedlasso.cli import options as shared
from fedlasso.cli.common import (
    INTERRUPTED,
    Display,
    add_action,
    notify,
    print_notices,
    stop_on_term,
)
from fedlasso.errors import FedLassoError
from fedlasso.federation import Journal, Ledger
from fedlasso.fitting.examination.averaging_diagnosis import diagnose
from fedlasso.models.predicting import ENDINGS as PREDICTION_ENDINGS
from fedlasso.tables import KINDS


def add(commands: Any) -> None:
    fit = add_action(commands, fit_command, "north.csv south.csv --target y --out model", "fit")
    shared.add_source(fit)
    shared.add_formula(fit)
    shared.add_outcome(fit)
    shared.add_settings(fit)
    option = shared.optional(fit)
    costs = "skip the card's comparisons and subsamples, which need messages of their own"
    option("--no-compare", action="store_false", dest="compare", help=costs)
    shared.add_about(fit)
    fit.add_argument("--out", type=Path, metavar="MODEL", help="new folder for the model")
    fit.add_argument("--resume", type=Path, metavar="MODEL", help="resume an interrupted fit")

    predict = add_action(commands, predict_command, "model new.csv --out predictions.csv")
    inspect = add_action(commands, inspect_command, "model")
    for parser in (predict, inspect):
        parser.add_argument("model", type=Path, metavar="MODEL", help="folder of a fitted model")
    predict.add_argument("file", type=Path, metavar="FILE", help=f"new rows: {KINDS}")
    predict.add_argument("--id", metavar="COLUMN", help="column to copy to the predictions")
    predict.add_argument("--out", type=Path, help=".csv or .parquet file; default: the terminal")
    predict.add_argument("--overwrite", action="store_true", help="replace --out if it exists")

    example = "north.csv south.csv --target y --out diagnosis.html"
    diagnosis = add_action(commands, diagnose_command, example, "fit")
    shared.add_source(diagnosis)
    option = shared.optional(diagnosis)
    option("--penalty", type=shared.read_penalty, help=shared.PENALTY_HELP)
    option("--uploads", type=int, help=shared.UPLOADS_HELP)
    option("--seed", type=int, help="seed of the held-out rows; default: 0")
    page = Path("diagnosis.html")
    diagnosis.add_argument("--out", type=Path, default=page, help=f"page; default: {page}")


def _refuse_beside_resume(options: argparse.Namespace) -> None:
    always = {"command", "debug", "run", "extra", "resume", "files", "out"}
    beside = [*options.files, *(["--out"] if options.out is not None else [])]
    for name in [name for name in vars(options) if name not in always]:
        no = "no-" if name in ("intercept", "standardise", "compare") else ""
        beside.append(f"--{no}{name.replace('_', '-')}")
    if beside:
        remedy = f"omit {', '.join(beside)}, or start a new fit in another folder"
        raise FedLassoError(f"--resume uses the options of the interrupted fit; {remedy}")


def fit_command(options: argparse.Namespace) -> int:
    """Fit one Lasso across sites, one file each."""
    if options.resume is not None:
        _refuse_beside_resume(options)
        folder = models.ModelFolder(options.resume)
        plan = folder.recall()
    else:
        if options.out is None:
            raise FedLassoError("name a folder for the model: --out MODEL")
        compare = getattr(options, "compare", True)
        source = shared.read_source(options)
        settings = shared.read_settings(options)
        plan = models.FitPlan(settings, source, compare, shared.read_about(options))
        # Refuse contradictory options before anything is read or written.
        plan.source.outcome(plan.settings)
        folder = models.ModelFolder(options.out)
        folder.check()
    stop_on_term()
    resume = f"continue with: fedlasso fit --resume {folder.path}"
    printed: list[str] = []

    def print_once(text: str) -> None:
        printed.append(text)
        notify(text)

    try:
        sites, schema = models.open_sites(plan.source, plan.settings, folder.memory, print_once)
        if options.resume is None:
            folder.begin(plan)
        how: dict[str, Any] = {"missing": plan.source.missing, "compare": plan.compare}
        how["leaks"] = sites.leaks
        with Display() as display:
            ledger = Ledger(Journal(sites, folder.journal, durable=False), display.listen)
            document = models.make_model(ledger, plan.settings, schema, notify=display.show, **how)
            folder.finish(document, plan)
    except KeyboardInterrupt:
        notify(f"stopped; {resume if folder.begun else 'the fit had not started'}")
        return INTERRUPTED
    except FedLassoError as error:
        # A full disk can be resumed from, a fit that is impossible cannot.
        if isinstance(error, CannotWrite) and folder.begun:
            remedy = f"finished work is kept: free disk space, then {resume}"
            raise FedLassoError(f"{error.what}; {remedy}") from error
        if options.resume is None:
            folder.discard()
        raise
    print_notices(document, printed)
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
            raise FedLassoError(f"{out} is the input; name another file with --out")
        if not options.overwrite:
            raise FedLassoError(f"{out} exists; name another file, or use --overwrite")
    document = models.read_document(options.model / "model.json")
    predicted = models.predict_file(document, options.file, options.id)
    if out is None:
        sys.stdout.write(predicted.to_bytes(".csv").decode())
    else:
        write_atomically(out, predicted.to_bytes(out.suffix.lower()), private=True)
        print(f"{len(predicted.values)} predictions in {out}")
    if predicted.errors is not None:
        # Standard output contains the predictions only.
        show = notify if out is None else print
        show(f"{options.file} has the target {document.schema.target!r}: {predicted.errors}")


def inspect_command(options: argparse.Namespace) -> None:
    """Print a summary of a model."""
    document = models.read_document(options.model / "model.json")
    print(models.describe_model(document))
    for warning in document.warnings or ():
        print(f"warning: {warning}")


def diagnose_command(options: argparse.Namespace) -> None:
    """Measure the error of averaging local models on these sites.

    Reports how far averaging ends from the pooled Lasso, how many more columns it selects, and
    which columns only one site selects.
    """
    if options.out.suffix != ".html":
        raise FedLassoError(f"{options.out}: name an .html file for the figures")
    source = shared.read_source(options)
    settings = shared.read_settings(options)
    sites, _ = models.open_sites(source, notify=notify)
    with Display() as display:
        diagnosis = diagnose(Ledger(sites, display.listen), settings)
        display.show("diagnosed")
    print(*models.describe_diagnosis(diagnosis), sep="\n")
    write_atomically(options.out, models.draw_diagnosis(diagnosis).encode())
    print(f"Figures are in {options.out}")
