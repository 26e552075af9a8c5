"""Ways round the masks that a coordinator may try, really run, with one defence off and then on."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.deploy.doors import make_doors
from helpers.deploy.isolating import Isolating, ask
from helpers.governance.authority import Authority
from helpers.governance.victims import distance, draw_records
from helpers.nets import COLUMNS, opening, write_tables

from fedlasso.federation import magnitudes
from fedlasso.federation.fixed_point import OFFSET, from_words, grid_of, to_words
from fedlasso.governance import Door, GuardedSite, Policy, guard
from fedlasso.governance.door_messages import Opened, Refusal
from fedlasso.numerics import Array
from fedlasso.procedures.splitting import DualProximal
from fedlasso.sites import GradientAt, Standardise

P = len(COLUMNS)
NAMES = ("one", "x1", "x2", "x3")


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    return write_tables(tmp_path)


def plain_view(power: str = "6") -> Standardise:
    powers = (power,) * (P + 2)
    terms = ("8",) * P
    return Standardise(np.zeros(P), np.ones(P), 0.0, powers=powers, terms=terms)


def opened(doors: dict[str, Door], view: Standardise) -> Isolating:
    coordinator = Isolating(doors)
    coordinator.open()
    coordinator.keep(view)
    return coordinator


def own_products(tables: dict[str, Path]) -> Array:
    X = pd.read_csv(tables["a"])[list(COLUMNS)].to_numpy()
    return np.asarray(X.T @ X / len(X))


def ask_by_memory(doors: dict[str, Door], tables: dict[str, Path]) -> float:
    """How far off site a's own second moments are, by what procedures keep between two rounds.

    In the first round site a is asked something else, which gives noise; in the second all sites
    are asked the same, and without more ado their masks would cancel.
    """
    view = plain_view()
    coordinator = opened(doors, view)

    def question(z: Array, relaxation: float, fit: str, round: int) -> DualProximal:
        rho = np.array([1.0])
        given = {"on": view.name, "reach": 20 + OFFSET}
        return DualProximal(z.reshape(P, 1), rho, relaxation, fit, round, **given)  # type: ignore[arg-type]

    def total(asked: DualProximal) -> Array:
        words = coordinator.sum(dict.fromkeys(doors, asked))
        grid = grid_of(asked, view.magnitudes, P)
        assert grid is not None
        return from_words(words, asked, grid).values.ravel()

    nothing = np.zeros(P)
    coordinator.sum(dict.fromkeys(doors, question(nothing, 0.0, "base", 0)))
    base = total(question(nothing, 1.0, "base", 1))
    found = []
    for j in range(P):
        odd = question(np.eye(P)[j], 0.0, f"fit {j}", 0)
        even = question(nothing, 0.0, f"fit {j}", 0)
        coordinator.sum({name: odd if name == "a" else even for name in doors})
        found.append(total(question(nothing, 1.0, f"fit {j}", 1)) - base)
    rows = len(pd.read_csv(tables["a"]))
    shrunk = np.eye(P) - np.array(found).T / rows
    guess = np.linalg.pinv(shrunk) - np.eye(P)
    true = own_products(tables)
    return float(np.abs(guess - true).max() / np.abs(true).max())


def test_what_sites_remember_is_part_of_what_masks_are_bound_to(
    tables: dict[str, Path], authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ask_by_memory(make_doors(tables, None, authority), tables) > 0.1
    monkeypatch.setattr(GuardedSite, "_history", lambda self, request: b"")
    assert ask_by_memory(make_doors(tables, None, authority), tables) < 1e-6


def count_refusals(door: Door, view: Callable[[float], Standardise]) -> int:
    """How often a site refuses when its own number is made larger and larger."""
    refused = 0
    for number, factor in enumerate(np.geomspace(1e-3, 1e3, 30), start=1):
        shown = view(float(factor))
        assert not isinstance(ask(door, shown), Refusal)
        asked = GradientAt(np.zeros(P), on=shown.name, reach=12 + OFFSET, number=number)
        refused += isinstance(ask(door, asked), Refusal)
    return refused


def test_numbers_that_do_not_fit_are_clipped_and_tell_nothing(
    tables: dict[str, Path], authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether one site's own number fits a grid would be a bit about it, before any mask."""

    def view(factor: float) -> Standardise:
        powers = ("0",) * (P + 2)
        terms = ("0",) * P
        return Standardise(np.zeros(P), np.full(P, factor), 0.0, powers=powers, terms=terms)

    # The check of a view's powers would refuse it: here the grid alone is looked at.
    monkeypatch.setattr(guard, "check_powers", lambda site, request: None)
    doors = make_doors(tables, None, authority)
    opened(doors, plain_view())
    assert count_refusals(doors["a"], view) == 0
    monkeypatch.setattr("fedlasso.sites.site.to_words", lambda *given: to_words(*given[:3]))
    opened(doors, plain_view())
    assert 0 < count_refusals(doors["a"], view) < 30


def test_a_view_that_says_its_numbers_are_smaller_is_refused(
    tables: dict[str, Path], authority: Authority
) -> None:
    doors = make_doors(tables, None, authority)
    opened(doors, plain_view())
    for changes in ({"powers": ("0",) * (P + 2)}, {"terms": ("0",) * P}, {"terms": ("8",)}):
        assert isinstance(ask(doors["a"], replace(plain_view(), **changes)), Refusal)


def test_views_are_named_by_a_whole_hash() -> None:
    """Of names of 64 bits two alike are found in 2^32 trials, one for each half of the sites."""
    assert len(plain_view().name) == 64


def write_constant(folder: Path) -> tuple[dict[str, Path], Array]:
    """Three sites with a constant column, and all their records."""
    paths = {}
    everybody = []
    for k, name in enumerate("abc"):
        X, y = draw_records(60, 4, 10 + k)
        X[:, 0] = 1.0
        everybody.append(X)
        frame = pd.DataFrame(X, columns=NAMES)
        frame["y"] = y
        paths[name] = folder / f"{name}.csv"
        frame.to_csv(paths[name], index=False)
    return paths, np.vstack(everybody)


def find_by_rounding(doors: dict[str, Door], rows: Array, reach: int) -> int:
    """How many records are told by totals over the rows whose first value lies above a threshold.

    A huge coefficient, taken away again by a mean, rounds another column to zero or one step.
    """
    coordinator = Isolating(doors)
    coordinator.open(dict.fromkeys(doors, NAMES))
    p = len(NAMES)
    means = np.eye(p)[0]
    powers = ("8", *["14"] * (p + 1))
    terms = ("14",) * p
    view = Standardise(means, np.ones(p), 0.0, powers=powers, terms=terms)
    coordinator.keep(view)
    huge = 2.0**59 + 2.0**58

    def total(b: Array) -> Array:
        asked = GradientAt(b, on=view.name, reach=reach + OFFSET)
        grid = grid_of(asked, view.magnitudes, p)
        assert grid is not None
        return from_words(coordinator.sum(dict.fromkeys(doors, asked)), asked, grid).gradient

    base = total(np.zeros(p))
    last = np.zeros(p)
    found = []
    for threshold in np.arange(80.0, 68.0, -0.02):
        above = (total(np.array([huge, 64.0 / threshold, 0.0, 0.0])) - base) / 128
        if np.abs(above - last).max() > 1e-3:
            found.append((above - last)[1:])
            last = above
    if not found:
        return 0
    return int((distance(np.array(found), rows[:, 1:]) < 1e-6).sum())


def test_rounding_by_huge_coefficients_tells_no_record(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, rows = write_constant(tmp_path)
    doors = make_doors(tables, Policy(max_numbers=1e3), authority)
    # A grid that such coefficients allow is far coarser than what rounding does to rows.
    assert find_by_rounding(doors, rows, 80) == 0
    # A finer one is refused by the question alone.
    with pytest.raises(AssertionError, match="the reach is too small"):
        find_by_rounding(doors, rows, 20)
    monkeypatch.setattr(guard, "check_reach", lambda site, request: None)
    assert find_by_rounding(doors, rows, 20) >= 3


def test_in_the_clear_too_sums_leave_on_the_grid_only(
    tables: dict[str, Path], authority: Authority
) -> None:
    doors = make_doors(tables, Policy(sums="clear"), authority)
    for door in doors.values():
        assert isinstance(ask(door, opening()), Opened)
        refused: Any = ask(door, GradientAt(np.zeros(P)))
        assert "answers GradientAt only as part of a sum" in refused.text
    assert magnitudes.COARSE <= 48
