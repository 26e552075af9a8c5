"""model.json as typed values: everything that is told about a fitted model."""

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
from fedlasso.fitting.settings import Settings
from fedlasso.models.inference_document import TrustDocument
from fedlasso.models.numbers import number, ratio_of
from fedlasso.numerics import Certificate
from fedlasso.tables import Schema

Missing = Literal["refuse", "mean"]
DIGEST = "digest"
# How the names of models end; other names are those of procedures.
MODEL_NAMES = ("Lasso", "elastic net")
# What the rows of an error had to do with the model.
CHOSE = "held-out rows that also chose the model, so it is a little optimistic"
NESTED = "rows that took no part in any choice: nested cross-validation"


@dataclass(frozen=True)
class Coefficient:
    """A column that the model uses: its coefficient on both scales, and the column's own."""

    name: str
    value: float
    standardised: float
    mean: float
    scale: float

    @property
    def ratios(self) -> tuple[float, float]:
        """By how much odds, rates or hazards are multiplied: per unit, and per SD of the column."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.value)), float(np.exp(self.standardised))


@dataclass(frozen=True)
class RowCounts:
    """Rows that train, and rows held out for the penalty and for the candidates."""

    training: int
    held_out: tuple[int, int]


@dataclass(frozen=True)
class SiteBooks:
    """What one site has and what passed: training rows, bytes by kind of exchange, messages."""

    name: str
    rows: int
    sent: dict[str, int]
    received: dict[str, int]
    messages: int

    @property
    def sent_in_all(self) -> int:
        """Bytes that the site sent."""
        return sum(self.sent.values())


@dataclass(frozen=True)
class ErrorCurve:
    """Pooled held-out error along the penalties, and which one was chosen."""

    penalties: tuple[float, ...]
    mse: tuple[float, ...]
    se: tuple[float | None, ...]
    active: tuple[float, ...]
    chosen: int


@dataclass(frozen=True)
class ExpectedError:
    """Mean squared error to expect on new rows, its standard error, and the share explained.

    The share is R^2 against the empty model, on the same rows. `rows` says which rows it was
    measured on, and what part they had in choosing.
    """

    mse: float
    se: float | None
    r2: float | None
    rows: str


@dataclass(frozen=True)
class Revealed:
    """What the questions that were asked reveal about each site: for the fit, and for its card."""

    fit: tuple[str, ...]
    card: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ModelDocument:
    """A fitted model as it is written, read, shown and used; docs/model.md describes every field.

    A field with a default of None is left out of model.json where it was not measured.
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
    sites: tuple[SiteBooks, ...]
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
    examination_sent: dict[str, int] | None = None
    warnings: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        known = set(self.schema.encoded)
        for row in self.coefficients:
            if row.name not in known:
                raise ValueError(f"the coefficient of {row.name!r} belongs to no column")
        if self.missing == "mean" and len(self.means or ()) != len(known):
            raise ValueError(f"means has {len(self.means or ())} values for {len(known)} columns")

    @property
    def most_sent(self) -> int:
        """Bytes sent by the site that sent most."""
        return max((site.sent_in_all for site in self.sites), default=0)

    @property
    def family(self) -> str:
        """What kind of model it is: a procedure at one penalty fits a Lasso or an elastic net."""
        if self.procedure.endswith(MODEL_NAMES):
            return self.procedure
        return self.settings.model_name

    @property
    def name(self) -> str:
        """The same, with the kind of response where that is not just any number."""
        return self.settings.name_with_family(self.family)

    @property
    def ratio(self) -> str | None:
        """What an exponentiated coefficient is called; none where a coefficient is a difference."""
        return self.settings.response_family.ratio

    @property
    def penalty_words(self) -> str:
        """What the penalty is of, and on which scale."""
        standardised = self.settings.standardise
        scale = "on the scale of standardised columns" if standardised else "on the columns' scale"
        if self.family == self.settings.model_name:
            return scale
        if self.family == "relaxed Lasso":
            return f"of the Lasso path that the relaxed Lasso comes from, {scale}"
        return f"the best of the Lasso path (the {self.family} has its own), {scale}"

    @property
    def bounds_words(self) -> str:
        """How many columns have bounds, and which coefficients stand at one."""
        bounds = self.settings.bounds
        there = [row.name for row in self.coefficients if row.value in bounds.get(row.name, ())]
        columns = f"{len(bounds)} column{'s' * (len(bounds) > 1)}"
        return f"bounds on {columns}; at a bound other than zero: {', '.join(there) or 'none'}"

    def coefficient_table(self, most: int) -> tuple[list[str], list[list[str]]]:
        """Return heads and numbers of the largest coefficients, alike on terminal and card.

        Coefficients per standard deviation (SD) of the column come first: by these they are
        ordered, and drawn.
        """
        per = ["per SD", "per unit"] if self.settings.standardise else ["per unit"]
        heads = [*per, *(f"{self.ratio} {unit}" for unit in per if self.ratio is not None)]
        lines = []
        for row in self.coefficients[:most]:
            values = [row.standardised, row.value][-len(per) :]
            line = [number(value, 4) for value in values]
            if self.ratio is not None:
                unit, deviation = row.ratios
                line += [ratio_of(value) for value in [deviation, unit][-len(per) :]]
            lines.append(line)
        return heads, lines

    def to_json(self) -> bytes:
        """Return the bytes of model.json; what is infinite or not a number is told as null.

        The digest at the end is over all the rest, so that an edit shows.
        """
        optional = {field.name for field in fields(self) if field.default is None}
        told = {k: v for k, v in asdict(self).items() if v is not None or k not in optional}
        certificate = self.certificate
        told["certificate"] |= {"relative_gap": certificate.relative_gap, "words": str(certificate)}
        if certificate.stationary is None:
            del told["certificate"]["stationary"]
        plain = json.loads(msgspec.json.encode(told))
        plain[DIGEST] = _digest(plain)
        return json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False).encode()


def _digest(values: dict[str, Any]) -> str:
    """The hash of what a model.json says, however its text is laid out."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def read_document(path: Path) -> ModelDocument:
    """Return the document in a model.json; a damaged, changed or newer one is refused."""
    try:
        values = json.loads(path.read_bytes())
        told = values if isinstance(values, dict) else {}
        whole = told.pop(DIGEST, None) == _digest(told)
        if isinstance(bounds := told.get("certificate"), dict):
            # A bound that is not known is told as null.
            told["certificate"] = {k: np.inf if v is None else v for k, v in bounds.items()}
        readable = told.get("version") in (None, 1)
        # An edit that makes no sense is told as such.
        document = msgspec.convert(values, ModelDocument) if readable else None
    except FileNotFoundError:
        raise FedLassoError(f"{path.parent} holds no model") from None
    except OSError as error:
        raise FedLassoError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise FedLassoError(f"cannot read {path}: it is damaged ({error})") from error
    if document is None:
        raise FedLassoError(f"{path} is of another version; update fedlasso")
    if not whole:
        raise FedLassoError(
            f"{path} was changed after the fit; put back the file that the fit wrote, or fit anew"
        )
    return document
