"""Every column of a study's records, listed once: its name, its words and its direction.

Summaries, tables, figures, the comparison and the page read this table and spell no column again. A
column from outside the package is one entry more: ``COLUMNS[column.name] = column``.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["axis", "metric", "cost", "note", "raw"]
RECORDS = ("outcome", "candidate", "reference", "penalty")
_FITTED = ("outcome", "reference")
_CELLS = ("outcome", "candidate")


@dataclass(frozen=True)
class Column:
    """One column of the records.

    Attributes
    ----------
    name, label : how records call it, and how people do
    kind : an axis tells cells apart, a metric judges a model, a cost was paid for it, a note stands
        beside it in the page, and what is raw is exported only
    better : the direction that is better, if one is
    unit, format : of its values; the format is Python's
    records : kinds of record that carry it
    short : heading of a narrow table
    caption : what it can and cannot show
    """

    name: str
    label: str
    kind: Kind = "raw"
    better: Literal["higher", "lower", ""] = ""
    unit: str = ""
    format: str = ".4g"
    records: tuple[str, ...] = ("outcome",)
    short: str = ""
    caption: str = ""

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
    """

    kind: Kind = "axis"
    usual: str | int | None = None
    number: bool = False
    control: bool = True
    words: Mapping[Any, str] = field(default_factory=dict)

    def say(self, value: object) -> str:
        """How a value is printed in a column of its axis."""
        return self.words.get(value, str(value))

    def title(self, value: object) -> str:
        """How a value is printed where its axis is not named beside it."""
        return f"{self.heading} = {self.say(value)}" if self.number else self.say(value)


@dataclass(frozen=True)
class Cost(Column):
    """What a fit cost; costs with one ``bill`` are stacked as its parts, ``less`` taken away."""

    kind: Kind = "cost"
    bill: str = ""
    part: str = ""
    less: str = ""


_SCENARIOS = {
    "baseline": "Baseline",
    "independent": "Independent predictors",
    "strong-correlation": "Strong correlation",
    "two-sites": "Two sites",
    "five-sites": "Five sites",
    "ten-sites": "Ten sites",
    "weak-signal": "Weak signal",
    "strong-signal": "Strong signal",
    "fewer-predictors": "Fewer predictors",
    "more-predictors": "More predictors",
    "unequal-sizes": "Unequal site sizes",
    "different-distributions": "Different site distributions",
}
_PANELS = {"upload": "upload-only limit", "joint": "joint limits", "work": "equal work"}
_RULES = {"min": "minimum validation error", "1se": "one standard error"}
_TUNING = {"inherited": "inherited penalty", "joint": "jointly tuned penalty"}
_UPLOADS = "Uploads (bytes)"
_WORK = "Leading operations"
_SECONDS = "Seconds by phase"

_TABLE: tuple[Column, ...] = (
    Axis("scenario", "Scenario", records=RECORDS, words=_SCENARIOS),
    Axis("method", "Method", records=_CELLS, control=False),
    Axis("epochs", "Local epochs", short="E", records=_CELLS, number=True, control=False,
         words={0: "none"}),
    Axis("tuning", "Tuning", records=_CELLS, words=_TUNING),
    Axis("budget", "Budget", short="B", records=_CELLS, number=True, usual=100),
    Axis("panel", "Panel", records=_CELLS, usual="joint", words=_PANELS),
    Axis("rule", "Selection rule", short="Rule", usual="min", words=_RULES),
    Column("f1", "F1", "metric", "higher", records=_FITTED, caption=(
        "Agreement of the selected with the truly nonzero predictors (1 is perfect, an empty model "
        "scores 0). It says nothing about prediction or about the size of the coefficients.")),
    Column("precision", "Precision", "metric", "higher", records=_FITTED, caption=(
        "Share of the selected predictors that are truly nonzero. A tiny model can score well.")),
    Column("recall", "Recall", "metric", "higher", records=_FITTED, caption=(
        "Share of the truly nonzero predictors that were selected. "
        "Selecting everything scores 1.")),
    Column("active", "Active coefficients", "metric", short="Active", format="d",
           records=("outcome", "candidate", "reference"), caption=(
        "How many coefficients exceed 1e-4 in size. Fewer is sparser, not necessarily better.")),
    Column("test_mse", "Test MSE", "metric", "lower", records=_FITTED, caption=(
        "Mean squared prediction error on 2000 fresh records. The noise is part of it, so even the "
        "truth does not score 0; it does not show whether the right predictors were found.")),
    Column("coef_error", "Coefficient error", "metric", "lower", short="Coef. error",
           records=_FITTED, caption=(
        "Euclidean distance to the true coefficients, shrinkage by the penalty included.")),
    Column("gap", "Objective gap", "metric", "lower", records=_FITTED, caption=(
        "How far the common objective is above its pooled minimum at the same penalty. Zero means "
        "the pooled Lasso was reached; it does not mean that the pooled Lasso is right.")),
    Column("relative_gap", "Relative gap", "metric", "lower", records=_FITTED, caption=(
        "The objective gap divided by the pooled minimum (or by 1 if that is larger). Optimisation "
        "error only: a smaller gap need not select or predict better.")),
    Column("stationarity", "Stationarity", "metric", "lower", records=_FITTED, caption=(
        "Largest violation of the pooled optimality conditions; "
        "zero exactly at the pooled Lasso.")),
    Column("f1_1e6", "F1, cutoff 1e-6", "metric", "higher", records=_FITTED, caption=(
        "F1 of the same fits if any |b| > 1e-6 counts as active.")),
    Column("f1_1e2", "F1, cutoff 1e-2", "metric", "higher", records=_FITTED, caption=(
        "F1 of the same fits if only |b| > 1e-2 counts as active.")),
    *(Column(f"{name}_{cutoff}", f"{label}, cutoff 1e-{cutoff[2]}", records=_FITTED)
      for cutoff in ("1e6", "1e2")
      for name, label in (("precision", "Precision"), ("recall", "Recall"), ("active", "Active"))),
    Cost("training_upload_bytes", "Uploads in training", unit="bytes", format=",.0f",
         bill=_UPLOADS, part="training"),
    Cost("upload_bytes", "Uploads", unit="bytes", format=",.0f", short="Upload", bill=_UPLOADS,
         part="set-up and validation", less="training_upload_bytes"),
    Cost("download_bytes", "Downloads", unit="bytes", format=",.0f", short="Download",
         bill="Downloads (bytes)", part="downloads"),
    Cost("framing_bytes", "Framing of messages", unit="bytes", format=",.0f"),
    Cost("local_steps", "Local steps at the busiest site", format=",.0f", short="Steps",
         bill="Local steps at the busiest site", part="training"),
    Cost("operations", "Training operations", format=",.0f", bill=_WORK, part="training"),
    Cost("penalty_operations", "Penalty-search operations", format=",.0f",
         bill=_WORK, part="penalty search"),
    Cost("penalty_steps", "Penalty-search steps", format=",.0f", records=("outcome", "penalty")),
    *(Cost(f"seconds_{phase}", f"Seconds, {part}", unit="s", format=".3f",
           short=phase.capitalize(), bill=_SECONDS, part=part)
      for phase, part in (("penalty", "penalty search"), ("rate", "rate set-up"),
                          ("training", "training"), ("validation", "validation"))),
    Column("lam", "Penalty", "note", records=RECORDS),
    Column("penalty_multiple", "Chosen multiple of the inherited penalty", "note"),
    Column("candidate", "Chosen candidate", "note", records=_CELLS),
    Column("rounds", "Rounds", "note", records=_CELLS, format="d"),
    Column("uploads_needed", "Uploads to a relative gap of 1e-8", "note", "lower"),
    Column("record", "Kind of record", records=RECORDS, format="s"),
    Column("replicate", "Replicate", records=RECORDS, format="d"),
    Column("objective", "Pooled objective", records=_FITTED),
    Column("validation_mse", "Validation error", records=("candidate",)),
    Column("validation_se", "Standard error of the validation error", records=("candidate",)),
    Column("chosen_min", "Chosen by the minimum rule", records=("candidate",)),
    Column("chosen_1se", "Chosen by the one-SE rule", records=("candidate",)),
    Column("met", "Tolerance met", records=("reference", "penalty")),
    Column("solver", "Reference solver", records=("reference",), format="s"),
    Column("solver_steps", "Steps of the reference solver", records=("reference",), format="d"),
    Column("duality_gap", "Duality gap", records=("reference",)),
    Column("site", "Site", records=("penalty",), format="s"),
    Column("site_lam", "Penalty that the site chose", records=("penalty",)),
    Column("site_rows", "Training rows of the site", records=("penalty",), format="d"),
    Column("worst_gap", "Worst relative gap along the path", records=("penalty",)),
    Column("fallbacks", "Fits that needed a second solver", records=("penalty",), format="d"),
)  # fmt: skip
COLUMNS: dict[str, Column] = {column.name: column for column in _TABLE}


def known(kind: Kind, among: Container[str]) -> list[str]:
    """Names of the columns of a kind that are among these, in the order of the table."""
    return [c.name for c in COLUMNS.values() if c.kind == kind and c.name in among]


def axes() -> dict[str, Axis]:
    """The axes by name, in the order of the table."""
    return {name: column for name, column in COLUMNS.items() if isinstance(column, Axis)}
