"""Records from second moments of several parts of the same rows."""

from collections.abc import Sequence

import numpy as np
from helpers.governance.victims import distance

from fedlasso.numerics import Array

# Distance from a record, in standard deviations, within which it counts as recovered.
CLOSE = 0.25


def diagonalise(parts: Sequence[Array], seed: int = 0) -> Array:
    """Return the rows whose products add up to matrices of several parts, up to their sign.

    With X the rows of all parts and D a diagonal of zeros and ones, a part's matrix is X'DX. Where
    rows are fewer than columns, all such have the same generalised eigenvectors, and those of a
    random combination are the rows, unless some rows are in the same parts.
    """
    whole = np.mean(parts, axis=0)
    values, vectors = np.linalg.eigh(whole)
    kept = values > 1e-9 * values.max()
    root = vectors[:, kept] * np.sqrt(values[kept])
    inverse = vectors[:, kept] / np.sqrt(values[kept])
    weights = np.random.default_rng(seed).standard_normal(len(parts))
    mixed = sum(w * inverse.T @ part @ inverse for w, part in zip(weights, parts, strict=True))
    _, turned = np.linalg.eigh(mixed)
    return np.asarray((root @ turned).T)


def scale_to_ones(found: Array) -> Array:
    """Return rows (1, x, y) that are known up to a factor, without those of no size."""
    sizes = found[:, :1]
    kept = np.abs(sizes[:, 0]) > 1e-6 * np.abs(sizes).max()
    return np.asarray(found[kept, 1:] / sizes[kept])


def count_matches(found: Array, rows: Array) -> int:
    """Return how many different records were found."""
    if len(found) == 0:
        return 0
    return int((distance(rows, found) < CLOSE).sum())
