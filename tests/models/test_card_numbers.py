"""Every number on a card, recomputed from the records by other means."""

import math
from html import unescape

import numpy as np
import pytest
from helpers.card_folders import CASES, COLUMNS, SIZES, Made, make_folder
from helpers.cards import text_of
from helpers.recompute import Numbers, Records
from lifelines import KaplanMeierFitter
from scipy.stats import chi2, norm

from fedlasso.models import describe_model
from fedlasso.models.numbers import bytes_of, number, p_value, ratio_of, with_error

pytestmark = pytest.mark.standard
RATIOS = {"binomial": "odds ratio of yes", "poisson": "rate ratio", "cox": "hazard ratio"}
ERRORS = {"linear": "mean squared error"}


@pytest.fixture(scope="module", params=CASES)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_folder(CASES[request.param], tmp_path_factory.mktemp("model"))


def test_coefficients_are_the_pooled_lasso(made: Made) -> None:
    unit = made.case.unit
    b, intercept = made.fit_to(slice(None))
    rows = {row["name"]: row for row in made.csv("coefficients")}
    sd = made.records.X.std(axis=0)
    for name, value, scale in zip(COLUMNS, b, sd, strict=True):
        row = rows[name]
        assert float(row["coefficient"]) == pytest.approx(value, abs=1e-4 * unit / scale)
        assert float(row["standardised"]) == pytest.approx(value * scale, abs=1e-4 * unit)
        if made.family != "linear":
            ratio = RATIOS[made.family].partition(" of ")[0].replace(" ", "_")
            assert float(row[ratio]) == pytest.approx(math.exp(float(row["coefficient"])))
            per_sd = math.exp(float(row["standardised"]))
            assert float(row[f"{ratio}_per_sd"]) == pytest.approx(per_sd)
    if made.family != "cox":
        assert float(rows["(intercept)"]["coefficient"]) == pytest.approx(
            intercept, abs=2e-3 * unit
        )
    used = {row["name"] for row in made.written["coefficients"]}
    for cells in made.cells("Coefficients"):
        row = rows[cells[""]]
        if cells[""] in used:
            what = "coefficient " if made.named else ""
            assert cells[f"{what}per SD"] == number(float(row["standardised"]), 4)
            assert cells[f"{what}per unit"] == number(float(row["coefficient"]), 4)


def test_intervals_are_those_of_the_unpenalised_fit(made: Made) -> None:
    b, _ = made.records.fit(0.0)
    rows = {row["name"]: row for row in made.csv("coefficients")}
    shown = {cells[""]: cells for cells in made.cells("Coefficients")}
    p_values = sorted(float(rows[name]["p_value"]) for name in made.named)
    for name in made.named:
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
        holm = max(min(1.0, p * (len(made.named) - k)) for k, p in enumerate(p_values[: at + 1]))
        assert own["adjusted_p"] == pytest.approx(holm)
        p_value_of_q, i_squared = find_heterogeneity(made, name)
        assert own["q_p_value"] == pytest.approx(p_value_of_q, abs=0.1)
        assert own["i_squared"] == pytest.approx(i_squared, abs=0.1)
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
    """Cochran's Q test, and I², of each site's own unpenalised fit."""
    place = COLUMNS.index(name)
    sites = [made.records.take(made.records.site == j) for j in range(3)]
    found = [site.estimate_unpenalised() for site in sites]
    values = np.array([b[place] for b, _ in found])
    weights = np.array([variances[place] for _, variances in found]) ** -1.0
    q = float((weights * (values - np.average(values, weights=weights)) ** 2).sum())
    degrees = len(values) - 1
    return float(chi2.sf(q, degrees)), max(0.0, 1 - degrees / q)


def test_effects_that_differ_are_heterogeneous(made: Made) -> None:
    rows = {row["name"]: row for row in made.csv("coefficients")}
    if made.case.differ:
        assert float(rows["dose"]["q_p_value"]) < 0.01
        assert float(rows["dose"]["i_squared"]) > 0.7


def test_performance_is_that_of_models_without_each_fold(made: Made) -> None:
    records = made.records
    eta = made.predict_by_fold()
    compare_measures(made, records, eta, "all", "all sites")
    for j in range(3):
        own = records.site == j
        compare_measures(made, records.take(own), eta[own], "site", f"s{j}")


def test_a_site_left_out_is_predicted_by_the_others(made: Made) -> None:
    for j in range(3):
        own = made.records.site == j
        b, intercept = made.fit_to(~own)
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
        expected |= {"calibration_slope": slope[0], "calibration_intercept": large[0]}
        for name, (_, se) in (("calibration_slope", slope), ("calibration_intercept", large)):
            half = (found[name][2] - found[name][1]) / 2
            assert half == pytest.approx(norm.ppf(0.975) * se, rel=0.05), name
    expected["error"] = records.deviance(eta)
    assert set(found) == set(expected)
    # Models of folds have a small gap of their own.
    unit = made.case.unit
    near = {
        "calibration_slope": 0.06,
        "calibration_intercept": 0.03 * unit,
        "error": 0.02 * unit**2,
    }
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


def test_every_place_prints_the_error_of_the_assessment(made: Made) -> None:
    error, low, high = made.measures("all")["error"]
    explained = made.measures("all")["explained"][0]
    assert made.written["error"]["mse"] == error
    assert made.written["error"]["r2"] == explained
    name = ERRORS.get(made.family, "deviance per row")
    ends = f"{number(low, 4)} to {number(high, 4)}"
    title = name[0].upper() + name[1:]
    assert f"{title}<b>{number(error, 4)} ({ends})</b>" in made.card
    r2 = "R^2" if made.family == "linear" else "deviance explained"
    line = f"{name}: {number(error, 4)} (95% interval {ends}), {r2} {explained:.3f}, on "
    assert line in describe_model(made.document)
    first = made.cells("Predictive performance")[0]
    assert first[name] == number(error, 4)
    for cells in made.cells("Error per site"):
        site = cells["site"]
        own = error if site == "all sites" else made.measures("site", site)["error"][0]
        assert cells[name] == number(own, 4)
        if made.family == "linear":
            assert cells["RMSE"] == number(math.sqrt(own), 4)
        if made.family != "cox":
            assert cells["ratio to all sites"] == f"{own / error:.2f}"


def test_disclosures_name_the_error_of_the_family(made: Made) -> None:
    sent = text_of(made.card.split("<h2>What each site sent</h2>")[1].split("<h2>")[0])
    right, wrong = "squared errors", "deviances"
    if made.family != "linear":
        right, wrong = wrong, right
    assert f"errors of a model at each site: a sum of {right} over its rows" in sent
    assert wrong not in sent


def test_points_of_charts_are_counts_of_rows(made: Made) -> None:
    records = made.records
    if made.family == "cox":
        rows = made.csv("survival")
        first = [int(row["at_risk"]) for row in rows if float(row["time"]) == 0]
        assert sum(first) == len(records.y)
        for row in rows:
            assert float(row["low"]) <= float(row["survival"]) <= float(row["high"])
        compare_survival(made)
        return
    assert "in groups of the predicted response at each site" in made.card
    rows = made.csv("calibration")
    counts = np.array([int(row["rows"]) for row in rows])
    observed = np.array([float(row["observed"]) for row in rows])
    assert counts.sum() == len(records.y)
    assert counts @ observed == pytest.approx(records.y.sum(), rel=1e-6, abs=1e-6 * made.case.unit)
    eta = made.predict_by_fold()
    fractions = np.append(0, np.cumsum(counts)) / counts.sum()
    for k, row in enumerate(rows):
        own = made.take_ranks(eta, fractions[k], fractions[k + 1])
        # Cumulative sums at a site are rounded to three standard deviations of a row.
        for name, values in (("observed", records.y), ("expected", records.means(eta))):
            near = 6 * values.std() / counts[k]
            assert float(row[name]) == pytest.approx(values[own].mean(), abs=near), (name, k)
    if made.family == "binomial":
        points = [
            (float(r["false_positive_rate"]), float(r["true_positive_rate"]))
            for r in made.csv("roc")
        ]
        assert points == sorted(points)
        assert (points[0], points[-1]) == ((0.0, 0.0), (1.0, 1.0))
        ones = records.y == 1
        cuts = np.arange(len(points)) / (len(points) - 1)
        for cut, (false, true) in zip(cuts, points, strict=True):
            above = made.take_ranks(eta, 1 - cut, 1.0)
            # At each site a cut is rounded to a row, and events are counted in pairs.
            near = 6 / min(ones.sum(), (~ones).sum())
            assert true == pytest.approx((above & ones).sum() / ones.sum(), abs=near)
            assert false == pytest.approx((above & ~ones).sum() / (~ones).sum(), abs=near)


def compare_survival(made: Made) -> None:
    """Compare the curves of thirds of each site's risk with those of Kaplan and Meier."""
    records = made.records
    eta = made.predict_by_fold()
    rows = made.csv("survival")
    for k, name in enumerate(dict.fromkeys(row["group"] for row in rows)):
        own = made.take_ranks(eta, k / 3, (k + 1) / 3)
        fitter = KaplanMeierFitter().fit(records.y[own], records.events[own])
        shown = [row for row in rows if row["group"] == name]
        times = [float(row["time"]) for row in shown]
        survival = [float(row["survival"]) for row in shown]
        expected = fitter.survival_function_at_times(times).to_numpy()
        # Each site counts rows in fives and events in pairs: about two rows more or less.
        near = 0.02 + 6 / np.array([float(row["at_risk"]) for row in shown])
        assert (np.abs(survival - expected) < near).all()


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
        assert cells["in all"] == bytes_of(made.sent[site["name"]])
        assert cells["for the fit"] == bytes_of(sum(site["sent"].values()))
        assert cells["for this card"] == bytes_of(written["examination_sent"][site["name"]])
    most = max(sum(site["sent"].values()) for site in written["sites"])
    assert f"numbers ({bytes_of(most)}) about" in made.card
    table = {row[""]: row for row in made.cells("Table 1: participants")}
    assert "events" not in table
    if events is not None:
        event = {"binomial": "y = yes (event)", "cox": "dead = 1 (event)"}[made.family]
        share = f"{events:.0f} ({events / len(records.y):.0%})"
        assert table[event]["all sites"] == share
        assert sum(name.endswith("(event)") for name in table) == 1
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
    estimates = made.csv("site_estimates") if made.named else []
    assert [(r["term"], r["site"]) for r in estimates] == [
        (name, f"s{j}") for name in made.named for j in range(3)
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
    assert (made.folder / "comparison.csv").exists() == bool(made.written.get("comparison"))
    if made.family != "linear":
        return
    eta = made.predict_by_fold()
    for j, row in enumerate(made.csv("site_errors")[:-1]):
        own = records.site == j
        assert (row["site"], row["rows_of"], int(row["rows"])) == (f"s{j}", "held out", SIZES[j])
        # Recalibrated models of intercepts per site are predicted with their mean.
        if not made.effects:
            error = ((records.y - eta)[own] ** 2).mean()
            assert float(row["error"]) == pytest.approx(error, rel=1e-6)
    if not made.written.get("comparison"):
        return
    rows = made.csv("comparison")
    assert [row["model"] for row in rows[-3:]] == [f"s{j} alone" for j in range(3)]
    for cells, row in zip(made.cells("Compared with each site alone"), rows, strict=True):
        assert (unescape(cells[""]), cells["columns"]) == (row["model"], row["nzero"])
        assert cells["error"] == with_error(float(row["cvm"]), float(row["cvsd"]))
