"""Options of commands that fit: what to fit, to which files, and how these are read."""

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
from fedlasso.tables.files import to_float

PENALTY_HELP = "penalty strength lambda: a number, or auto to choose it (default)"
UPLOADS_HELP = "maximum that a site may send, in vectors of one number per column; default: planned"


def optional(parser: Any) -> Callable[..., Any]:
    """Return `add_argument` for options that are absent from the result unless given."""
    return partial(parser.add_argument, default=argparse.SUPPRESS)


def add_about(parser: Any) -> None:
    """Add the title and the author of a card."""
    option = optional(parser)
    option("--title", metavar="TEXT", help="title of the card; default: Model of the target")
    option("--author", metavar="TEXT", help="author of the card")


def read_about(options: argparse.Namespace) -> models.About:
    """Return the title and the author of a card, if given."""
    return models.About(getattr(options, "title", None), getattr(options, "author", None))


def describe_choices(choices: Mapping[Any, str]) -> str:
    """Return the purpose of each choice of an option; the first is the default."""
    (default, first), *others = choices.items()
    texts = [f"{name}: {purpose}" for name, purpose in others]
    return "; ".join([f"{default} (default): {first}", *texts])


def add_settings(parser: Any) -> None:
    """Add the options that specify what to fit."""
    option = optional(parser)
    kinds = [f"{name}, {family.summary}" for name, family in FAMILIES.items()]
    kinds[0] += " (default)"
    option("--family", choices=list(FAMILIES), help=f"type of the response: {'; '.join(kinds)}")
    ties = f"method for tied event times, with --family {family_with('ties').name}; default: efron"
    option("--ties", choices=["efron", "breslow"], help=ties)
    option("--keep", type=names, metavar="COLUMNS", help="unpenalised columns: --keep age,sex")
    factors = "factors of the penalty, 1 for other columns: --penalty-factors age=0.5,dose=2"
    option("--penalty-factors", type=names, metavar="FACTORS", help=factors)
    option("--l1-ratio", type=float, help="L1 fraction of the penalty (glmnet's alpha); default: 1")
    groups = (
        "columns that enter or leave the model together: --groups ward for all levels of ward, "
        "--groups ward,bmi+bmi2 for two groups"
    )
    option("--groups", type=names, metavar="COLUMNS", help=groups)
    ranges = "minimum and maximum coefficients, per unit of the column: --bounds age=0:,dose=-1:2"
    option("--bounds", type=names, metavar="RANGES", help=ranges)
    effects = (
        "one intercept per site, or a common one; default: one per site if the fit has intervals "
        "or discoveries and the sites' mean responses clearly differ"
    )
    option("--site-effects", action=argparse.BooleanOptionalAction, help=effects)
    option("--fdr", type=float, help="false discovery rate of --goal discoveries; default: 0.1")
    intervals = (
        "columns that get confidence intervals, in the model or not: --interval age,dose; "
        "--interval selected for the columns in the model"
    )
    option("--interval", type=names, dest="intervals", metavar="COLUMNS", help=intervals)
    option("--level", type=float, help="confidence level of intervals; default: 0.95")
    weights = (
        "weights of rows: equal, or variance, the inverse of their site's noise variance; default: "
        "variance if the fit has intervals or discoveries and the sites' noise clearly differs"
    )
    option("--site-weights", choices=["equal", "variance"], help=weights)
    goals = describe_choices({name: goal.help for name, goal in GOALS.items()})
    option("--goal", choices=list(GOALS), help=f"purpose of the model. {goals}")
    run = f"run this procedure at the penalty, whatever the goal: {', '.join(REGISTRY)}"
    option("--procedure", metavar="NAME", help=run)
    option("--epochs", type=int, help="local epochs per round of the procedure; default: 1")
    option("--penalty", type=read_penalty, help=PENALTY_HELP)
    held_out = optional(parser.add_mutually_exclusive_group())
    held_out("--cv", type=int, help="folds to choose the penalty; default: 10 if uploads allow")
    held_out("--validation", type=float, help="fraction of each site's rows to hold out instead")
    rule = f"which penalty to use. {describe_choices(RULES)} (default with --goal selection)"
    option("--rule", choices=list(RULES), help=rule)
    option("--uploads", type=int, help=f"{UPLOADS_HELP} and printed")
    trips = "maximum of exchanges with the sites, each with one or more questions: --round-trips 15"
    option("--round-trips", type=int, metavar="N", help=trips)
    option("--no-intercept", action="store_false", dest="intercept", help="omit the intercept")
    scale = "penalise columns on their own scales, not per standard deviation"
    option("--no-standardise", action="store_false", dest="standardise", help=scale)
    option("--seed", type=int, help="seed of all splits; default: 0")


def read_settings(options: argparse.Namespace) -> Settings:
    """Return the given options as settings of the same names."""
    given = given_options(options, [field.name for field in fields(Settings)])
    if "bounds" in given:
        given["bounds"] = read_bounds(given["bounds"])
    if "penalty_factors" in given:
        given["penalty_factors"] = read_factors(given["penalty_factors"])
    if "groups" in given:
        given["groups"] = tuple(tuple(group.split("+")) for group in given["groups"])
    settings = Settings(**given)
    # An option that equals its default was nevertheless given.
    for name in given:
        if name in settings.without_effect:
            raise FedLassoError(settings.without_effect[name])
    return settings


def add_source(parser: Any) -> None:
    """Add the options that specify the sites' files."""
    option = optional(parser)
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"one per site: {KINDS}")
    option("--target", metavar="COLUMN", help="the response")
    option("--site-column", help="column that names each row's site, in a single file")
    codes = "columns whose numbers are codes of levels, as text: --categorical ward,stage"
    option("--categorical", type=names, metavar="COLUMNS", help=codes)
    add_reading(parser)


def add_formula(parser: Any) -> None:
    """Add the options of a formula."""
    option = optional(parser)
    text = "response and columns, instead of --target: --formula 'relapse ~ age*sex + C(ward)'"
    option("--formula", metavar="TEXT", help=f"{text}; requires fedlasso[formula]")
    knots = "knots of its splines, both ends included, for ns(bmi, 3): --knots bmi=18:25:30:40"
    option("--knots", type=names, metavar="KNOTS", help=knots)


def add_outcome(parser: Any) -> None:
    """Add the options that name columns of the response besides the target."""
    option = optional(parser)
    option("--time", metavar="COLUMN", help="follow-up time (--family cox), instead of --target")
    option("--event", metavar="COLUMN", help="1 for an event, 0 for censored (--family cox)")
    option("--offset", metavar="COLUMN", help="added to the linear predictor, e.g. log exposure")
    option("--weights", metavar="COLUMN", help="weights of the rows, above zero")
    event = "the text (or number) of the target that is 1; default: yes, case, dead and so on"
    option("--positive", metavar="LEVEL", help=event)
    clusters = "rows with the same value may depend on each other, e.g. patient; not a predictor"
    option("--cluster", metavar="COLUMN", help=clusters)


def add_reading(parser: Any) -> None:
    """Add the options for reading tables, on this machine or at sites on a network."""
    option = optional(parser)
    option("--drop", type=names, help="columns to exclude, comma-separated")
    how = "missing values: refuse (default), or replace by the mean over all sites"
    option("--missing", choices=["refuse", "mean"], help=how)
    codes = "codes for missing values, besides empty, NA, NaN and null: --na=.,unknown,-999"
    option("--na", type=names, metavar="CODES", help=codes)
    rows = f"minimum rows of a text level at some site, others are pooled: up to {MIN_LEVEL}, the"
    rows += " default, or 20, 40, 80 and so on"
    option("--min-level", type=int, metavar="N", help=rows)


def read_source(options: argparse.Namespace, readable: bool = True) -> models.FileSource:
    """Return the given options as a source of the same names; its files must be `readable`."""
    if not options.files:
        raise FedLassoError(f"name at least one file; see `fedlasso {options.command} --help`")
    given = given_options(options, models.FileSource.__struct_fields__)
    for file in options.files if readable else ():
        check_file(Path(file))
    if "knots" in given:
        given["knots"] = dict(map(read_knots, given["knots"]))
    return models.FileSource(**given | {"files": tuple(options.files)}).with_formula()


def read_knots(text: str) -> tuple[str, tuple[float, ...]]:
    """Return a column and the knots of its spline, from a text such as bmi=18:25:30:40."""
    name, _, values = text.rpartition("=")
    try:
        knots = tuple(float(value) for value in values.split(":"))
    except ValueError:
        name = ""
    if not name:
        remedy = "write COLUMN=FIRST:...:LAST in numbers, e.g. bmi=18:25:30:40"
        raise FedLassoError(f"--knots: {text!r} names no knots; {remedy}")
    return name, knots


def read_penalty(text: str) -> float | None:
    """Return a penalty, or None for auto."""
    if text == "auto":
        return None
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor auto") from None


def read_bounds(ranges: Sequence[str]) -> dict[str, Range]:
    """Return ranges of coefficients by column, from texts such as age=0: and dose=-1:2."""
    bounds: dict[str, Range] = {}
    for text in ranges:
        name, _, ends = text.rpartition("=")
        try:
            lower, upper = (float(end) if end else None for end in ends.split(":"))
        except ValueError:
            name = ""
        if not name or isnan(lower or 0.0) or isnan(upper or 0.0):
            remedy = "write COLUMN=LOWER:UPPER in numbers, e.g. age=0: or dose=-1:2"
            raise FedLassoError(f"--bounds: {text!r} is not a range; {remedy}")
        if name in bounds:
            raise FedLassoError(f"--bounds: {name!r} has two ranges; give one")
        bounds[name] = (lower, upper)
    return bounds


def read_factors(texts: Sequence[str]) -> dict[str, float]:
    """Return penalty factors by column, from texts such as age=0.5."""
    factors: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        factor = to_float(number)
        if not name or factor is None:
            raise FedLassoError(
                f"--penalty-factors: {text!r} is not a factor; write COLUMN=NUMBER, e.g. age=0.5"
            )
        if name in factors:
            raise FedLassoError(f"--penalty-factors: {name!r} has two factors; give one")
        factors[name] = factor
    return factors
