"""Which evidence a loss and a penalty take, where it comes from gradients."""

from fedlasso.federation import Federation, metered
from fedlasso.fitting.budget import Budget
from fedlasso.fitting.evidence.gradient_evidence import GradientEvidence
from fedlasso.fitting.evidence.newton_evidence import NewtonEvidence
from fedlasso.fitting.evidence.secant_evidence import SecantEvidence
from fedlasso.numerics import L1, Penalty, find_loss

PLAIN = L1(1.0)


def open_evidence(
    federation: Federation, uploads: int = 100, form: Penalty = PLAIN
) -> GradientEvidence:
    """Return evidence by gradients for the sites' loss and a form of penalty.

    Parameters
    ----------
    federation : the sites; every byte passes its ledger
    uploads : vectors of p numbers that each site may send in all
    form : the penalty but for its strength

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, Site, open_evidence
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 8))
    >>> site = Site("a", X, X[:, 0] + 0.1 * rng.standard_normal(50))
    >>> evidence = open_evidence(InProcess([site]), uploads=30)
    >>> path = evidence.path(evidence.grid(5))
    >>> [point.active for point in path][0], evidence.budget.spent <= 30
    (0, True)
    """
    return open_within(federation, Budget(metered(federation), uploads), form)


def open_within(federation: Federation, budget: Budget, form: Penalty = PLAIN) -> GradientEvidence:
    """Return evidence by gradients within a budget."""
    ledger = metered(federation)
    if find_loss(ledger.loss).quadratic and form.plain:
        return SecantEvidence(ledger, budget, form)
    return NewtonEvidence(ledger, budget, form)
