"""Default fits under the default policy, against fits of the same files without a policy.

    PYTHONPATH=tests python benchmarks/rule_costs.py [--draws 10]

Prints the table of docs/privacy.md: error on further rows, columns selected, kB per site, round
trips and certified gaps.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from helpers.deploy.default_data import Study, fit_by_default
from helpers.deploy.doors import make_doors
from helpers.governance.authority import Authority
from helpers.nets import SITES, run
from lifelines.utils import concordance_index

from fedlasso.models import ModelDocument, read_document
from fedlasso.numerics import Array


class Scenario(NamedTuple):
    key: int
    rows: int
    columns: int
    effects: int
    family: str


SCENARIOS = {
    "linear": Scenario(2, 450, 10, 5, "linear"),
    "two classes": Scenario(0, 600, 15, 5, "binomial"),
    "counts": Scenario(3, 600, 12, 5, "poisson"),
    "survival": Scenario(1, 600, 9, 4, "cox"),
    "linear, more columns than rows": Scenario(5, 360, 600, 10, "linear"),
}
FURTHER = 4000
CORRELATION = 0.5


def draw(scenario: Scenario, seed: int) -> tuple[Study, pd.DataFrame]:
    """Rows to fit, and further rows."""
    rng = np.random.default_rng([seed, scenario.key])
    rows = scenario.rows + FURTHER
    X = rng.standard_normal((rows, scenario.columns))
    for k in range(1, scenario.columns):
        X[:, k] = CORRELATION * X[:, k - 1] + np.sqrt(1 - CORRELATION**2) * X[:, k]
    b = np.zeros(scenario.columns)
    signs = rng.choice([-1, 1], scenario.effects) * rng.uniform(0.3, 1, scenario.effects)
    b[rng.permutation(scenario.columns)[: scenario.effects]] = signs
    eta = X @ b
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(scenario.columns)])
    if scenario.family == "linear":
        frame["y"] = eta + rng.standard_normal(rows)
    elif scenario.family == "binomial":
        frame["y"] = (rng.logistic(size=rows) < eta).astype(int)
    elif scenario.family == "poisson":
        frame["y"] = rng.poisson(np.exp(0.4 * eta + 0.5))
    else:
        times, censored = rng.exponential(np.exp(-eta)), rng.exponential(2.0, rows)
        frame["y"] = np.minimum(times, censored)
        frame["e"] = (times <= censored).astype(int)
    event = "e" if scenario.family == "cox" else ""
    study = Study(frame.iloc[: scenario.rows], scenario.family, "y", event)
    return study, frame.iloc[scenario.rows :]


def measure_error(family: str, document: ModelDocument, frame: pd.DataFrame) -> float:
    """Mean squared error, mean deviance, or one minus the concordance."""
    values = {row.name: row.value for row in document.coefficients}
    columns = [name for name in frame if str(name).startswith("x")]
    b = np.array([values.get(str(name), 0.0) for name in columns])
    eta: Array = document.intercept + frame[columns].to_numpy() @ b
    y = frame["y"].to_numpy(dtype=np.float64)
    if family == "linear":
        return float(((y - eta) ** 2).mean())
    if family == "binomial":
        return float(2 * np.mean(np.logaddexp(0, eta) - y * eta))
    if family == "poisson":
        logs = np.where(y > 0, y * (np.log(np.maximum(y, 1)) - eta), 0.0)
        return float(2 * np.mean(logs - (y - np.exp(eta))))
    return 1 - float(concordance_index(y, -eta, frame["e"]))


def measure(family: str, document: ModelDocument, frame: pd.DataFrame) -> list[float]:
    """Error, columns selected, kB of a site, round trips and certified gap."""
    assert document.round_trips is not None
    return [
        measure_error(family, document, frame),
        float(sum(row.value != 0 for row in document.coefficients)),
        max(site.sent_in_all for site in document.sites) / 1e3,
        float(document.round_trips),
        float(document.certificate.relative_gap),
    ]


def compare(scenario: Scenario, seed: int, folder: Path) -> tuple[list[float], list[float]]:
    study, further = draw(scenario, seed)
    tables = study.write(folder / "tables")
    doors = make_doors(tables, None, Authority(folder / "authority"))
    guarded = fit_by_default(study, doors)
    roles: list[Any] = ["--time", "y", "--event", "e"] if study.event else ["--target", "y"]
    files = [tables[site] for site in SITES]
    out = folder / "model"
    options = ["--family", study.family, "--no-compare", "--out", out]
    assert run("fit", *files, *roles, *options) == 0
    bare = read_document(out / "model.json")
    return measure(study.family, guarded, further), measure(study.family, bare, further)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    draws = parser.parse_args().draws
    for name, scenario in SCENARIOS.items():
        found = []
        for seed in range(draws):
            with tempfile.TemporaryDirectory() as folder:
                found.append(compare(scenario, seed, Path(folder)))
        on, off = np.array(found).transpose(1, 2, 0)
        changes = 100 * (on[0] / off[0] - 1)
        error = changes.std(ddof=1) / np.sqrt(draws) if draws > 1 else np.nan
        cells = [f"{name} | {scenario.rows}, {scenario.columns}"]
        cells += [f"{changes.mean():+.2f}% ({error:.2f})"]
        cells += [
            f"{a.mean():.4g} ({b.mean():.4g})" for a, b in zip(on[1:4], off[1:4], strict=True)
        ]
        cells += [f"{on[4].max():.0e} ({off[4].max():.0e})"]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
