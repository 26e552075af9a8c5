"""Discoveries by debiased BH: p-values of the debiased Lasso for all columns, then a step-up test.

The debiased Lasso (Zhang and Zhang 2014; van de Geer, Bühlmann, Ritov and Dezeure 2014) tests every
column; Benjamini and Hochberg's procedure (1995) selects among them, as Javanmard and Javadi (2019)
do. A rival of the goal 'discoveries', for linear models, from the pooled second moments.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from fedlasso.fitting.evidence import Folded
from fedlasso.numerics import Array, one_thread
from fedlasso.numerics.debiasing import sweep_others
from fedlasso.study.data_splitting import choose_columns

# Penalty of the Lasso of a column on all others, in units of sqrt(2 log p / n).
STRENGTH = 0.5
# The change of a coefficient that ends that Lasso.
SMALL = 1e-6


@one_thread()
def debiased_p_values(folded: Folded) -> Array:
    """Return two-sided p-values of all columns, from the Lasso at lambda.min of the folds.

    A column that does not vary has a p-value of one.
    """
    normal = folded.normal(folded.whole)
    G, p, rows = normal.gram, normal.p, normal.rows
    varies = np.flatnonzero(normal.factors)
    lasso = np.zeros(p)
    lasso[varies] = choose_columns(folded)[varies] / normal.factors[varies]
    slopes = G @ lasso - normal.score
    residual = normal.variance - lasso @ (normal.score - slopes)
    noise = rows * float(residual) / max(rows - int(np.count_nonzero(lasso)) - 1, 1)
    lam = STRENGTH * np.sqrt(2 * np.log(max(p, 2)) / rows)
    scores = np.zeros(p)
    for j in varies:
        others = np.zeros(p)
        sweep_others(G, int(j), lam, SMALL, others)
        direction = -others
        direction[j] = 1.0
        moved = G @ direction
        # The estimate and its standard error, both times direction' G e_j.
        value = moved[j] * lasso[j] - direction @ slopes
        error = np.sqrt(max(noise * float(direction @ moved), 0.0) / rows)
        scores[j] = value / error if error > 0 else 0.0
    return np.asarray(2 * ndtr(-np.abs(scores)))


def step_up(p_values: Array, rate: float) -> NDArray[np.bool_]:
    """Return the columns that Benjamini and Hochberg's procedure selects."""
    ranked = np.sort(p_values)
    passed = np.flatnonzero(ranked <= rate * np.arange(1, ranked.size + 1) / ranked.size)
    return p_values <= (ranked[passed[-1]] if passed.size else -1.0)
