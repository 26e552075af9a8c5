"""Designs: how the columns of a scenario are drawn, and what disturbs its responses.

A scenario without a design has Gaussian or heavy-tailed columns (`replicate_data`). A design draws
all rows of a replicate at once, the rows of a site next to each other, and scales every column to a
standard deviation of about one, so effects are per standard deviation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError
from fedlasso.numerics.machine import Array, compiled

# Correlation of neighbouring columns, or of their latent normal columns.
RHO = 0.5
# Sites' mean responses, in standard deviations of the noise: of three sites, and the range of more.
SHIFTS = (0.0, 2.0, -3.0)
RANGE = 3.0
# Standard deviation of a column's means over sites.
SITE_MEANS = 0.5
# Visits of a patient, adjacent rows of a site, and the correlation of their noise.
VISITS = 5
ICC = 0.5
# How fast the logarithm of the noise grows with a column, per standard deviation.
GROWTH = 1.0
# Bad leverage: fraction of rows, factor of their columns, and their error in units of the noise.
BAD = 0.01
FARTHER = 3.0
ERROR = 4.0
# Corrupted rows, as many: spread of the values that replace their columns.
CORRUPT = 5.0
# Levels of the factors whose dummies come first, and the range of rare columns' frequencies.
LEVELS = (3, 4, 5, 6, 8, 10)
RARE = (0.01, 0.1)
# Digits: a pixel is a column if at least so many of the 1,797 images use it.
USED = 100
# Spectra: bands of absorption, their width as a fraction of the spectrum, and measurement noise.
BANDS = 15
BAND_WIDTH = 0.08
MEASURED = 1e-3


@dataclass(frozen=True, eq=False)
class DesignRows:
    """Columns of all rows; ``offset`` and ``spread`` are in units of the noise.

    A response is the linear predictor plus the noise's standard deviation times
    ``offset + spread * e``, with a standard normal number e per row.
    """

    X: Array
    offset: Array
    spread: Array


# Of the rows of every site, the true effects and a generator.
DrawDesign = Callable[[Sequence[int], Array, np.random.Generator], DesignRows]


@compiled
def autoregress(shocks: Array, rho: float) -> Array:
    """Return an autoregression down the rows: each is its shock plus rho times the row before."""
    x = shocks.copy()
    for k in range(1, x.shape[0]):
        for i in range(x.shape[1]):
            x[k, i] += rho * x[k - 1, i]
    return x


def _normal(n: int, p: int, rng: np.random.Generator) -> Array:
    """Return normal columns with correlations RHO^|k-l|."""
    shocks = rng.standard_normal((p, n))
    shocks[1:] *= np.sqrt(1 - RHO**2)
    return np.ascontiguousarray(autoregress(shocks, RHO).T)


def _plain(X: Array) -> DesignRows:
    """Return rows with equal noise, and columns that are scaled to a standard deviation of one."""
    spread = X.std(axis=0)
    return DesignRows(X / np.where(spread > 0, spread, 1.0), np.zeros(len(X)), np.ones(len(X)))


def draw_digits(rows: Sequence[int], truth: Array, rng: np.random.Generator) -> DesignRows:
    """Draw images of digits without replacement, and the pixels that vary most."""
    from sklearn.datasets import load_digits

    images = load_digits().data
    pixels = np.flatnonzero((images != 0).sum(axis=0) >= USED)
    if sum(rows) > len(images) or truth.size > pixels.size:
        most = f"{len(images)} rows and {pixels.size} columns"
        raise FedLassoError(f"the design 'digits' has {most}; the scenario needs more")
    kept = np.sort(pixels[np.argsort(-images[:, pixels].std(axis=0))[: truth.size]])
    return _plain(images[np.ix_(rng.permutation(len(images))[: sum(rows)], kept)])


def draw_spectra(rows: Sequence[int], truth: Array, rng: np.random.Generator) -> DesignRows:
    """Draw smooth spectra: bands of absorption, a baseline and a little measurement noise."""
    n = sum(rows)
    place = np.linspace(0, 1, truth.size)[:, None]
    bands = np.exp(-0.5 * ((place - rng.uniform(0, 1, BANDS)) / BAND_WIDTH) ** 2)
    X = rng.gamma(2.0, size=(n, BANDS)) @ bands.T
    X += rng.standard_normal((n, 2)) @ np.column_stack([np.ones(truth.size), place[:, 0]]).T
    return _plain(X + MEASURED * rng.standard_normal(X.shape))


def draw_dummies(rows: Sequence[int], truth: Array, rng: np.random.Generator) -> DesignRows:
    """Draw the dummies of every level of several factors, then normal columns."""
    n = sum(rows)
    parts: list[Array] = []
    for levels in LEVELS:
        if sum(part.shape[1] for part in parts) + levels <= truth.size:
            chances = rng.dirichlet(np.full(levels, 5.0))
            parts.append(np.eye(levels)[rng.choice(levels, n, p=chances)])
    left = truth.size - sum(part.shape[1] for part in parts)
    return _plain(np.hstack([*parts, _normal(n, left, rng)]))


def draw_rare(rows: Sequence[int], truth: Array, rng: np.random.Generator) -> DesignRows:
    """Draw binary columns that are 1 in few rows, by cutting correlated normal ones."""
    X = _normal(sum(rows), truth.size, rng)
    low, high = RARE
    frequency = np.exp(rng.uniform(np.log(low), np.log(high), truth.size))
    ones = np.ceil(frequency * len(X)).astype(int)
    cuts = [column[-count] for column, count in zip(np.sort(X, axis=0).T, ones, strict=True)]
    return _plain((cuts <= X).astype(np.float64))


def draw_shifted_sites(rows: Sequence[int], truth: Array, rng: np.random.Generator) -> DesignRows:
    """Draw normal columns, and responses whose means differ by site."""
    X = _normal(sum(rows), truth.size, rng)
    shifts = np.linspace(-RANGE, RANGE, len(rows))
    if len(rows) == len(SHIFTS):
        shifts = np.array(SHIFTS)
    return DesignRows(X, np.repeat(rng.permutation(shifts), rows), np.ones(len(X)))


def draw_shifted_columns(rows: Sequence[int], truth: Array, rng: np.random.Generator) -> DesignRows:
    """Draw the same, with columns whose means differ by site too."""
    shifted = draw_shifted_sites(rows, truth, rng)
    means = SITE_MEANS * rng.standard_normal((len(rows), truth.size))
    return DesignRows(shifted.X + np.repeat(means, rows, axis=0), shifted.offset, shifted.spread)


def draw_visits(rows: Sequence[int], truth: Array, rng: np.random.Generator) -> DesignRows:
    """Draw patients with several visits: every other column is the patient's, the rest the visit's.

    Row i of a site belongs to its patient i // VISITS.
    """
    sites = [np.arange(n) // VISITS for n in rows]
    starts = np.cumsum([0, *(own.max(initial=-1) + 1 for own in sites)])
    patient = np.concatenate([own + start for own, start in zip(sites, starts, strict=False)])
    X = _normal(len(patient), truth.size, rng)
    X[:, ::2] = _normal(starts[-1], truth[::2].size, rng)[patient]
    own = rng.standard_normal(starts[-1])[patient]
    return DesignRows(X, np.sqrt(ICC) * own, np.full(len(X), np.sqrt(1 - ICC)))


def draw_noisy_column(rows: Sequence[int], truth: Array, rng: np.random.Generator) -> DesignRows:
    """Draw normal columns, and noise that grows with the first column that has no effect."""
    X = _normal(sum(rows), truth.size, rng)
    driver = X[:, int(np.argmin(truth != 0))]
    return DesignRows(X, np.zeros(len(X)), np.exp(GROWTH * driver - GROWTH**2))


def draw_leverage(rows: Sequence[int], truth: Array, rng: np.random.Generator) -> DesignRows:
    """Draw normal columns; a few rows are far away and have the same large error."""
    X = _normal(sum(rows), truth.size, rng)
    bad = rng.permutation(len(X)) < BAD * len(X)
    X[bad] *= FARTHER
    return DesignRows(X, np.where(bad, ERROR, 0.0), np.ones(len(X)))


def draw_corrupted(rows: Sequence[int], truth: Array, rng: np.random.Generator) -> DesignRows:
    """Draw normal columns; a few rows have responses that belong to other values than these.

    Offsets are in units of the noise for as much noise as signal.
    """
    X = _normal(sum(rows), truth.size, rng)
    bad = rng.permutation(len(X)) < BAD * len(X)
    right = X[bad]
    X[bad] = CORRUPT * rng.standard_normal(right.shape)
    offset = np.zeros(len(X))
    offset[bad] = (right - X[bad]) @ truth / (float((X @ truth).std()) or 1.0)
    return DesignRows(X, offset, np.ones(len(X)))


DESIGNS: dict[str, DrawDesign] = {
    "digits": draw_digits,
    "spectra": draw_spectra,
    "dummies": draw_dummies,
    "rare": draw_rare,
    "shifted-sites": draw_shifted_sites,
    "shifted-columns": draw_shifted_columns,
    "visits": draw_visits,
    "unnamed-visits": draw_visits,
    "noisy-column": draw_noisy_column,
    "leverage": draw_leverage,
    "corrupted": draw_corrupted,
}


def find_design(name: str) -> DrawDesign:
    """Return the design of this name."""
    if name not in DESIGNS:
        raise FedLassoError(f"no design is called {name!r}; known: {', '.join(DESIGNS)}")
    return DESIGNS[name]


def clusters_of(name: str, rows: int) -> NDArray[np.int64] | None:
    """Return the patient of each row of a site, where a design names them."""
    return np.arange(rows) // VISITS if name == "visits" else None
