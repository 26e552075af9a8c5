r"""Discoveries by Fed-FDR: a rival of the goal 'discoveries' that needs one coefficient per column.

Federated feature selection with false discovery rate control (Li, Tong, Hu, Ning, Chen, Tang and
Moore, JRSS-B 2025, doi:10.1093/jrsssb/qkaf074), for linear models, as in the authors' code. Every
site selects columns by an adaptive Lasso and sends them. Every site then fits the columns that the
*other* sites have selected, without the Lasso's bias, and sends the coefficients over their
standard errors: the choice of columns is independent of the rows that test them. For each pair of
sites the mirror statistic :math:`\operatorname{sign}(z_a z_b)(|z_a| + |z_b|)` discovers columns;
pairs are combined by their inclusion rates, as data splits are.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fedlasso.federation import InProcess
from fedlasso.fitting.evidence import Folded
from fedlasso.numerics import Array, one_thread
from fedlasso.sites import Site
from fedlasso.study.data_splitting import choose_columns, inclusion_rates, select_above

# Penalty of the ridge regression whose coefficients are weights of the adaptive Lasso, and what is
# added to second moments that are singular.
RIDGE = 0.01
SINGULAR = 1e-5
FOLDS = 5
ROUNDING = 1e-12


@one_thread()
def site_scores(samples: Sequence[tuple[Array, Array]]) -> tuple[Array, int]:
    """Return every site's scores of all columns, an array (sites, p), and the numbers sent.

    Columns that no other site has selected have a score of zero.
    """
    chosen = np.array([select_columns(X, y) for X, y in samples])
    scores = np.zeros(chosen.shape)
    for j, (X, y) in enumerate(samples):
        others = np.delete(chosen, j, axis=0).any(axis=0)
        scores[j, others] = score_columns(X[:, others], y)
    return scores, int(chosen.sum() + np.count_nonzero(scores))


def select_columns(X: Array, y: Array) -> NDArray[np.bool_]:
    """Return the columns of a site's adaptive Lasso, at lambda.min of five folds."""
    Z, centred = _standardise(X, y)
    gram = Z.T @ Z / len(Z) + RIDGE * np.eye(Z.shape[1])
    weighted = Z * np.abs(np.linalg.solve(gram, Z.T @ centred / len(Z)))
    view = InProcess([Site("site", weighted, centred, raw=True)])
    return np.asarray(choose_columns(Folded.ask(view, FOLDS, centre=True, scale=False)) != 0)


def score_columns(X: Array, y: Array) -> Array:
    """Return least-squares coefficients over their standard errors."""
    Z, centred = _standardise(X, y)
    rows, p = Z.shape
    gram = Z.T @ Z / rows
    if np.linalg.matrix_rank(gram, hermitian=True) < p:
        gram += SINGULAR * np.eye(p)
    inverse = np.linalg.inv(gram)
    b = inverse @ (Z.T @ centred) / rows
    variance = float(((centred - Z @ b) ** 2).sum()) / max(rows - p - 1, 1)
    errors = np.sqrt(variance * np.diagonal(inverse) / rows)
    return np.asarray(np.divide(b, errors, out=np.zeros(p), where=errors > 0))


def combine_sites(scores: Array, rate: float) -> NDArray[np.bool_]:
    """Return the columns that pairs of sites discover together.

    Those with the smallest inclusion rates are left out, as many as sum to at most the rate. Few
    pairs have many ties, of which the first columns are left out, as in the authors' code.
    """
    pairs = combinations(scores, 2)
    mirrors = [np.sign(a * b) * (np.abs(a) + np.abs(b)) for a, b in pairs]
    inclusion = inclusion_rates(np.array([select_above(own, rate) for own in mirrors]))
    order = np.argsort(inclusion, kind="stable")
    selected = np.zeros(inclusion.size, dtype=bool)
    selected[order[np.cumsum(inclusion[order]) > rate + ROUNDING]] = True
    return selected


def _standardise(X: Array, y: Array) -> tuple[Array, Array]:
    Z = X - X.mean(axis=0)
    spread = Z.std(axis=0)
    return Z / np.where(spread > 0, spread, 1.0), y - y.mean()
