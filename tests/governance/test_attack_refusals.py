"""Attack 7: what is refused, and in which words, tells of a record."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.deploy.doors import join_doors, make_doors
from helpers.governance.victims import Victim, draw_records
from helpers.nets import FIT, SITES

from fedlasso import FedLassoError
from fedlasso.federation import Request
from fedlasso.fitting import Settings
from fedlasso.governance import Policy, policy
from fedlasso.governance.door_messages import Refusal
from fedlasso.governance.refusals import SILENCE
from fedlasso.models import NetworkSource
from fedlasso.numerics import Array
from fedlasso.sites import FitAt, GradientAt, Rows
from fedlasso.sites.views import Standardise

N, P = 60, 3
Words = Callable[[Victim, Request[Any]], str]


def one_patient(bmi: float) -> tuple[Array, Array]:
    """Records that differ in one number of one patient, the largest of its column."""
    X, y = draw_records(N, P, 1)
    X[17, 0] = bmi
    return X, y


def overflows(victim: Victim, size: float) -> bool:
    """Whether numbers of this size are too large for the site's records."""
    scale = np.zeros(P)
    scale[0] = size
    return isinstance(victim.ask(GradientAt(scale)), Refusal)


def search(victim: Victim) -> float:
    """Find the largest value of a column by what overflows."""
    low, high = 1e290, 1e308
    for _ in range(60):
        middle = np.sqrt(low) * np.sqrt(high)
        low, high = (low, middle) if overflows(victim, middle) else (middle, high)
    return float(low)


def test_overflow_told_a_patients_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "LARGEST_FLOAT", np.inf)
    endless = Policy(max_refusals=10**6, max_fit_refusals=10**6)
    # The sum of squares of the column overflows: that is the patient, if the rest is known.
    for bmi in (170.0, 171.0):
        X, y = one_patient(bmi)
        limit = np.finfo(float).max / search(Victim(tmp_path / str(bmi), X, y, endless).opened())
        rest = float((X[:, 0] ** 2).sum()) - bmi**2
        assert np.sqrt(limit - rest) == pytest.approx(bmi, rel=1e-6)


def probes() -> list[Request[Any]]:
    """Questions made to be refused depending on the records."""
    sizes = 10.0 ** np.arange(-320, 309, 4)
    ones = np.ones(P)
    views = [Standardise(size * ones, ones, 0.0) for size in (0.0, 60.0, 1e12, 1e45, 1e100)]
    return [
        *(GradientAt(size * ones) for size in sizes),
        *(FitAt(size * ones) for size in sizes),
        *(Standardise(0 * ones, size * ones, 0.0) for size in sizes),
        *views,
        Rows(on="none"),
    ]


@pytest.mark.full
@pytest.mark.parametrize("rules", [{}, {"dry_run": True}, {"approval": True}])
def test_two_sites_that_differ_in_one_value_refuse_alike(
    rules: dict[str, Any], tmp_path: Path
) -> None:
    reported = []
    for bmi in (170.0, 250.0):
        victim = Victim(tmp_path / str(bmi), *one_patient(bmi), Policy(**rules)).opened()
        replies = [victim.ask(request) for request in probes()]
        reported.append([r.text if isinstance(r, Refusal) else "answered" for r in replies])
    assert reported[0] == reported[1]
    assert SILENCE in reported[0]
    if rules:
        assert "answered" not in reported[0]
    if "dry_run" in rules:
        assert set(reported[0]) == {SILENCE}


# What may be wrong with a column, by the family of a fit and the column's role in it.
DEFECTS = [
    ("linear", "x0", np.nan),
    ("linear", "x0", np.inf),
    ("linear", "y", np.nan),
    ("linear", "y", -np.inf),
    ("binomial", "y", 2.0),
    ("poisson", "y", -3.0),
    ("linear", "weights", -1.5),
    ("linear", "weights", np.nan),
    ("linear", "offset", np.nan),
    ("linear", "cluster", np.nan),
    ("cox", "event", 0.25),
    ("cox", "y", -7.0),
]


@pytest.mark.parametrize(("family", "role", "value"), DEFECTS)
def test_refused_openings_tell_no_count_and_no_value(
    family: str, role: str, value: float, tmp_path: Path
) -> None:
    """Otherwise min_cell_rows would not hold for values that a fit refuses."""
    roles = {"event": "event"} if family == "cox" else {}
    if role in ("weights", "offset", "cluster"):
        roles[role] = role
    outcome: dict[str, Any] = {"target": "y"} if family != "cox" else {"time": "y"}
    outcome |= roles
    reported, kept = set(), set()
    for bad in (3, 7):
        folder = tmp_path / str(bad)
        folder.mkdir()
        tables = {}
        for site in SITES:
            X, _ = draw_records(N, P, 1)
            frame = pd.DataFrame(X, columns=["x0", "x1", "x2"])
            frame["y"] = np.arange(N) % 2
            for name in roles.values():
                frame[name] = np.arange(N) % 2 + (name == "weights")
            frame = frame.astype(float)
            if site == "b":
                frame.loc[: bad - 1, role] = value
            tables[site] = folder / f"{site}.csv"
            frame.to_csv(tables[site], index=False)
        doors = make_doors(tables)
        source = NetworkSource("project", FIT, **outcome)
        with pytest.raises(FedLassoError) as refused:
            join_doors(doors).open(source, Settings(family=family))
        reported.add(str(refused.value))
        kept |= {e.why for e in doors["b"].audit.entries() if e.verdict == "refused"}
    assert len(reported) == 1
    # The site's own audit has the number of rows.
    assert len(kept) == 2


def test_a_dry_run_writes_down_what_would_have_left_and_counts_nothing(tmp_path: Path) -> None:
    victim = Victim(tmp_path, *one_patient(170.0), Policy(dry_run=True)).opened()
    for request in probes():
        assert victim.ask(request).text == SILENCE
    whys = [entry.why for entry in victim.door.audit.entries()]
    assert f"dry run: {P} numbers would have left" in whys
    assert victim.door.lifetime.used("refusals") == 0
    assert not list((tmp_path / "memory").rglob("*.npz"))
