"""Every column of a study's records, listed once: its name, its words and its direction.

Summaries, tables, figures, the comparison and the page read this table and spell no column again. A
column from outside the package is one entry more: ``COLUMNS[column.name] = column``.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# Names of goals: a report must not wait for what computes them.
PREDICTION = "prediction"
SELECTION = "selection"
OBJECTIVE = "objective"
DISCOVERIES = "discoveries"

Kind = Literal["axis", "metric", "cost", "note", "raw"]
RECORDS = ("outcome", "candidate", "reference", "penalty", "trace")


@dataclass(frozen=True)
class Column:
    """One column of the records.

    Attributes
    ----------
    name, label : how records call it, and how people do
    kind : an axis tells cells apart, a metric judges a model, a cost was paid for it, a note stands
        beside it in the page, and what is raw is exported only
    better : the direction that is better, if one is
    unit : of its values
    short : heading of a narrow table
    caption : what it can and cannot show
    scale : how it is drawn: a share from 0 to 1, on a logarithmic axis, or plainly
    """

    name: str
    label: str
    kind: Kind = "raw"
    better: Literal["higher", "lower", ""] = ""
    unit: str = ""
    short: str = ""
    caption: str = ""
    scale: Literal["share", "log", ""] = ""

    @property
    def heading(self) -> str:
        """The shortest words for it."""
        return self.short or self.label


@dataclass(frozen=True)
class Axis(Column):
    """A column that tells one cell of a study from another.

    Attributes
    ----------
    usual : the value that is printed where a table prints only one; none if all are printed
    number : values are numbers, sorted as such and printed with their axis (E = 5)
    control : the page shows one value at a time, else all side by side
    words : how values are printed, where not as they are
    capital : whether they are printed with a capital
    """

    kind: Kind = "axis"
    usual: str | int | None = None
    number: bool = False
    control: bool = True
    words: Mapping[Any, str] = field(default_factory=dict)
    capital: bool = False


@dataclass(frozen=True)
class Cost(Column):
    """What a fit cost; costs with one ``bill`` are stacked as its parts, ``less`` taken away."""

    kind: Kind = "cost"
    bill: str = ""
    part: str = ""
    less: str = ""


# Scenarios whose names are their words.
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
    "correlated": "Correlated predictors",
    "heterogeneous": "Different site distributions",
    "deviating-0": "No deviations of sites",
    **{f"deviating-{n}": f"Sites deviate in {n} coefficients" for n in (5, 15, 30)},
}
_PANELS = {"upload": "upload-only limit", "joint": "joint limits", "work": "equal work"}
_RULES = {"min": "minimum validation error", "1se": "one standard error"}
_TUNING = {"inherited": "inherited penalty", "joint": "jointly tuned penalty"}
_SPLITS = {
    "random": "at random",
    "unequal": "at random, unequally",
    "sorted": "sorted by the response",
    "pooled": "all in one place",
}
_METHODS = {f"goal:{goal}": f"{goal} goal" for goal in (PREDICTION, SELECTION, OBJECTIVE)}
_UPLOADS = "Uploads (bytes)"
_WORK = "Leading operations"

_TABLE: tuple[Column, ...] = (
    Axis("scenario", "Scenario", words=_SCENARIOS),
    Axis("family", "Family", capital=True),
    Axis("method", "Method", control=False, words=_METHODS),
    Axis("epochs", "Local epochs", short="E", number=True, control=False, words={0: "none"}),
    Axis("tuning", "Tuning", words=_TUNING),
    Axis("budget", "Budget", short="B", number=True, usual=100),
    Axis("panel", "Panel", usual="joint", words=_PANELS),
    Axis("split", "Rows to sites", control=False, words=_SPLITS),
    Axis("rate", "False discovery rate asked for", short="q", number=True),
    Axis("rule", "Selection rule", short="Rule", usual="min", words=_RULES),
    Column("f1", "F1", "metric", "higher", scale="share", caption=(
        "Agreement of the selected with the truly nonzero predictors (1 is perfect, an empty model "
        "scores 0). It says nothing about prediction or about the size of the coefficients.")),
    Column("precision", "Precision", "metric", "higher", scale="share", caption=(
        "Share of the selected predictors that are truly nonzero. A tiny model can score well.")),
    Column("recall", "Recall", "metric", "higher", scale="share", caption=(
        "Share of the truly nonzero predictors that were selected. "
        "Selecting everything scores 1.")),
    Column("fdp", "False discovery proportion", "metric", "lower", short="False share",
           scale="share", caption=(
        "Share of the columns found that are truly zero; 0 if none is found. Its mean over "
        "replicates is the false discovery rate, which is to be at most the one asked for.")),
    *(Column(f"coverage_{which}", f"Coverage, {words}", "metric", scale="share", caption=(
        "Share of the 95% intervals that hold the true coefficient. It is to be near 0.95: less "
        "promises too much, and more is wider than need be."))
      for which, words in (("nonzero", "named and truly nonzero"), ("zero", "named and truly zero"),
                           ("near", "named and zero beside a nonzero"), ("found", "found"))),
    *(Column(f"width_{which}", f"Width of intervals, {words}", "metric", "lower", caption=(
        "Mean width of the 95% intervals, per standard deviation of a predictor. Only intervals "
        "that cover as often are to be compared."))
      for which, words in (("named", "named"), ("found", "found"))),
    Column("active", "Active coefficients", "metric", short="Active", caption=(
        "How many coefficients exceed 1e-4 in size; on real data, how many columns a model uses. "
        "Fewer is sparser, not necessarily better.")),
    Column("test_mse", "Test MSE", "metric", "lower", caption=(
        "Mean squared prediction error on records with no part in the fit: 2000 fresh ones of a "
        "simulation, 30% of the rows of real data. The noise is part of it, so even the truth does "
        "not score 0; it does not show whether the right predictors were found.")),
    Column("test_deviance", "Test deviance", "metric", "lower", caption=(
        "Mean deviance of records with no part in the fit: twice what the model costs them more "
        "than a perfect one; of survival times, twice the partial likelihood's. Families have "
        "units of their own: compare methods within one.")),
    Column("coef_error", "Coefficient error", "metric", "lower", short="Coef. error", caption=(
        "Euclidean distance to the true coefficients, shrinkage by the penalty included.")),
    Column("gap", "Objective gap", "metric", "lower", scale="log", caption=(
        "How far the common objective is above its pooled minimum at the same penalty. Zero means "
        "the pooled Lasso was reached; it does not mean that the pooled Lasso is right.")),
    Column("relative_gap", "Relative gap", "metric", "lower", scale="log", caption=(
        "The objective gap divided by the pooled minimum (for least squares, or by 1 if that is "
        "larger). Optimisation error only: a smaller gap need not select or predict better.")),
    Column("stationarity", "Stationarity", "metric", "lower", scale="log", caption=(
        "Largest violation of the pooled optimality conditions; "
        "zero exactly at the pooled Lasso.")),
    Column("f1_1e6", "F1, cutoff 1e-6", "metric", "higher", scale="share", caption=(
        "F1 of the same fits if any |b| > 1e-6 counts as active.")),
    Column("f1_1e2", "F1, cutoff 1e-2", "metric", "higher", scale="share", caption=(
        "F1 of the same fits if only |b| > 1e-2 counts as active.")),
    *(Column(f"{name}_{cutoff}", f"{label}, cutoff 1e-{cutoff[2]}")
      for cutoff in ("1e6", "1e2")
      for name, label in (("precision", "Precision"), ("recall", "Recall"), ("active", "Active"))),
    Cost("training_upload_bytes", "Uploads in training", unit="bytes", bill=_UPLOADS,
         part="training"),
    Cost("upload_bytes", "Uploads", unit="bytes", short="Upload", bill=_UPLOADS,
         part="set-up and validation", less="training_upload_bytes"),
    Cost("download_bytes", "Downloads", unit="bytes", short="Download",
         bill="Downloads (bytes)", part="downloads"),
    Cost("framing_bytes", "Framing of messages", unit="bytes"),
    Cost("local_steps", "Local steps at the busiest site", short="Steps",
         bill="Local steps at the busiest site", part="training"),
    Cost("operations", "Training operations", bill=_WORK, part="training"),
    Cost("penalty_operations", "Penalty-search operations", bill=_WORK, part="penalty search"),
    Cost("penalty_steps", "Penalty-search steps"),
    *(Cost(f"seconds_{phase}", f"Seconds, {part}", unit="s", short=phase.capitalize(),
           bill="Seconds by phase", part=part)
      for phase, part in (("penalty", "penalty search"), ("rate", "rate set-up"),
                          ("training", "training"), ("validation", "validation"))),
    Cost("seconds", "Seconds", unit="s", short="Fit", bill="Seconds of the fit", part="fit"),
    Column("lam", "Penalty", "note"),
    Column("uploads", "Uploads per site, in vectors of p numbers", "note", "lower"),
    Column("penalty_multiple", "Chosen multiple of the inherited penalty", "note"),
    Column("candidate", "Chosen candidate", "note"),
    Column("rounds", "Rounds", "note"),
    Column("uploads_needed", "Uploads to a relative gap of 1e-8", "note", "lower"),
    Column("uploads_certified", "Uploads until that is certified", "note", "lower"),
    Column("record", "Kind of record"),
    Column("support", "Columns used, by number"),
    Column("status", "How the fit ended"),
    Column("replicate", "Replicate"),
    Column("objective", "Pooled objective"),
    Column("validation_mse", "Validation error"),
    Column("validation_se", "Standard error of the validation error"),
    Column("chosen_min", "Chosen by the minimum rule"),
    Column("chosen_1se", "Chosen by the one-SE rule"),
    Column("met", "Tolerance met"),
    Column("solver", "Reference solver"),
    Column("solver_steps", "Steps of the reference solver"),
    Column("duality_gap", "Duality gap"),
    Column("site", "Site"),
    Column("site_lam", "Penalty that the site chose"),
    Column("site_rows", "Training rows of the site"),
    Column("worst_gap", "Worst relative gap along the path"),
    Column("fallbacks", "Fits that needed a second solver"),
)  # fmt: skip
COLUMNS: dict[str, Column] = {column.name: column for column in _TABLE}


def known(kind: Kind, among: Container[str]) -> list[str]:
    """Names of the columns of a kind that are among these, in the order of the table."""
    return [c.name for c in COLUMNS.values() if c.kind == kind and c.name in among]


def axes() -> dict[str, Axis]:
    """The axes by name, in the order of the table."""
    return {name: column for name, column in COLUMNS.items() if isinstance(column, Axis)}


def say(axis: str, value: object) -> str:
    """How a value is printed in a column of its axis."""
    column = COLUMNS[axis]
    assert isinstance(column, Axis)
    said = column.words.get(value, str(value))
    return said.capitalize() if column.capital else said


def title(axis: str, value: object) -> str:
    """How a value is printed where its axis is not named beside it."""
    named = f"{COLUMNS[axis].heading} = " if axes()[axis].number else ""
    return named + say(axis, value)


def titles(where: Mapping[str, object]) -> str:
    """Values of several axes, as a list of words."""
    return ", ".join(title(axis, value) for axis, value in where.items())
