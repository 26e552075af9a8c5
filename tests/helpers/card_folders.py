"""Model folders with their records, whose numbers tests recompute."""

import csv
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from helpers.cards import section_of, tables_of
from helpers.recompute import Numbers, Records

from fedlasso import InProcess, Site
from fedlasso.federation import Around, Federation, Reply, Request
from fedlasso.federation.messages import R
from fedlasso.fitting import Settings
from fedlasso.models import ModelDocument, make_model, write_model
from fedlasso.tables import Schema
from fedlasso.tables.columns import Column

COLUMNS = ("age", "dose", "stage", "noise")
SIZES = (110, 90, 100)
PENALTY = 0.03
# What a reply has beside its numbers.
ABOUT = ("site", "steps", "operations")


@dataclass(frozen=True)
class Case:
    """A fit: the size of a linear response, shifts of sites, settings, and sites' own effects."""

    family: str
    unit: float = 1.0
    shifts: tuple[float, ...] = (0.0, 0.0, 0.0)
    settings: dict[str, Any] = field(default_factory=dict)
    differ: float = 0.0


SHIFTS = (0.0, 2.0, -3.0)
NAMED = {"intervals": COLUMNS[:2], "penalty": PENALTY}
CASES = {
    **{name: Case(name, settings=NAMED) for name in ("linear", "binomial", "poisson", "cox")},
    "shifted": Case("linear", 50.0, SHIFTS, {"penalty": 50 * PENALTY}),
    "shifted counts": Case("poisson", 1.0, (0.0, 0.8, -0.8), {"penalty": PENALTY}),
    "tuned with site effects": Case("linear", 50.0, SHIFTS, {"site_effects": True}),
    "different effects": Case("linear", settings=NAMED, differ=0.3),
}


class Counted(Around):
    """A federation that counts the bytes of all numbers in replies, by site."""

    def __init__(self, inner: Federation) -> None:
        super().__init__(inner)
        self.sent: Counter[str] = Counter()

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        found = self.inner.replies(request)
        self._count(found)
        return found

    def replies_together(self, requests: Sequence[Request[Any]]) -> tuple[tuple[Reply, ...], ...]:
        found = self.inner.replies_together(requests)
        for replies in found:
            self._count(replies)
        return found

    def _count(self, replies: Sequence[Reply]) -> None:
        for reply in replies:
            values = [getattr(reply, one.name) for one in fields(reply) if one.name not in ABOUT]
            numbers = [np.size(one) for one in values if isinstance(one, (int, float, np.ndarray))]
            self.sent[reply.site] += 8 * sum(numbers)


@dataclass(frozen=True)
class Made:
    """A model folder as a reader has it, and the records behind it."""

    case: Case
    records: Records
    folds: Numbers
    card: str
    document: ModelDocument
    written: dict[str, Any]
    folder: Path
    sent: Counter[str]

    @property
    def family(self) -> str:
        return self.case.family

    @property
    def named(self) -> tuple[str, ...]:
        return tuple(self.case.settings.get("intervals", ()))

    @property
    def effects(self) -> bool:
        return bool(self.case.settings.get("site_effects"))

    @property
    def penalty(self) -> float:
        return float(self.written["penalty"])

    def csv(self, name: str) -> list[dict[str, str]]:
        with (self.folder / f"{name}.csv").open() as stream:
            return list(csv.DictReader(stream))

    def cells(self, title: str, at: int = 0) -> list[dict[str, str]]:
        """The rows of a table under a heading, by its heads."""
        head, *rows = tables_of(section_of(self.card, title))[at]
        return [dict(zip(head, row, strict=True)) for row in rows]

    def measures(self, kind: str, site: str = "all sites") -> dict[str, tuple[float, ...]]:
        rows = [
            row for row in self.csv("assessment") if (row["rows_of"], row["site"]) == (kind, site)
        ]
        return {
            row["measure"]: tuple(float(row[k] or "nan") for k in ("value", "low", "high"))
            for row in rows
        }

    def fit_to(self, rows: Any) -> tuple[Numbers, float]:
        """The coefficients and intercept of the model, fitted to some rows."""
        return self.records.take(rows).fit(self.penalty, self.effects)

    def predict_by_fold(self) -> Numbers:
        """Every row's linear predictor, by a model that was not fitted to its fold."""
        eta = np.empty(len(self.records.y))
        for fold in np.unique(self.folds):
            out = self.folds == fold
            b, intercept = self.fit_to(~out)
            eta[out] = self.records.X[out] @ b + intercept
        return eta

    def take_ranks(self, eta: Numbers, low: float, high: float) -> Any:
        """Rows between two fractions of the ranks of a linear predictor at their site."""
        taken = np.zeros(len(eta), bool)
        for j in np.unique(self.records.site):
            own = np.flatnonzero(self.records.site == j)
            start, end = np.rint(len(own) * np.array([low, high])).astype(int)
            taken[own[np.argsort(eta[own])[start:end]]] = True
        return taken


def draw(case: Case) -> tuple[Numbers, Numbers, Numbers]:
    """Columns, responses and events."""
    rng = np.random.default_rng(3)
    rows = sum(SIZES)
    family = case.family
    X = rng.standard_normal((rows, 4)) * [10.0, 1.0, 0.5, 2.0] + [60.0, 0.0, 2.0, 0.0]
    eta = 0.06 * (X[:, 0] - 60) - 0.5 * X[:, 1] + 0.4 * X[:, 2]
    eta += np.repeat(case.shifts, SIZES) + np.repeat([-1, 0, 1], SIZES) * case.differ * X[:, 1]
    events = np.ones(rows)
    if family == "linear":
        return X, case.unit * (eta + rng.standard_normal(rows)), events
    if family == "binomial":
        return X, (rng.uniform(size=rows) < 1 / (1 + np.exp(1 - eta))).astype(float), events
    if family == "poisson":
        return X, rng.poisson(np.exp(0.5 * eta)).astype(float), events
    times, censored = rng.exponential(np.exp(-eta)), rng.exponential(2.0, rows)
    return X, np.minimum(times, censored), (times <= censored).astype(float)


def make_folder(case: Case, folder: Path) -> Made:
    """Fit three sites, and write the model with its card to a folder."""
    family = case.family
    X, y, events = draw(case)
    label = np.repeat(np.arange(3), SIZES)
    settings = Settings(family=family, **case.settings)
    response = np.where(events > 0, y, -y)
    sites = [
        Site(
            f"s{j}", X[label == j], response[label == j], columns=COLUMNS, raw=True,
            loss=settings.loss, intercept=family not in ("linear", "cox"),
        )
        for j in range(3)
    ]  # fmt: skip
    columns = tuple(Column(name, "number") for name in COLUMNS)
    classes = ("no", "yes") if family == "binomial" else ()
    event = "dead" if family == "cox" else None
    schema = Schema("y", columns, family=family, classes=classes, event=event)
    counted = Counted(InProcess(sites))
    document = make_model(counted, settings, schema, compare=True)
    write_model(folder, document)
    folds = np.empty(len(y))
    for j, site in enumerate(sites):
        for k, rows in enumerate(site.draw.fold_rows("folds 5 0", SIZES[j])):
            folds[np.flatnonzero(label == j)[rows]] = k
    return Made(
        case,
        Records(family, X, y, events, label.astype(float)),
        folds,
        (folder / "card.html").read_text(),
        document,
        json.loads((folder / "model.json").read_text()),
        folder,
        counted.sent,
    )
