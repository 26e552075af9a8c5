"""model.json as typed values: everything that is recorded about a fitted model."""

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from fedlasso import __version__
from fedlasso.errors import FedLassoError
from fedlasso.fitting.examination.assessment import Assessment
from fedlasso.fitting.examination.comparison import (
    CoefficientPath,
    ColumnStability,
    ComparedModel,
    SiteError,
)
from fedlasso.fitting.examination.table_one import TableOne
from fedlasso.fitting.settings import Settings
from fedlasso.governance.counting import fraction_of
from fedlasso.models.inference_document import TrustDocument
from fedlasso.models.numbers import bytes_of, counted, number, ratio_of, with_error
from fedlasso.numerics import Certificate
from fedlasso.tables import Schema

Missing = Literal["refuse", "mean"]
DIGEST = "digest"
# Endings of model names; other names are those of procedures.
MODEL_NAMES = ("group Lasso", "Lasso", "elastic net")
# What round trips and bytes were for.
SENT = ("for the fit", "for this card", "in all")
# Rows on which an error was measured.
GIVEN = "held-out rows (cross-validation)"
CHOSE = "held-out rows that also chose the model (slightly optimistic)"
NESTED = "held-out rows (nested cross-validation)"


@dataclass(frozen=True)
class Coefficient:
    """A column of the model: coefficient per unit and per SD, and the column's mean and SD."""

    name: str
    value: float
    standardised: float
    mean: float
    scale: float

    @property
    def ratios(self) -> tuple[float, float]:
        """Odds, rate or hazard ratios: per unit, and per SD of the column."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.value)), float(np.exp(self.standardised))

    def per(self, unit: str) -> float:
        """Return the coefficient "per SD" or "per unit"."""
        return self.standardised if unit == "per SD" else self.value


@dataclass(frozen=True)
class RowCounts:
    """Training rows, and rows held out to choose the penalty and the candidate."""

    training: int
    held_out: tuple[int, int]


@dataclass(frozen=True)
class SiteTraffic:
    """A site's training rows, bytes sent and received by kind of exchange, and messages."""

    name: str
    rows: int
    sent: dict[str, int]
    received: dict[str, int]
    messages: int

    @property
    def sent_in_all(self) -> int:
        return sum(self.sent.values())


@dataclass(frozen=True)
class ErrorCurve:
    """Pooled held-out error along the penalties, and the index of the chosen one.

    `active` are mean numbers of columns of the fits without held-out rows, and `nzero` those of the
    fits to all rows, as in glmnet, None where that is not known.
    """

    penalties: tuple[float, ...]
    mse: tuple[float, ...]
    se: tuple[float | None, ...]
    active: tuple[float, ...]
    chosen: int
    nzero: tuple[int | None, ...] = ()

    @property
    def counts(self) -> tuple[int, ...] | None:
        """Numbers of columns of the fits to all rows, if all of them are known."""
        known = tuple(count for count in self.nzero if count is not None)
        return known if len(known) == len(self.penalties) else None

    @property
    def minimum(self) -> int:
        """Index of the penalty of least error, glmnet's lambda.min."""
        return int(np.argmin(self.mse))

    @property
    def one_se(self) -> int:
        """Index of the largest penalty within one standard error of it, glmnet's lambda.1se."""
        least = self.minimum
        limit = self.mse[least] + (self.se[least] or 0.0)
        close = [k for k, error in enumerate(self.mse) if error <= limit]
        return max(close, key=lambda k: self.penalties[k])


@dataclass(frozen=True)
class ExpectedError:
    """Error expected on new rows, its standard error, and R^2 against the empty model.

    With an assessment these are its error over all rows and the deviance that it explains. `rows`
    describes the rows on which it was measured.
    """

    mse: float
    se: float | None
    r2: float | None
    rows: str


@dataclass(frozen=True)
class Revealed:
    """What the requests disclosed about each site: for the fit, and for its card."""

    fit: tuple[str, ...]
    card: tuple[str, ...] = ()


@dataclass(frozen=True)
class Baselines:
    """Each site's cumulative baseline hazard at the times of all events."""

    times: tuple[float, ...]
    hazards: dict[str, tuple[float, ...]]


@dataclass(frozen=True, kw_only=True)
class ModelDocument:
    """A fitted model as it is stored, shown and used; docs/model.md describes every field.

    A field whose default is None is omitted from model.json where it was not measured.
    """

    format: Literal["fedlasso-model"] = "fedlasso-model"
    version: Literal[1] = 1
    fedlasso: str = __version__
    schema: Schema
    missing: Missing
    settings: Settings
    procedure: str
    penalty: float
    intercept: float
    coefficients: tuple[Coefficient, ...]
    columns: int
    rows: RowCounts
    constant: tuple[str, ...]
    certificate: Certificate
    status: str
    status_text: str
    why: str
    plan: str
    rounds: int
    sites: tuple[SiteTraffic, ...]
    curve: ErrorCurve | None
    path: CoefficientPath | None
    error: ExpectedError | None = None
    trust: TrustDocument | None = None
    means: tuple[float, ...] | None = None
    revealed: Revealed | None = None
    site_errors: tuple[SiteError, ...] | None = None
    no_site_errors: str | None = None
    comparison: tuple[ComparedModel, ...] | None = None
    not_compared: str | None = None
    stability: tuple[ColumnStability, ...] | None = None
    assessment: Assessment | None = None
    not_assessed: str | None = None
    round_trips: int | None = None
    examination_sent: dict[str, int] | None = None
    examination_trips: int | None = None
    table_one: TableOne | None = None
    positive: str | None = None
    warnings: tuple[str, ...] | None = None
    l1_ratio: float | None = None
    penalty_factors: dict[str, float] | None = None
    baselines: Baselines | None = None

    def __post_init__(self) -> None:
        known = set(self.schema.encoded)
        for row in self.coefficients:
            if row.name not in known:
                raise ValueError(f"the coefficient of {row.name!r} belongs to no column")
        if self.missing == "mean" and len(self.means or ()) != len(known):
            raise ValueError(f"means has {len(self.means or ())} values for {len(known)} columns")

    def error_text(self, interval: str = "") -> str:
        """Return the expected error with its 95% interval, which a name may introduce, or ± one SE.

        An assessment of other models than the expected error's has another error and interval.
        """
        error = self.error
        if error is None:
            return "–"
        assessed = None if self.assessment is None else self.assessment.error
        if assessed is None or assessed.low is None or assessed.high is None:
            return with_error(error.mse, error.se)
        if assessed.value != error.mse:
            return with_error(error.mse, error.se)
        ends = f"{number(assessed.low, 4)} to {number(assessed.high, 4)}"
        return f"{number(error.mse, 4)} ({interval}{ends})"

    @property
    def most_sent(self) -> dict[str, int]:
        """Bytes sent by the site that sent the most: for the fit, for the card, and in all."""
        card = self.examination_sent or {}
        sent = [(site.sent_in_all, card.get(site.name, 0)) for site in self.sites]
        sums = [(fit, extra, fit + extra) for fit, extra in sent] or [(0, 0, 0)]
        return dict(zip(SENT, map(max, zip(*sums, strict=True)), strict=True))

    @property
    def cost_texts(self) -> dict[str, str]:
        """Round trips and numbers in words; without a card's examination only those of the fit.

        Numbers are compared with the entries of the records: rows times columns, all sites.
        """
        rows = self.rows.training + sum(self.rows.held_out)
        entries = rows * self.columns
        fit, card = self.round_trips or 0, self.examination_trips or 0
        texts = {}
        for (what, sent), trips in zip(
            self.most_sent.items(), (fit, card, fit + card), strict=True
        ):
            numbers = f"{sent // 8:,} numbers ({bytes_of(sent)})"
            fraction = f"{fraction_of(sent / 8, rows, self.columns):.0%}"
            texts[what] = (
                f"{counted(trips, 'round trip')}; each site sent at most {numbers} about "
                f"{entries:,} entries ({fraction})"
            )
        return texts if self.examination_sent is not None else {SENT[0]: texts[SENT[0]]}

    @property
    def family(self) -> str:
        """Kind of model: a procedure at one penalty fits a Lasso or an elastic net."""
        named = self.procedure.endswith(MODEL_NAMES)
        return self.procedure if named else self.settings.model_name

    @property
    def name(self) -> str:
        """Kind of model, with the response family unless that is linear."""
        return self.settings.name_with_family(self.family)

    @property
    def title(self) -> str:
        """What is modelled: the target or, for survival, the time to its event."""
        event = self.schema.event
        return f"Model of time to {event}" if event else f"Model of {self.schema.target}"

    @property
    def ratio(self) -> str | None:
        """Name of an exponentiated coefficient; None where coefficients are differences."""
        return self.settings.response_family.ratio

    @property
    def ratio_name(self) -> str | None:
        """The same with the class that is 1, such as "odds ratio of yes"."""
        if self.ratio is None or self.positive is None:
            return self.ratio
        return f"{self.ratio} of {self.positive}"

    @property
    def scales(self) -> tuple[str, ...]:
        """Scales of coefficients; columns that were not standardised have no SD."""
        return ("per SD", "per unit") if self.settings.standardise else ("per unit",)

    @property
    def ratio_subject(self) -> str:
        """What ratios are of: the target and the class that is 1, the event, or the target."""
        schema = self.schema
        if schema.event is not None:
            return f"{schema.event} = 1"
        if not schema.response_family.takes_classes:
            return schema.target
        zero, one = schema.classes or ("0", "1")
        return f"{schema.target} = {one}, against {zero}"

    @property
    def penalty_text(self) -> str:
        """The scale of the penalty, its columns, and the penalty of the path it comes from."""
        text = "for standardised columns" if self.settings.standardise else "for unscaled columns"
        if self.l1_ratio is not None:
            text += f", l1_ratio {self.l1_ratio:.4g}"
        if (factors := self.penalty_factors) is not None:
            columns = f"{len(factors)} column{'s' * (len(factors) != 1)}"
            same = len(set(factors.values()) - {0.0}) < 2
            text += f", on {columns} only" if same else f", times factors of {columns}"
        if self.path_penalty != self.penalty:
            text += f"; chosen on the {self.settings.model_name} path: {self.path_penalty:.4g}"
        return text

    @property
    def path_penalty(self) -> float:
        """The chosen penalty of the path, or the model's own."""
        curve = self.curve
        return self.penalty if curve is None else curve.penalties[curve.chosen]

    @property
    def site_effects(self) -> bool:
        """Whether every site has an intercept of its own."""
        decided = self.trust is not None and self.trust.site_effects
        return bool(self.settings.site_effects) or decided

    @property
    def groups_text(self) -> str:
        """The groups of columns, and which of them are in the model."""
        used = {row.name for row in self.coefficients}
        texts = [
            f"{' + '.join(group)} ({'in' if used & set(group) else 'not in'} the model)"
            for group in self.settings.groups
        ]
        return "; ".join(texts)

    @property
    def bounds_text(self) -> str:
        """How many columns have bounds, and which coefficients are at one other than zero."""
        bounds = self.settings.bounds
        there = [row.name for row in self.coefficients if row.value in bounds.get(row.name, ())]
        columns = f"{len(bounds)} column{'s' * (len(bounds) > 1)}"
        return f"bounds on {columns}; at a bound other than zero: {', '.join(there) or 'none'}"

    def coefficient_table(self, most: int) -> tuple[list[str], list[list[str]]]:
        """Return heads and rows of the largest coefficients, for the terminal."""
        per = self.scales
        heads = [*per, *(f"{self.ratio} {unit}" for unit in per if self.ratio is not None)]
        lines = []
        for row in self.coefficients[:most]:
            line = [number(value, 4) for value in [row.standardised, row.value][-len(per) :]]
            if self.ratio is not None:
                unit, deviation = row.ratios
                line += [ratio_of(value) for value in [deviation, unit][-len(per) :]]
            lines.append(line)
        return heads, lines

    def to_json(self) -> bytes:
        """Return the bytes of model.json; infinite numbers are null, and a digest detects edits."""
        optional = {field.name for field in fields(self) if field.default is None}
        values = {k: v for k, v in asdict(self).items() if v is not None or k not in optional}
        values["most_sent"] = self.most_sent
        certificate = values["certificate"]
        certificate["relative_gap"] = self.certificate.relative_gap
        certificate["words"] = str(self.certificate)
        if self.certificate.stationary is None:
            del certificate["stationary"]
        plain = json.loads(msgspec.json.encode(values))
        plain[DIGEST] = _digest(plain)
        return json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False).encode()


def _digest(values: dict[str, Any]) -> str:
    """Return the hash of the values of a model.json, whatever its layout."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def read_document(path: Path) -> ModelDocument:
    """Return the document in a model.json; refuse one that is damaged, edited or newer."""
    try:
        values = json.loads(path.read_bytes())
        content = values if isinstance(values, dict) else {}
        intact = content.pop(DIGEST, None) == _digest(content)
        if isinstance(bounds := content.get("certificate"), dict):
            # An unknown bound is stored as null.
            content["certificate"] = {k: np.inf if v is None else v for k, v in bounds.items()}
        readable = content.get("version") in (None, 1)
        # Converted before `intact` is checked: the error then names an invalid value.
        document = msgspec.convert(values, ModelDocument) if readable else None
    except FileNotFoundError:
        raise FedLassoError(f"{path.parent} contains no model") from None
    except OSError as error:
        raise FedLassoError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise FedLassoError(f"cannot read {path}: it is damaged ({error})") from error
    if document is None:
        raise FedLassoError(f"{path} was written by a newer version of fedlasso; update fedlasso")
    if not intact:
        raise FedLassoError(
            f"{path} was changed after the fit; restore the file that the fit wrote, or fit again"
        )
    return document
