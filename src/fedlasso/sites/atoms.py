"""Atoms: the parts into which a site with a secret cuts its rows, once in a data file's life.

Every sum over some of the rows is a sum over a union of atoms, whatever folds, fractions and seeds
a fit uses. So all sums together disclose at most the sums over each atom.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError
from fedlasso.numerics.designs import RowIndex
from fedlasso.numerics.response import Places
from fedlasso.sites.rows import shuffle

# Minimum rows of an atom, and maximum atoms of a site.
ATOM_ROWS = 20
MOST_ATOMS = 20
# Rows per column of every part with second moments.
ROWS_PER_COLUMN = 2
# Maximum number of draws of a cut.
TRIES = 300


def count_atoms(rows: int, fewest: int) -> int:
    """Return into how many atoms of at least `fewest` rows so many rows are cut."""
    return max(min(rows // max(fewest, 1), MOST_ATOMS), 1)


def halve(count: int) -> Iterator[int]:
    """Yield numbers of atoms from the finest cut to the coarsest."""
    while count > 1:
        yield count
        count //= 2


def merge(atoms: Places, count: int) -> Places:
    """Return a coarser cut, each atom of which is a union of neighbours."""
    while atoms.max() + 1 > count:
        most = int(atoms.max() + 1) // 2
        atoms = np.minimum(atoms // 2, most - 1)
    return atoms


def smallest(atoms: Places) -> int:
    """Return the rows of the smallest atom."""
    return int(np.bincount(atoms).min())


def draw_atoms(
    count: int, sizes: Places, strata: NDArray[np.bool_] | None, secret: bytes, redraws: int
) -> Places:
    """Return the atom of every cluster of rows, in the same proportions of both strata."""
    order = shuffle("", len(sizes), [], secret, f"atoms {len(sizes)} {count} {redraws}")
    if strata is not None:
        order = order[np.argsort(strata[order], kind="stable")]
    atoms = np.empty(len(sizes), np.int64)
    if sizes.max(initial=0) <= 1:
        atoms[order] = np.arange(len(order)) % count
        return atoms
    filled = np.zeros(count)
    for cluster in order:
        smallest = int(filled.argmin())
        atoms[cluster] = smallest
        filled[smallest] += sizes[cluster]
    return atoms


def place_in_folds(count: int, folds: int, turn: int) -> Places:
    """Return the fold of every atom.

    Sites take turns, so that folds have alike numbers of rows in all; a site with fewer atoms than
    folds has rows in some of them.
    """
    return (turn * count + np.arange(count)) % folds


def fills_folds(atoms: Sequence[int], folds: int) -> bool:
    """Return whether sites with so many atoms each have rows in every fold between them."""
    places = [place_in_folds(count, folds, turn) for turn, count in enumerate(atoms)]
    return not atoms or len(np.unique(np.concatenate(places))) == folds


def choose_atoms(split: str, count: int, turn: int, secret: bytes) -> dict[str, RowIndex]:
    """Return the training and the held-out atoms of a split by purpose."""

    def order(name: str) -> RowIndex:
        return shuffle("", count, [], secret, f"{name} of {count} atoms")

    everything = np.arange(count)
    try:
        match split.split():
            case ["holdout", fraction, seed]:
                mixed = order(f"holdout {float(fraction)!r} {int(seed)}")
                held = min(max(round(float(fraction) * count), 1), count - 1)
                # A single held-out atom serves both purposes.
                penalty = mixed[: (held + 1) // 2]
                candidate = mixed[held // 2 : held]
                return {"training": mixed[held:], "penalty": penalty, "candidate": candidate}
            case ["fold", number, "of", folds, seed] if int(seed) >= 0:
                mine = place_in_folds(count, _positive(folds), turn) == int(number) - 1
                held_out = everything[mine]
                return {"training": everything[~mine], "penalty": held_out, "candidate": held_out}
            case ["folds", folds, seed] if int(seed) >= 0:
                _positive(folds)
                return {"training": everything}
            case ["half", number, seed]:
                mixed = order(f"half {int(number)} {int(seed)}")
                # Of an odd number of atoms, every other half has the larger part.
                return {"training": mixed[: (count + int(number) % 2) // 2]}
    except (ValueError, OverflowError, ZeroDivisionError):
        pass
    raise FedLassoError(f"no split is called {split!r}: update fedlasso")


def _positive(text: str) -> int:
    number = int(text)
    if number < 2:
        raise ValueError(text)
    return number
