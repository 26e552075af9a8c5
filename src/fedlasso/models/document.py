"""model.json as typed values: everything that is told about a fitted model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from fedlasso import __version__
from fedlasso.errors import FedLassoError
from fedlasso.models.assessment import Assessment
from fedlasso.models.estimates import TrustDocument
from fedlasso.models.page import number, ratio
from fedlasso.models.settings import Settings
from fedlasso.numerics import Array, Certificate
from fedlasso.tables import Schema

Missing = Literal["refuse", "mean"]
DIGEST = "digest"
# What a model is called in its own comparison, where it can stand in it.
THIS_MODEL = "this model"
OWN_COLUMNS = "this model's columns on the training rows"
# How the names of families end; other names are those of procedures.
FAMILIES = ("Lasso", "elastic net")
# What coefficients are called once they are exponentiated, by the family of the response.
RATIOS = {"binomial": "odds ratio", "poisson": "rate ratio", "cox": "hazard ratio"}
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
class CoefficientPath:
    """Standardised coefficients along the penalties, one row per name."""

    penalties: tuple[float, ...]
    names: tuple[str, ...]
    coefficients: tuple[tuple[float, ...], ...]

    @classmethod
    def largest(cls, penalties: Array, B: Array, columns: Sequence[str]) -> CoefficientPath:
        """Return the 40 largest coefficients along a path, whose models are columns of B."""
        largest = np.abs(B).max(axis=1)
        shown = np.argsort(-largest, kind="stable")[:40]
        shown = shown[largest[shown] > 0]
        return cls(
            tuple(penalties.tolist()),
            tuple(columns[k] for k in shown),
            tuple(tuple(row) for row in B[shown].tolist()),
        )


@dataclass(frozen=True)
class ComparedModel:
    """A model judged on the same held-out rows as the others.

    `above` is the share of the pooled Lasso's objective that the model's lies above it.
    """

    name: str
    active: int
    mse: float | None
    se: float | None
    above: float | None
    sent: int


@dataclass(frozen=True)
class SiteError:
    """The model's mean squared error on the training rows of one site."""

    name: str
    rows: int
    mse: float


def pool_error(errors: Sequence[SiteError]) -> float:
    """Return the mean squared error over the rows of all sites."""
    return sum(error.mse * error.rows for error in errors) / sum(error.rows for error in errors)


@dataclass(frozen=True)
class ColumnStability:
    """Whether the model uses a column, and the share of random halves of the rows that do."""

    name: str
    selected: bool
    share: float


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
    def certificate_words(self) -> str:
        """The certificate as terminal, card and model.json tell it."""
        return str(self.certificate)

    @property
    def family(self) -> str:
        """What kind of model it is: a procedure at one penalty fits a Lasso or an elastic net."""
        if self.procedure.endswith(FAMILIES):
            return self.procedure
        return self.settings.model_name

    @property
    def name(self) -> str:
        """The same, with the kind of response where that is not just any number."""
        return self.settings.name_with_family(self.family)

    @property
    def ratio(self) -> str | None:
        """What an exponentiated coefficient is called; none where a coefficient is a difference."""
        return RATIOS.get(self.settings.family)

    @property
    def error_name(self) -> str:
        """What errors of the model are."""
        return "mean squared error" if self.ratio is None else "deviance per row"

    @property
    def explained_name(self) -> str:
        """What the share of the error that the model explains is called."""
        return "R^2" if self.ratio is None else "deviance explained"

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
                line += [ratio(value) for value in [deviation, unit][-len(per) :]]
            lines.append(line)
        return heads, lines

    def to_json(self) -> bytes:
        """Return the bytes of model.json; what is infinite or not a number is told as null.

        The digest at the end is over all the rest, so that an edit shows.
        """
        optional = {field.name for field in fields(self) if field.default is None}
        told = {k: v for k, v in asdict(self).items() if v is not None or k not in optional}
        certificate = self.certificate
        more = {"relative_gap": certificate.relative_gap, "words": self.certificate_words}
        told["certificate"] |= more
        plain = _without_infinities(msgspec.to_builtins(told))
        plain[DIGEST] = _digest(plain)
        return json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False).encode()


def _digest(values: dict[str, Any]) -> str:
    """Return the hash of what a model.json says, however its text is laid out."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _without_infinities(value: Any) -> Any:
    """Return values as JSON can tell them."""
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _without_infinities(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinities(own) for own in value]
    return value


def read_document(path: Path) -> ModelDocument:
    """Return the document in a model.json; a damaged, changed or newer one is refused."""
    document: ModelDocument | None = None
    whole = False
    try:
        values = json.loads(path.read_bytes())
        if isinstance(values, dict):
            whole = values.pop(DIGEST, None) == _digest(values)
            if isinstance(values.get("certificate"), dict):
                # A bound that is not known is told as null.
                told = values["certificate"].items()
                values["certificate"] = {k: np.inf if v is None else v for k, v in told}
        if not isinstance(values, dict) or values.get("version") in (None, 1):
            # An edit that makes no sense is told as such.
            document = msgspec.convert(values, ModelDocument)
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
