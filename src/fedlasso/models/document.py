"""model.json as typed values: everything that is told about a fitted model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final, Literal

import msgspec
import numpy as np

from fedlasso import __version__
from fedlasso.errors import FedLassoError
from fedlasso.models.plan import Missing
from fedlasso.models.settings import Settings
from fedlasso.numerics import Array
from fedlasso.tables import Schema

VERSION: Final = 1
_SHOWN = 20
_PATH_COLUMNS = 40


@dataclass(frozen=True)
class Coefficient:
    """A column that the model uses: its coefficient on both scales, and the column's own."""

    name: str
    value: float
    standardised: float
    mean: float
    scale: float


@dataclass(frozen=True)
class RowCounts:
    """Rows that train, and rows held out for the penalty and for the candidates."""

    training: int
    held_out: tuple[int, int]


@dataclass(frozen=True)
class CertificateNote:
    """How far the model can be from the best possible objective, in numbers and in words."""

    objective: float
    gap: float
    relative_gap: float
    words: str


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
class CoefficientPath:
    """Standardised coefficients along the penalties, one row per name."""

    penalties: tuple[float, ...]
    names: tuple[str, ...]
    coefficients: tuple[tuple[float, ...], ...]

    @classmethod
    def largest(cls, penalties: Array, B: Array, columns: Sequence[str]) -> CoefficientPath:
        """Return the largest coefficients along a path, whose models are columns of B."""
        largest = np.abs(B).max(axis=1)
        shown = np.argsort(-largest, kind="stable")[:_PATH_COLUMNS]
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
    version: Literal[1] = VERSION
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
    certificate: CertificateNote
    status: str
    status_text: str
    why: str
    rounds: int
    sites: tuple[SiteBooks, ...]
    curve: ErrorCurve | None
    path: CoefficientPath | None
    means: tuple[float, ...] | None = None
    revealed: Revealed | None = None
    comparison: tuple[ComparedModel, ...] | None = None
    not_compared: str | None = None
    stability: tuple[ColumnStability, ...] | None = None
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

    def to_json(self) -> bytes:
        """Return the bytes of model.json."""
        optional = {field.name for field in fields(self) if field.default is None}
        values = asdict(self) | {"schema": self.schema.to_json()}
        told = {k: v for k, v in values.items() if v is not None or k not in optional}
        return json.dumps(told, indent=1, ensure_ascii=False).encode()


def read_document(path: Path) -> ModelDocument:
    """Return the document in a model.json; one that is damaged or of another version is refused."""
    try:
        values = json.loads(path.read_bytes())
        if isinstance(values, dict) and values.get("version") not in (None, VERSION):
            raise FedLassoError(f"{path} is of another version; update fedlasso")
        return msgspec.convert(values, ModelDocument)
    except FileNotFoundError:
        raise FedLassoError(f"{path.parent} holds no model") from None
    except FedLassoError:
        raise
    except (OSError, ValueError) as error:
        raise FedLassoError(f"cannot read {path}: it is damaged ({error})") from error


def describe_model(document: ModelDocument) -> str:
    """Return what a model is, in a few lines."""
    rows = document.coefficients
    lines = [
        f"{document.schema.target}: {len(rows)} of {document.columns} columns, "
        f"{document.rows.training} training rows at {len(document.sites)} sites, "
        f"penalty {document.penalty:.4g}",
        f"certificate: {document.certificate.words}",
        document.why,
        f"sent: at most {document.most_sent / 1e6:.3g} MB per site, {document.rounds} rounds",
    ]
    width = max((len(row.name) for row in rows[:_SHOWN]), default=0)
    lines += [f"  {row.name:{width}}  {row.value:12.6g}" for row in rows[:_SHOWN]]
    if len(rows) > _SHOWN:
        lines.append(f"  ... and {len(rows) - _SHOWN} more in coefficients.csv")
    return "\n".join(lines)


def constant_notices(document: ModelDocument) -> list[str]:
    """Return a line for every column that never varies."""
    return [
        f"notice: column {name!r} is constant; it is left out with coefficient 0"
        for name in document.constant
    ]
