"""Every number on a card, recomputed from the records by other means."""

import csv
import json
import math
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.cards import section_of, tables_of, text_of
from helpers.recompute import Numbers, Records
from scipy.stats import chi2, norm

from fedlasso import InProcess, Site
from fedlasso.fitting import Settings
from fedlasso.models import make_model, write_model
from fedlasso.models.numbers import bytes_of, number, p_value, ratio_of, with_error
from fedlasso.tables import Schema
from fedlasso.tables.columns import Column

pytestmark = pytest.mark.standard
COLUMNS = ("age", "dose", "stage", "noise")
PENALTY = 0.03
NAMED = COLUMNS[:2]
SIZES = (110, 90, 100)
RATIOS = {"binomial": "odds ratio of yes", "poisson": "rate ratio", "cox": "hazard ratio"}


@dataclass(frozen=True)
class Made:
    """A model folder as a reader has it, and the records behind it."""

    family: str
    records: Records
    folds: Numbers
    card: str
    written: dict[str, Any]
    folder: Path

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


def draw(family: str) -> tuple[Numbers, Numbers, Numbers]:
    rng = np.random.default_rng(3)
    rows = sum(SIZES)
    X = rng.standard_normal((rows, 4)) * [10.0, 1.0, 0.5, 2.0] + [60.0, 0.0, 2.0, 0.0]
    eta = 0.06 * (X[:, 0] - 60) - 0.5 * X[:, 1] + 0.4 * X[:, 2]
    events = np.ones(rows)
    if family == "linear":
        return X, eta + rng.standard_normal(rows), events
    if family == "binomial":
        return X, (rng.uniform(size=rows) < 1 / (1 + np.exp(1 - eta))).astype(float), events
    if family == "poisson":
        return X, rng.poisson(np.exp(0.5 * eta)).astype(float), events
    times, censored = rng.exponential(np.exp(-eta)), rng.exponential(2.0, rows)
    return X, np.minimum(times, censored), (times <= censored).astype(float)


@pytest.fixture(scope="module", params=["linear", "binomial", "poisson", "cox"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    family = request.param
    X, y, events = draw(family)
    label = np.repeat(np.arange(3), SIZES)
    settings = Settings(family=family, penalty=PENALTY, intervals=NAMED)
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
    document = make_model(InProcess(sites), settings, schema, compare=True)
    folder = tmp_path_factory.mktemp(family)
    write_model(folder, document)
    folds = np.empty(len(y))
    for j, site in enumerate(sites):
        for k, rows in enumerate(site.draw.fold_rows("folds 5 0", SIZES[j])):
            folds[np.flatnonzero(label == j)[rows]] = k
    return Made(
        family,
        Records(family, X, y, events, label.astype(float)),
        folds,
        (folder / "card.html").read_text(),
        json.loads((folder / "model.json").read_text()),
        folder,
    )


def test_coefficients_are_the_pooled_lasso(made: Made) -> None:
    b, intercept = made.records.fit(PENALTY)
    rows = {row["name"]: row for row in made.csv("coefficients")}
    sd = made.records.X.std(axis=0)
    for name, value, scale in zip(COLUMNS, b, sd, strict=True):
        row = rows[name]
        assert float(row["coefficient"]) == pytest.approx(value, abs=1e-4 / scale)
        assert float(row["standardised"]) == pytest.approx(value * scale, abs=1e-4)
        if made.family != "linear":
            ratio = RATIOS[made.family].partition(" of ")[0].replace(" ", "_")
            assert float(row[ratio]) == pytest.approx(math.exp(float(row["coefficient"])))
            per_sd = math.exp(float(row["standardised"]))
            assert float(row[f"{ratio}_per_sd"]) == pytest.approx(per_sd)
    if made.family != "cox":
        assert float(rows["(intercept)"]["coefficient"]) == pytest.approx(intercept, abs=2e-3)
    used = {row["name"] for row in made.written["coefficients"]}
    for cells in made.cells("Coefficients"):
        row = rows[cells[""]]
        if cells[""] in used:
            assert cells["coefficient per SD"] == number(float(row["standardised"]), 4)
            assert cells["coefficient per unit"] == number(float(row["coefficient"]), 4)


def test_intervals_are_those_of_the_unpenalised_fit(made: Made) -> None:
    b, _ = made.records.fit(0.0)
    rows = {row["name"]: row for row in made.csv("coefficients")}
    shown = {cells[""]: cells for cells in made.cells("Coefficients")}
    p_values = sorted(float(rows[name]["p_value"]) for name in NAMED)
    for name in NAMED:
        own = {k: float(v) for k, v in rows[name].items() if k != "name" and v}
        scale = made.records.X[:, COLUMNS.index(name)].std()
        assert own["sd"] == pytest.approx(scale, rel=1e-6)
        assert own["estimate"] == pytest.approx(b[COLUMNS.index(name)], abs=0.25 * own["std_error"])
        half = norm.ppf(0.975) * own["std_error"]
        assert (own["low"], own["high"]) == pytest.approx(
            (own["estimate"] - half, own["estimate"] + half), rel=0.02
        )
        z = abs(own["estimate"]) / own["std_error"]
        assert own["p_value"] == pytest.approx(2 * norm.sf(z), rel=0.05)
        at = p_values.index(own["p_value"])
        holm = max(min(1.0, p * (len(NAMED) - k)) for k, p in enumerate(p_values[: at + 1]))
        assert own["adjusted_p"] == pytest.approx(holm)
        heterogeneity = find_heterogeneity(made, name)
        assert (own["q_p_value"], own["i_squared"]) == pytest.approx(heterogeneity, abs=1e-6)
        cells = shown[name]
        kind = RATIOS.get(made.family, "estimate")
        for unit, by in (("per SD", own["sd"]), ("per unit", 1.0)):
            ends = [by * own[key] for key in ("estimate", "low", "high")]
            texts = (
                [number(end) for end in ends]
                if made.family == "linear"
                else [ratio_of(math.exp(end), 3) for end in ends]
            )
            assert (
                cells[f"{kind} {unit} (95% interval)"] == f"{texts[0]} ({texts[1]} to {texts[2]})"
            )
        assert cells["adjusted p"] == p_value(own["adjusted_p"])
        assert cells["I² (p of Q)"] == f"{own['i_squared']:.0%} ({p_value(own['q_p_value'])})"
        halves = {row["name"]: row["share"] for row in made.written["stability"]}
        assert cells["selection frequency"] == f"{halves[name]:.0%}"


def find_heterogeneity(made: Made, name: str) -> tuple[float, float]:
    """Cochran's Q test, and I², of the sites' own estimates."""
    (row,) = (row for row in made.written["trust"]["named"] if row["name"] == name)
    values = np.array([site["value"] for site in row["sites"]])
    errors = np.array([site["high"] - site["value"] for site in row["sites"]]) / norm.ppf(0.975)
    weights = errors**-2.0
    q = float((weights * (values - np.average(values, weights=weights)) ** 2).sum())
    degrees = len(values) - 1
    return float(chi2.sf(q, degrees)), max(0.0, 1 - degrees / q)


def test_performance_is_that_of_models_without_each_fold(made: Made) -> None:
    records = made.records
    eta = np.empty(len(records.y))
    for fold in np.unique(made.folds):
        out = made.folds == fold
        b, intercept = records.take(~out).fit(PENALTY)
        eta[out] = records.X[out] @ b + intercept
    compare_measures(made, records, eta, "all", "all sites")
    for j in range(3):
        own = records.site == j
        compare_measures(made, records.take(own), eta[own], "site", f"s{j}")


def test_a_site_left_out_is_predicted_by_the_others(made: Made) -> None:
    for j in range(3):
        own = made.records.site == j
        b, intercept = made.records.take(~own).fit(PENALTY)
        eta = made.records.X[own] @ b + intercept
        compare_measures(made, made.records.take(own), eta, "left out", f"s{j}")


def compare_measures(made: Made, records: Records, eta: Numbers, kind: str, site: str) -> None:
    found = made.measures(kind, site)
    comparable, right = records.pairs(eta)
    expected = {"explained": records.explained(eta)}
    if made.family == "binomial":
        expected["auroc"] = right / comparable
    if made.family == "cox":
        expected["concordance"] = right / comparable
    else:
        large, slope = records.recalibrate(eta)
        expected |= {"calibration_slope": slope, "calibration_intercept": large}
    if kind != "all":
        expected["error"] = records.deviance(eta)
    assert set(found) == set(expected)
    # Models of folds have a small gap of their own.
    near = {"calibration_slope": 0.06, "calibration_intercept": 0.03, "error": 0.02}
    for name, value in expected.items():
        assert found[name][0] == pytest.approx(value, abs=near.get(name, 0.01)), name
        assert found[name][1] < found[name][0] < found[name][2], name
    heads = {
        "explained": "R²" if made.family == "linear" else "deviance explained",
        "auroc": "AUROC",
        "concordance": "concordance",
        "calibration_slope": "calibration slope",
        "calibration_intercept": "calibration intercept",
    }
    lines = made.cells("Predictive performance", int(kind == "left out"))
    (cells,) = (row for row in lines if row[""] == site)
    for name, head in heads.items():
        if name in found:
            digits = 2 if name.startswith("calibration") else 3
            texts = [f"{part:z.{digits}f}" for part in found[name]]
            assert cells[head] == f"{texts[0]} ({texts[1]} to {texts[2]})"
    assert cells["rows"] == f"{len(records.y)}"
    if made.family == "cox" and kind == "site":
        assert cells["comparable pairs"] == f"{comparable:,.0f}"


def test_points_of_charts_are_counts_of_rows(made: Made) -> None:
    records = made.records
    if made.family == "cox":
        rows = made.csv("survival")
        first = [int(row["at_risk"]) for row in rows if float(row["time"]) == 0]
        assert sum(first) == len(records.y)
        for row in rows:
            assert float(row["low"]) <= float(row["survival"]) <= float(row["high"])
        return
    rows = made.csv("calibration")
    counts = np.array([int(row["rows"]) for row in rows])
    observed = np.array([float(row["observed"]) for row in rows])
    assert counts.sum() == len(records.y)
    assert counts @ observed == pytest.approx(records.y.sum(), rel=1e-6)
    if made.family == "binomial":
        points = [
            (float(r["false_positive_rate"]), float(r["true_positive_rate"]))
            for r in made.csv("roc")
        ]
        assert points == sorted(points)
        assert (points[0], points[-1]) == ((0.0, 0.0), (1.0, 1.0))


def test_counts_and_bytes_are_those_of_the_records(made: Made) -> None:
    records, written = made.records, made.written
    lead = text_of(made.card.split("<h2>")[0])
    used = len(written["coefficients"])
    assert f"with {used} of 4 columns" in lead
    assert f"fitted to {len(records.y)} rows" in lead
    events = {"binomial": records.y.sum(), "cox": records.events.sum()}.get(made.family)
    assert ("events" in lead) == (events is not None)
    if events is not None:
        assert f"with {events:.0f} events across 3 sites" in lead
    for cells, site in zip(made.cells("What each site sent"), written["sites"], strict=True):
        assert cells["rows"] == f"{site['rows']}"
        assert cells["for the fit"] == bytes_of(sum(site["sent"].values()))
        assert cells["for this card"] == bytes_of(written["examination_sent"][site["name"]])
    most = max(sum(site["sent"].values()) for site in written["sites"])
    assert f"numbers ({bytes_of(most)}) about" in made.card
    table = {row[""]: row for row in made.cells("Table 1: participants")}
    for k, name in enumerate(COLUMNS):
        own = records.X[:, k]
        expected = f"{number(own.mean(), 4)} ({number(own.std(ddof=1), 3)})"
        assert table[f"{name}, mean (SD)"]["all sites"] == expected


def test_costs_have_a_file_that_adds_up(made: Made) -> None:
    written = made.written
    rows = made.csv("costs")
    assert [row["for"] for row in rows] == ["fit"] * 3 + ["card"] * 3
    for k, site in enumerate(written["sites"]):
        fit, card = rows[k], rows[3 + k]
        assert fit["site"] == card["site"] == site["name"]
        assert int(fit["rows"]) == int(card["rows"]) == SIZES[k]
        parts = [int(value) for key, value in fit.items() if key.startswith("bytes_sent_")]
        assert int(fit["bytes_sent"]) == sum(parts) == sum(site["sent"].values())
        assert int(fit["bytes_received"]) == sum(site["received"].values())
        assert int(fit["messages"]) == site["messages"]
        assert int(fit["round_trips"]) == written["round_trips"]
        assert int(card["bytes_sent"]) == written["examination_sent"][site["name"]]
        assert int(card["round_trips"]) == written["examination_trips"]


def test_errors_and_estimates_by_site_have_files(made: Made) -> None:
    records = made.records
    estimates = made.csv("site_estimates")
    assert [(r["term"], r["site"]) for r in estimates] == [
        (name, f"s{j}") for name in NAMED for j in range(3)
    ]
    for row in estimates:
        low, value, high = (float(row[k]) for k in ("conf.low", "estimate", "conf.high"))
        assert low < value < high
        if made.family == "linear":
            own = records.site == int(row["site"][1:])
            design = np.column_stack([np.ones(own.sum()), records.X[own]])
            b, *_ = np.linalg.lstsq(design, records.y[own], rcond=None)
            near = 0.25 * (high - value)
            assert value == pytest.approx(b[1 + COLUMNS.index(row["term"])], abs=near)
    for name, key in (("site_errors", "site_errors"), ("comparison", "comparison")):
        assert (made.folder / f"{name}.csv").exists() == bool(made.written.get(key))
    if made.family != "linear":
        return
    model = {row["name"]: float(row["coefficient"]) for row in made.csv("coefficients")}
    eta = records.X @ [model[name] for name in COLUMNS] + model["(intercept)"]
    for j, row in enumerate(made.csv("site_errors")):
        own = records.site == j
        assert (row["site"], int(row["rows"])) == (f"s{j}", SIZES[j])
        assert float(row["error"]) == pytest.approx(((records.y - eta)[own] ** 2).mean(), rel=1e-9)
    rows = made.csv("comparison")
    assert [row["model"] for row in rows[-3:]] == [f"s{j} alone" for j in range(3)]
    for cells, row in zip(made.cells("Compared with each site alone"), rows, strict=True):
        assert (unescape(cells[""]), cells["columns"]) == (row["model"], row["nzero"])
        assert cells["error"] == with_error(float(row["cvm"]), float(row["cvsd"]))
