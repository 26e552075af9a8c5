"""Every column of a study's records, listed once: name, label, direction and caption.

Summaries, tables, figures and the page read this table. To add a column from outside the package,
set ``COLUMNS[column.name] = column``.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# Names of goals, repeated here so that a report does not import the code that fits them.
PREDICTION = "prediction"
SELECTION = "selection"
OBJECTIVE = "objective"
DISCOVERIES = "discoveries"
# Ending of the method of a goal whose model is fitted to the training rows only.
TRAINING_ROWS = ":training"

ColumnRole = Literal["axis", "metric", "cost", "note", "raw"]
RECORDS = ("outcome", "candidate", "reference", "penalty", "trace")


@dataclass(frozen=True)
class Field:
    """One column of the records.

    An axis distinguishes cells, a metric measures a model, a cost its fit; a note is shown on the
    page only, and a raw column is exported only.
    """

    name: str
    label: str
    kind: ColumnRole = "raw"
    better: Literal["higher", "lower", ""] = ""
    unit: str = ""
    short: str = ""  # heading of a narrow table
    caption: str = ""  # what it can and cannot show
    scale: Literal["proportion", "log", ""] = ""  # drawn from 0 to 1, logarithmic, or linear

    @property
    def heading(self) -> str:
        return self.short or self.label


@dataclass(frozen=True)
class Axis(Field):
    """A column that distinguishes the cells of a study."""

    kind: ColumnRole = "axis"
    usual: str | int | None = None  # the value in tables that show only one
    number: bool = False  # sorted as numbers, and printed with the axis (E = 5)
    control: bool = True  # the page shows one value at a time, else all side by side
    words: Mapping[Any, str] = field(default_factory=dict)  # display names
    capital: bool = False  # whether values are capitalised


@dataclass(frozen=True)
class CostField(Field):
    """A cost of a fit; costs of one ``bill`` are stacked as its parts, each net of ``less``."""

    kind: ColumnRole = "cost"
    bill: str = ""
    part: str = ""
    less: str = ""


# Scenarios displayed by their names.
_PLAIN_SCENARIOS = (
    "baseline", "strong-correlation", "two-sites", "five-sites", "ten-sites", "weak-signal",
    "strong-signal", "fewer-predictors", "more-predictors", "dense-truth", "unequal-noise",
)  # fmt: skip
_SCENARIOS = {name: name.replace("-", " ").capitalize() for name in _PLAIN_SCENARIOS} | {
    "independent": "Independent predictors",
    "unequal-sizes": "Unequal site sizes",
    "different-distributions": "Different site distributions",
    "near-collinear": "Nearly collinear predictors",
    "twenty-sites": "Twenty small sites",
    "heavy-tails": "Heavy-tailed predictors",
    "spectra": "Spectra",
    "digits": "Digits (real)",
    "dummies": "Full sets of dummies",
    "rare-binary": "Rare binary predictors",
    "shifted-sites": "Site means shifted",
    "shifted-columns": "Site means shifted, columns too",
    "repeated-visits": "Repeated visits",
    "unnamed-visits": "Repeated visits, not named",
    **{f"ar-{digits}": f"Correlation 0.{digits}" for digits in ("98", "995", "999")},
    "noise-by-column": "Noise depends on a column",
    "bad-leverage": "1% bad leverage",
    "corrupted-rows": "1% corrupted rows",
    "correlated": "Correlated predictors",
    "heterogeneous": "Different site distributions",
    "deviating-0": "Sites do not deviate",
    **{f"deviating-{n}": f"Sites deviate in {n} coefficients" for n in (5, 15, 30)},
}
_PANELS = {"upload": "upload-only limit", "joint": "joint limits", "work": "equal work"}
_RULES = {"min": "minimum validation error", "1se": "one standard error"}
_TUNING = {"inherited": "inherited penalty", "joint": "jointly tuned penalty"}
_SPLITS = {
    "random": "at random", "unequal": "at random, unequal sizes",
    "sorted": "in order of the response", "pooled": "pooled",
}  # fmt: skip
_RAW = {
    "record": "Kind of record", "replicate": "Replicate", "objective": "Pooled objective",
    "support": "Columns used, by number", "status": "Status of the fit", "site": "Site",
    "site_lam": "Penalty chosen by the site", "site_rows": "Training rows of the site",
    "validation_mse": "Validation error", "validation_se": "Standard error of the validation error",
    "chosen_min": "Chosen by the minimum rule", "chosen_1se": "Chosen by the one-SE rule",
    "met": "Tolerance met", "solver": "Reference solver", "duality_gap": "Duality gap",
    "solver_steps": "Steps of the reference solver", "fallbacks": "Fits by a second solver",
    "worst_gap": "Worst relative gap along the path",
}  # fmt: skip
_METHODS = {
    **{f"goal:{goal}": f"{goal} goal, all rows" for goal in (PREDICTION, SELECTION)},
    **{
        f"goal:{goal}{TRAINING_ROWS}": f"{goal} goal, training rows"
        for goal in (PREDICTION, SELECTION)
    },
    f"goal:{OBJECTIVE}": f"{OBJECTIVE} goal, training rows",
}
_UPLOADS = "Uploads (bytes)"
_WORK = "Leading operations"

_TABLE: tuple[Field, ...] = (
    Axis("scenario", "Scenario", words=_SCENARIOS),
    Axis("family", "Family", capital=True),
    Axis("method", "Method", control=False, words=_METHODS),
    Axis("epochs", "Local epochs", short="E", number=True, control=False, words={0: "none"}),
    Axis("tuning", "Tuning", words=_TUNING),
    Axis("budget", "Budget", short="B", number=True, usual=100),
    Axis("panel", "Panel", usual="joint", words=_PANELS),
    Axis("split", "Rows to sites", control=False, words=_SPLITS),
    Axis("rate", "Nominal false discovery rate", short="q", number=True),
    Axis("rule", "Selection rule", short="Rule", usual="min", words=_RULES),
    Field("f1", "F1", "metric", "higher", scale="proportion", caption=(
        "Harmonic mean of precision and recall (1 is perfect, an empty model scores 0): measures "
        "selection, not prediction or the size of coefficients.")),
    Field("precision", "Precision", "metric", "higher", scale="proportion", caption=(
        "Proportion of the selected predictors that are truly nonzero. Tiny models can score 1.")),
    Field("recall", "Recall", "metric", "higher", scale="proportion", caption=(
        "Proportion of the truly nonzero predictors selected. Selecting everything scores 1.")),
    Field("fdp", "False discovery proportion", "metric", "lower", short="FDP", scale="proportion",
          caption=(
        "Proportion of the selected columns that are truly zero; 0 if none is selected. Its mean "
        "over replicates, the false discovery rate, should be at most q.")),
    *(Field(f"coverage_{which}", f"Coverage, {words}", "metric", scale="proportion", caption=(
        "Proportion of 95% intervals that contain the true coefficient. It should be near 0.95; "
        "lower is anti-conservative, higher is wider than necessary."))
      for which, words in (("nonzero", "named and truly nonzero"), ("zero", "named and truly zero"),
                           ("near", "named and zero beside a nonzero"), ("found", "selected"))),
    *(Field(f"width_{which}", f"Width of intervals, {words}", "metric", "lower", caption=(
        "Mean width of the 95% intervals, per standard deviation of a predictor. Compare only "
        "intervals of equal coverage."))
      for which, words in (("named", "named"), ("found", "selected"))),
    Field("not_given", "Named columns without an interval", "metric", scale="proportion", caption=(
        "Proportion of the named columns to which a fit gives no interval: they are not identified "
        "by the data, or few rows bound their effects. Coverage and width are of the others.")),
    Field("flagged", "Fits that cannot promise the rate", "metric", short="Marked",
          scale="proportion", caption=(
        "Proportion of the fits that state themselves that they cannot promise the false discovery "
        "rate on these data.")),
    Field("active", "Active coefficients", "metric", short="Active", caption=(
        "Number of coefficients above 1e-4 in size; on real data, number of columns used. "
        "Fewer is sparser, not necessarily better.")),
    Field("test_mse", "Test MSE", "metric", "lower", caption=(
        "Mean squared error on held-out records: 2000 in a simulation, 30% of the rows of real "
        "data. It includes the noise, so the true model does not score 0.")),
    Field("test_deviance", "Test deviance", "metric", "lower", caption=(
        "Mean deviance of held-out records; for Cox, minus twice the log partial likelihood. "
        "Compare methods within a family only.")),
    Field("coef_error", "Coefficient error", "metric", "lower", short="Coef. error", caption=(
        "Euclidean distance to the true coefficients, including shrinkage by the penalty.")),
    Field("gap", "Objective gap", "metric", "lower", scale="log", caption=(
        "Common objective minus its pooled minimum at the same penalty. Zero is the pooled Lasso, "
        "which need not be the best model.")),
    Field("relative_gap", "Relative gap", "metric", "lower", scale="log", caption=(
        "Objective gap divided by the pooled minimum (for least squares, by 1 if that is larger). "
        "It measures optimisation: a smaller gap need not select or predict better.")),
    Field("stationarity", "Stationarity", "metric", "lower", scale="log", caption=(
        "Largest violation of the pooled optimality conditions; zero at the pooled Lasso.")),
    Field("f1_1e6", "F1, cutoff 1e-6", "metric", "higher", scale="proportion", caption=(
        "F1 of the same fits if any |b| > 1e-6 counts as active.")),
    Field("f1_1e2", "F1, cutoff 1e-2", "metric", "higher", scale="proportion", caption=(
        "F1 of the same fits if only |b| > 1e-2 counts as active.")),
    *(Field(f"{name}_{cutoff}", f"{label}, cutoff 1e-{cutoff[2]}")
      for cutoff in ("1e6", "1e2")
      for name, label in (("precision", "Precision"), ("recall", "Recall"), ("active", "Active"))),
    CostField("training_upload_bytes", "Uploads in training", unit="bytes", bill=_UPLOADS,
         part="training"),
    CostField("upload_bytes", "Uploads", unit="bytes", short="Upload", bill=_UPLOADS,
         part="set-up and validation", less="training_upload_bytes"),
    CostField("download_bytes", "Downloads", unit="bytes", short="Download",
         bill="Downloads (bytes)", part="downloads"),
    CostField("round_trips", "Round trips", short="Trips", bill="Round trips", part="round trips"),
    CostField("framing_bytes", "Framing of messages", unit="bytes"),
    CostField("local_steps", "Local steps at the busiest site", short="Steps",
         bill="Local steps at the busiest site", part="training"),
    CostField("operations", "Training operations", bill=_WORK, part="training"),
    CostField("penalty_operations", "Penalty-search operations", bill=_WORK, part="penalty search"),
    CostField("penalty_steps", "Penalty-search steps"),
    *(CostField(f"seconds_{phase}", f"Seconds, {part}", unit="s", short=phase.capitalize(),
           bill="Seconds by phase", part=part)
      for phase, part in (("penalty", "penalty search"), ("rate", "rate set-up"),
                          ("training", "training"), ("validation", "validation"))),
    CostField("seconds", "Seconds", unit="s", short="Fit", bill="Seconds of the fit", part="fit"),
    Field("lam", "Penalty", "note"),
    Field("uploads", "Uploads per site, in vectors of p numbers", "note", "lower"),
    Field("penalty_multiple", "Chosen multiple of the inherited penalty", "note"),
    Field("candidate", "Chosen candidate", "note"),
    Field("rounds", "Rounds", "note"),
    Field("uploads_needed", "Uploads to a relative gap of 1e-8", "note", "lower"),
    Field("uploads_certified", "Uploads until that is certified", "note", "lower"),
    Field("trips_needed", "Round trips to a relative gap of 1e-8", "note", "lower"),
    *(Field(name, label) for name, label in _RAW.items()),
)  # fmt: skip
COLUMNS: dict[str, Field] = {column.name: column for column in _TABLE}


def known(kind: ColumnRole, among: Container[str]) -> list[str]:
    """Return the names of the columns of a kind that are in `among`, in the table's order."""
    return [c.name for c in COLUMNS.values() if c.kind == kind and c.name in among]


def axes() -> dict[str, Axis]:
    """Return the axes by name, in the table's order."""
    return {name: column for name, column in COLUMNS.items() if isinstance(column, Axis)}


def display_name(axis: str, value: object) -> str:
    """Return the display name of a value under the heading of its axis."""
    column = COLUMNS[axis]
    assert isinstance(column, Axis)
    name = column.words.get(value, str(value))
    return name.capitalize() if column.capital else name


def title(axis: str, value: object) -> str:
    """Return the display name of a value without such a heading, for example "E = 5"."""
    named = f"{COLUMNS[axis].heading} = " if axes()[axis].number else ""
    return named + display_name(axis, value)


def titles(where: Mapping[str, object]) -> str:
    """Return the titles of several values, separated by commas."""
    return ", ".join(title(axis, value) for axis, value in where.items())
