"""Which rows train and which are held out: named in a request, worked out at the site, seeded.

======================  ======================================================================
split                   rows
======================  ======================================================================
``""``                  all train; held-out samples are those the site was given
``holdout 0.2 SEED``    a fifth is held out: half of it for the penalty, half for the candidates
``fold 2 of 5 SEED``    fold 2 is held out, for both
``half 3 SEED``         the third random half trains, nothing is held out
======================  ======================================================================

The draw depends on the seed and the site's name only, so every process draws the same rows.
"""

from __future__ import annotations

import hashlib

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.numerics.table import Rows

PURPOSES = ("penalty", "candidate")


def holdout(fraction: float, seed: int) -> str:
    """A share of every site's rows held out."""
    if not 0 < fraction < 1:
        raise FedLassoError(f"validation is {fraction!r}; give a share between 0 and 1")
    return f"holdout {float(fraction)!r} {int(seed)}"


def folds(count: int, seed: int) -> tuple[str, ...]:
    """The splits of a cross-validation."""
    if not isinstance(count, int | np.integer) or count < 2:
        raise FedLassoError(f"cv is {count!r}; give a whole number of folds, 2 or more")
    return tuple(f"fold {k} of {count} {int(seed)}" for k in range(1, count + 1))


def halves(count: int, seed: int) -> tuple[str, ...]:
    """Random halves of every site's rows."""
    return tuple(f"half {k} {int(seed)}" for k in range(1, count + 1))


def divide(split: str, site: str, n: int) -> dict[str, Rows]:
    """Training rows and held-out rows by purpose, each sorted."""
    try:
        return _divide(split.split(), site, n)
    except (ValueError, IndexError, OverflowError, ZeroDivisionError):
        raise FedLassoError(f"no split is called {split!r}: update fedlasso") from None


def _divide(words: list[str], site: str, n: int) -> dict[str, Rows]:
    if words[0] == "holdout":
        order = _order(site, n, int(words[2]))
        share = float(words[1]) * n
        # of many sites too small to hold out a row each, that share of them holds out one
        drawn = (_number(f"{words[2]} {site}") >> 11) / 2.0**53 < share
        held = min(round(share) if share >= 0.5 else int(drawn), n - 1)
        # a single held-out row serves both purposes
        penalty, candidate = order[: (held + 1) // 2], order[held // 2 : held]
        parts = {"training": order[held:], "penalty": penalty, "candidate": candidate}
    elif words[0] == "fold":
        k, count = int(words[1]), int(words[3])
        # a start that differs between sites keeps the folds of many small sites equal in size
        shift = _number(site) % count
        mine = (np.arange(n) + shift) % count == k - 1
        order = _order(site, n, int(words[4]))
        held_out = order[mine]
        parts = {"training": order[~mine], "penalty": held_out, "candidate": held_out}
    elif words[0] == "half":
        parts = {"training": _order(site, n, int(words[2]), int(words[1]))[: (n + 1) // 2]}
    else:
        raise ValueError(words[0])
    return {purpose: np.sort(rows) for purpose, rows in parts.items()}


def _number(site: str) -> int:
    return int.from_bytes(hashlib.sha256(site.encode()).digest()[:8], "little")


def _order(site: str, n: int, *seeds: int) -> Rows:
    rng = np.random.default_rng(np.random.SeedSequence([*seeds, _number(site)]))
    return rng.permutation(n).astype(np.int64)
