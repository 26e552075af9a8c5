"""Certificates from sums: how far a model can be from the best possible objective."""

from __future__ import annotations

from fedlasso.federation import Federation
from fedlasso.numerics import Array, Certificate, duality_gap
from fedlasso.procedures import Problem
from fedlasso.sites import DualAt, FitAt, LossAt


def certify(federation: Federation, problem: Problem, b: Array) -> Certificate:
    """Certify a model by one gradient and a few scalars from every site.

    Least squares takes one question. For any other loss the dual value depends on how far the
    slopes must be scaled down to be feasible, so it is asked for once that is known.

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, Site, certify
    >>> from fedlasso.fitting import fix_penalty
    >>> federation = InProcess([Site("a", np.eye(2), [1.0, 0.0])])
    >>> print(certify(federation, fix_penalty(federation, 1.0), np.zeros(2)))
    at most 0% above the best possible objective
    """
    m, penalty = problem.m, problem.penalty
    if problem.loss == "quadratic":
        fit = federation.total(FitAt(b))
        gap = duality_gap(
            fit.residual_ss, fit.residual_y, fit.y_ss, fit.gradient / m, b, penalty, m
        )
        return Certificate(fit.residual_ss / (2 * m) + penalty.value(b), gap)
    at = federation.total(LossAt(b))
    objective = at.loss / m + penalty.value(b)
    scale = min(1.0, penalty.dual_limit(at.gradient / m))
    dual = federation.total(DualAt(b, scale)).value / m
    return Certificate(objective, max(objective - dual, 0.0))
