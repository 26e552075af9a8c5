"""The rows of a site: validation of a user's arrays, and splits into training and held-out rows.

A request names a split, which the site computes from a seed.

======================  ======================================================================
split                   rows
======================  ======================================================================
``""``                  all train; held-out samples are those given to the site
``holdout 0.2 SEED``    a fifth is held out: half of it for the penalty, half for the candidates
``fold 2 of 5 SEED``    fold 2 is held out, for both
``folds 10 SEED``       all train, and replies have a sum over each of ten folds
``half 3 SEED``         the third random half trains, nothing is held out
======================  ======================================================================

Where responses are classes, events or counts, every site divides rows of both classes, with and
without an event, or zero and nonzero counts, in the same proportions.

In one process a draw depends on the seed, such responses, and the site's name or a hash of its
records, so every process draws the same rows. On a network every part is a union of atoms, into
which a site has cut its rows with its own secret: nobody else knows which rows are drawn, and other
seeds draw the same folds (`sites/atoms.py`).
"""

import hashlib
import hmac
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from fedlasso.errors import FedLassoError, QuotesRecords
from fedlasso.federation.checking import LARGEST
from fedlasso.numerics import Array, Loss, Response
from fedlasso.numerics.designs import RowIndex
from fedlasso.numerics.response import Places

PURPOSES = ("penalty", "candidate")
# Name of the intercept where it is one of the columns.
INTERCEPT = "(intercept)"


def check_sample(
    site: str,
    sample: str,
    X: ArrayLike,
    y: ArrayLike,
    columns: Sequence[str] | None = None,
    *,
    copy: bool = True,
    missing: bool = False,
) -> tuple[tuple[str, ...], tuple[Array, Array]]:
    """Return column names, and X and y as float64, each column contiguous.

    A sparse X stays sparse. With `missing`, X may have values that are not a number.
    """
    table: Any = X if sp.issparse(X) else np.asarray(X)
    if table.ndim != 2:
        found = f"the {sample} records have {table.ndim} dimensions"
        raise _error(site, f"{found}; give a table of rows by columns")
    m, p = table.shape
    if m == 0:
        raise _error(site, f"no {sample} rows; give it rows or leave the site out")
    if p == 0:
        raise _error(site, f"no {sample} columns; give at least one predictor")
    names = tuple(f"x{k}" for k in range(p)) if columns is None else tuple(map(str, columns))
    if len(names) != p:
        found = f"{p} {sample} columns but {len(names)} names"
        raise _error(site, f"{found}; every column needs one name")
    if len(set(names)) < p:
        twice = next(n for i, n in enumerate(names) if n in names[:i])
        raise _error(site, f"two columns are called {twice!r}; rename one")
    response = np.asarray(y)
    if response.ndim == 2 and response.shape[1] == 1:
        response = response[:, 0]
    if response.ndim != 1 or len(response) != m:
        found = f"{m} {sample} rows in X but y has shape {np.shape(y)}"
        raise _error(site, f"{found}; give one response per row")
    if sp.issparse(table):
        records: Any = sp.csc_array(table, dtype=np.float64, copy=copy)
        _to_float(site, sample, records.data[:, None], ("of a sparse X",), False, False)
    else:
        records = _to_float(site, sample, table, names, copy, missing)
    responses = _to_float(site, sample, response[:, None], ("response y",), copy, False)[:, 0]
    return names, (records, responses)


def check_response(
    site: str,
    loss: Loss,
    y: Array,
    weights: ArrayLike | None = None,
    offset: ArrayLike | None = None,
) -> Response:
    """Return responses with their weights and offsets, once they fit the loss."""
    misfits = y[loss.find_misfits(y)]
    if misfits.size:
        what = f"responses do not fit the {loss.name} loss"
        found = f"{misfits.size} {what}, such as {misfits[0]:g}"
        raise _error(site, f"{found}; give {loss.wants}", f"some {what}; give {loss.wants}")
    response = Response.of(y, weights, offset)
    for what, own in (("weights", response.weights), ("offset", response.offset)):
        if own.shape != y.shape:
            raise _error(site, f"{what} have shape {own.shape} for {len(y)} rows; give one per row")
        if bad := int((~np.isfinite(own)).sum()):
            found = "missing or infinite values; remove or fill them"
            raise _error(site, f"{what} has {bad} {found}", f"{what} has {found}")
        check_size(f"site {site!r}: {what}", own)
    if bad := int((response.weights <= 0).sum()):
        found = "weights are not above zero; give positive weights, or leave those rows out"
        raise _error(site, f"{bad} {found}", f"some {found}")
    return response


def check_clusters(site: str, clusters: ArrayLike, rows: int) -> Places:
    """Return clusters as numbers from 0; refuse missing labels."""
    labels = np.asarray(clusters)
    if labels.shape != (rows,):
        raise _error(site, f"clusters have shape {labels.shape} for {rows} rows; give one per row")
    # A NaN and None differ from themselves or are None.
    if bad := int(sum(label is None or label != label for label in labels.tolist())):
        found = "rows; fill them, or remove those rows"
        what = "clusters are missing in"
        raise _error(site, f"{what} {bad} {found}", f"{what} some {found}")
    return np.unique(labels.astype(str), return_inverse=True)[1].astype(np.int64)


def _error(site: str, text: str, unquoted: str = "") -> FedLassoError:
    where = f"site {site!r}"
    return QuotesRecords(f"{where}: {text}", f"{where}: {unquoted or text}")


def _to_float(
    site: str, sample: str, table: NDArray[Any], names: Sequence[str], copy: bool, missing: bool
) -> Array:
    if table.dtype.kind not in "fiub":
        for name, column in zip(names, table.T, strict=True):
            try:
                np.asarray(column, dtype=np.float64)
            except (TypeError, ValueError):
                found = f"column {name!r} is not numeric in the {sample} data"
                raise _error(site, f"{found}; encode it as numbers first") from None
    numbers: Array = np.array(table, dtype=np.float64, order="F", copy=copy or None)
    # A NaN makes this false.
    if numbers.max(initial=0) <= LARGEST and numbers.min(initial=0) >= -LARGEST:
        return numbers
    bad = (np.isinf(numbers) if missing else ~np.isfinite(numbers)).sum(axis=0)
    for k in np.flatnonzero(bad)[:1]:
        where = f"column {names[k]!r} has"
        found = f"missing or infinite values in the {sample} data; remove or fill them"
        raise _error(site, f"{where} {bad[k]} {found}", f"{where} {found}")
    for name, column in zip(names, numbers.T, strict=True):
        check_size(f"site {site!r}: column {name!r}", column)
    return numbers


def check_two_rows(site: str, rows: int) -> None:
    if rows < 2:
        remedy = "give it at least 2 rows, or leave the site out"
        raise FedLassoError(f"site {site!r} has 1 row, which its sums would disclose; {remedy}")


def check_size(where: str, numbers: Array) -> None:
    """Reject numbers whose sums of squares would overflow; missing values pass."""
    largest = np.fmax.reduce(np.abs(numbers), initial=0.0)
    if largest > LARGEST:
        remedy = "too large to be squared and summed; correct it, or write it in larger units"
        quoted = f"{where} has a value of size {largest:.3g}, {remedy}"
        raise QuotesRecords(quoted, f"{where} has a value, {remedy}")


def holdout(fraction: float, seed: int) -> str:
    """Return the split that holds out a fraction of every site's rows."""
    if not 0 < fraction < 1:
        raise FedLassoError(f"`validation` is {fraction!r}; give a fraction between 0 and 1")
    return f"holdout {float(fraction)!r} {int(seed)}"


def folds(count: int, seed: int) -> tuple[str, ...]:
    """Return the splits of a cross-validation, each of which holds out one fold."""
    if not isinstance(count, int | np.integer) or count < 2:
        raise FedLassoError(f"`cv` is {count!r}; give a whole number of folds, 2 or more")
    return tuple(f"fold {k} of {count} {int(seed)}" for k in range(1, count + 1))


def all_folds(count: int, seed: int) -> str:
    """Return the split that holds out no rows, but has one sum over each fold."""
    return f"folds {int(count)} {int(seed)}"


def folds_in(split: str) -> int:
    """Return how many folds a split sums over separately."""
    match split.split():
        case ["folds", count, _] if count.isdecimal():
            return int(count)
    return 1


def fold_rows(
    split: str,
    site: str,
    n: int,
    strata: NDArray[np.bool_] | None = None,
) -> list[RowIndex]:
    """Return the rows of every fold of `all_folds`; without a split, all rows as a single fold."""
    if not split:
        return [np.arange(n)]
    match split.split():
        case ["folds", count, seed] if count.isdecimal() and seed.isdecimal():
            names = folds(int(count), int(seed))
            return [divide(fold, site, n, strata)["penalty"] for fold in names]
    raise FedLassoError(f"the split {split!r} has no folds; request 'folds COUNT SEED'")


def halves(count: int, seed: int) -> tuple[str, ...]:
    """Return the splits that train on random halves of every site's rows."""
    return tuple(f"half {k} {int(seed)}" for k in range(1, count + 1))


def name_draw(split: str) -> str:
    """Return the draw of rows behind a split; all folds of one assignment come from one draw."""
    try:
        match split.split():
            case ["holdout", fraction, seed]:
                return f"holdout {float(fraction)!r} {int(seed)}"
            case ["fold", _, "of", count, seed] | ["folds", count, seed]:
                return f"folds {int(count)} {int(seed)}"
            case ["half", k, seed]:
                return f"half {int(k)} {int(seed)}"
    except ValueError:
        pass
    raise FedLassoError(f"no split is called {split!r}: update fedlasso")


def divide(
    split: str,
    site: str,
    n: int,
    strata: NDArray[np.bool_] | None = None,
) -> dict[str, RowIndex]:
    """Return training rows and held-out rows by purpose, each sorted.

    `strata` divides the rows in two, and every part gets its proportion of both; the sizes of parts
    do not depend on it.
    """

    def order(*seeds: int) -> RowIndex:
        return shuffle(site, n, seeds)

    try:
        match split.split():
            case ["holdout", fraction, seed]:
                mixed = interleave(order(int(seed)), strata)
                expected = float(fraction) * n
                # Of many sites too small to hold out a row each, that fraction holds out one.
                drawn = (_number(f"{seed} {site}") >> 11) / 2.0**53 < expected
                held = min(round(expected) if expected >= 0.5 else int(drawn), n - 1)
                # A single held-out row serves both purposes.
                penalty = mixed[: (held + 1) // 2]
                candidate = mixed[held // 2 : held]
                parts = {"training": mixed[held:], "penalty": penalty, "candidate": candidate}
            case ["fold", k, "of", count, seed]:
                # Different starts balance the sizes of the folds over small sites.
                shift = _number(site) % int(count)
                mine = (np.arange(n) + shift) % int(count) == int(k) - 1
                mixed = order(int(seed))
                if strata is not None:
                    # Folds take turns within the first stratum, and go on within the other.
                    mixed = mixed[np.argsort(strata[mixed], kind="stable")]
                held_out = mixed[mine]
                parts = {"training": mixed[~mine], "penalty": held_out, "candidate": held_out}
            case ["folds", count, seed]:
                folds(int(count), int(seed))
                parts = {"training": np.arange(n)}
            case ["half", k, seed]:
                mixed = interleave(order(int(seed), int(k)), strata)
                parts = {"training": mixed[: (n + 1) // 2]}
            case _:
                raise ValueError(split)
    except (ValueError, OverflowError, ZeroDivisionError):
        raise FedLassoError(f"no split is called {split!r}: update fedlasso") from None
    return {purpose: np.sort(rows) for purpose, rows in parts.items()}


def interleave(mixed: RowIndex, strata: NDArray[np.bool_] | None) -> RowIndex:
    """Return rows in an order of which every beginning has its proportion of both strata."""
    if strata is None:
        return mixed
    place = np.empty(len(mixed))
    for stratum in (False, True):
        own = strata[mixed] == stratum
        count = int(own.sum())
        place[own] = (np.arange(count) + 0.5) / max(count, 1)
    return mixed[np.argsort(place, kind="stable")]


def shuffle(
    site: str, n: int, seeds: Sequence[int], secret: bytes = b"", named: str = ""
) -> RowIndex:
    """Return n numbers in an order that seeds and the site's name determine, or a secret does."""
    if not secret:
        rng = np.random.default_rng(np.random.SeedSequence([*seeds, _number(site)]))
        return rng.permutation(n).astype(np.int64)
    # Without the key the order cannot be distinguished from a random one.
    key = hmac.digest(secret, named.encode(), "sha256")
    words = hashlib.shake_256(key).digest(8 * n)
    return np.argsort(np.frombuffer(words, "<u8"), kind="stable").astype(np.int64)


def fill_batches(sizes: Places, order: RowIndex, rows: int) -> Places:
    """Return the batch of each cluster: in this order, each batch has at least so many rows."""
    batch = np.zeros(len(sizes), np.int64)
    last = filled = 0
    for cluster in order:
        batch[cluster] = last
        filled += int(sizes[cluster])
        if filled >= rows:
            last += 1
            filled = 0
    # Rows left over join the last full batch.
    return np.minimum(batch, max(last - 1, 0))


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
