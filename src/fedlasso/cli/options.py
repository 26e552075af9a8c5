"""Options that commands about fits share: what to fit, to which files, and how they are read."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from math import isnan
from pathlib import Path
from typing import Any

from fedlasso import models
from fedlasso.cli.common import given_options, names
from fedlasso.errors import FedLassoError
from fedlasso.families import FAMILIES, family_with
from fedlasso.fitting import GOALS, RULES, Range, Settings
from fedlasso.procedures import REGISTRY
from fedlasso.tables import KINDS, MIN_LEVEL, check_file

PENALTY = "how strongly coefficients are held down: a number, or auto to choose it (default)"


def options_of(parser: Any) -> Callable[..., Any]:
    """Add options that are absent unless they are given, so that it is known which were."""
    return partial(parser.add_argument, default=argparse.SUPPRESS)


def tell_choices(choices: Mapping[Any, str]) -> str:
    """Return what each choice of an option is for; the first one is the default."""
    (default, first), *others = choices.items()
    told = [f"{name}: {purpose}" for name, purpose in others]
    return "; ".join([f"{default} (default): {first}", *told])


def add_settings(parser: Any) -> None:
    """Options that say what to fit."""
    option = options_of(parser)
    kinds = [f"{name}, {family.summary}" for name, family in FAMILIES.items()]
    kinds[0] += " (default)"
    option("--family", choices=list(FAMILIES), help=f"what the response is: {'; '.join(kinds)}")
    ties = f"events at the same time, with --family {family_with('ties').name}; default: efron"
    option("--ties", choices=["efron", "breslow"], help=ties)
    kept = "columns that are always in the model, never penalised: as --keep age,sex"
    option("--keep", type=names, metavar="COLUMNS", help=kept)
    ratio = "share of the penalty that is the Lasso's, the rest is a ridge's; default: 1"
    option("--l1-ratio", type=float, metavar="SHARE", help=ratio)
    ranges = "least and largest coefficients, per unit of the column: as --bounds age=0:,dose=-1:2"
    option("--bounds", type=names, metavar="RANGES", help=ranges)
    option("--site-effects", action="store_true", help="an intercept for every site")
    rate = "share of false discoveries to be expected, with --goal discoveries; default: 0.1"
    option("--fdr", type=float, metavar="RATE", help=rate)
    named = (
        "columns whose coefficients get intervals, in the model or not: as --interval age,dose; or "
        "--interval selected, for the columns that the model uses"
    )
    option("--interval", type=names, dest="intervals", metavar="COLUMNS", help=named)
    option("--level", type=float, help="how often intervals are to cover; default: 0.95")
    weights = (
        "what rows count by: equal, all the same; variance, the inverse of the variance of their "
        "site's noise; default: variance where intervals or discoveries are asked for and the "
        "sites' noise clearly differs"
    )
    option("--site-weights", choices=["equal", "variance"], help=weights)
    goals = tell_choices({name: goal.help for name, goal in GOALS.items()})
    option("--goal", choices=list(GOALS), help=f"what the model is for. {goals}")
    run = f"run this procedure at the penalty, whatever the goal: {', '.join(REGISTRY)}"
    option("--procedure", metavar="NAME", help=run)
    option("--epochs", type=int, help="its local epochs per round; default: 1")
    option("--penalty", type=read_penalty, help=PENALTY)
    held_out = options_of(parser.add_mutually_exclusive_group())
    folds = "number of folds that choose the penalty; default: 10 where they can be paid for"
    held_out("--cv", type=int, help=folds)
    share = "share of every site's rows held out to choose the penalty, instead of folds"
    held_out("--validation", type=float, help=share)
    rule = f"how the penalty is chosen. {tell_choices(RULES)} (the default for selection)"
    option("--rule", choices=list(RULES), help=rule)
    most = (
        "the most that each site may send, in vectors of as many numbers as there are columns; "
        "default: as planned, and told"
    )
    option("--uploads", type=int, help=most)
    without = "leave out the intercept: all columns zero predict zero"
    option("--no-intercept", action="store_false", dest="intercept", help=without)
    as_is = "penalise columns on their own scales, not per standard deviation"
    option("--no-standardise", action="store_false", dest="standardise", help=as_is)
    option("--seed", type=int, help="seed of every split; default: 0")


def read_settings(options: argparse.Namespace) -> Settings:
    """Return those options as settings, whose names they have."""
    given = given_options(options, [field.name for field in fields(Settings)])
    if "bounds" in given:
        given["bounds"] = read_bounds(given["bounds"])
    return Settings(**given)


def add_source(parser: Any) -> None:
    """Options that say which files are the sites."""
    option = options_of(parser)
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"one per site: {KINDS}")
    option("--target", metavar="COLUMN", help="what to predict")
    option("--site-column", help="one table: the column that names each row's site")
    add_reading(parser)


def add_outcome(parser: Any) -> None:
    """Options that name the columns beside the target that are no predictors."""
    option = options_of(parser)
    time = "with --family cox, instead of --target: how long each row was followed"
    option("--time", metavar="COLUMN", help=time)
    event = "with --family cox: 1 where that ended in an event, 0 where it was censored"
    option("--event", metavar="COLUMN", help=event)
    offset = "added to every row's linear predictor, with coefficient 1: as a log of exposure"
    option("--offset", metavar="COLUMN", help=offset)
    option("--weights", metavar="COLUMN", help="how much every row counts, above zero")


def add_reading(parser: Any) -> None:
    """Options that say how tables are read, at this machine or at sites across a network."""
    option = options_of(parser)
    option("--drop", type=names, help="columns to leave out, comma-separated")
    how = "missing values: refuse them (default), or the mean over all sites"
    option("--missing", choices=["refuse", "mean"], help=how)
    codes = "what means a missing value beside empty, NA, NaN and null: as --na=.,unknown,-999"
    option("--na", type=names, metavar="CODES", help=codes)
    rows = f"rows that a level of text needs at some site; others are pooled; default: {MIN_LEVEL}"
    option("--min-level", type=int, metavar="N", help=rows)


def read_source(options: argparse.Namespace) -> models.FileSource:
    """Return those options as a source, whose names they have."""
    if not options.files:
        raise FedLassoError("name at least one file; see `fedlasso fit --help`")
    given = given_options(options, models.FileSource.__struct_fields__)
    for file in options.files:
        check_file(Path(file))
    return models.FileSource(**given | {"files": tuple(options.files)})


def read_penalty(text: str) -> float | None:
    """A penalty, or nothing where it is to be chosen."""
    if text == "auto":
        return None
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number nor auto") from None


def read_bounds(ranges: Sequence[str]) -> dict[str, Range]:
    """Return ranges of coefficients by columns, as age=0: or dose=-1:2."""
    found: dict[str, Range] = {}
    for text in ranges:
        name, _, ends = text.rpartition("=")
        try:
            lower, upper = (float(end) if end else None for end in ends.split(":"))
        except ValueError:
            name = ""
        if not name or isnan(lower or 0.0) or isnan(upper or 0.0):
            remedy = "say COLUMN=LOWER:UPPER in numbers, as age=0: or dose=-1:2"
            raise FedLassoError(f"--bounds: {text!r} is no range; {remedy}")
        if name in found:
            raise FedLassoError(f"--bounds: {name!r} has two ranges; give one")
        found[name] = (lower, upper)
    return found
