"""Many fits of any smooth loss, each from where the last one stood."""

from dataclasses import replace

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Federation, metered
from fedlasso.fitting.rounds import Run, within_uploads
from fedlasso.fitting.session import PathPoint, Session
from fedlasso.fitting.tuning import fix_penalty
from fedlasso.numerics import L1, Array, Certificate, PenaltyForm
from fedlasso.procedures import Newton

PLAIN = PenaltyForm()


def open_session(
    federation: Federation, uploads: int, form: PenaltyForm = PLAIN
) -> "Session | CurvedSession":
    """Return a session for the sites' loss and a form of penalty."""
    if federation.loss == "quadratic" and form.plain:
        return Session(federation, uploads)
    return CurvedSession(federation, uploads, form)


class CurvedSession:
    """Fits of one loss at several penalties: working set, curvature and model are carried on.

    Parameters
    ----------
    federation : the sites; every byte passes its ledger
    uploads : how many vectors of p numbers each site may send in all
    form : the penalty but for its strength

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, Site
    >>> from fedlasso.fitting import CurvedSession
    >>> X = np.random.default_rng(0).standard_normal((60, 4))
    >>> site = Site("a", X, (X[:, 0] > 0.3).astype(float), loss="binomial")
    >>> session = CurvedSession(InProcess([site]), uploads=30)
    >>> session.fit(session.form.at(0.5 * session.largest_penalty)).active
    1
    """

    # Relative gap of the fits on a path, and how many there are down to the end of the grid.
    path_tol = 1e-3
    path_penalties = 20

    def __init__(
        self, federation: Federation, uploads: int = 100, form: PenaltyForm = PLAIN
    ) -> None:
        if not isinstance(uploads, int | np.integer) or uploads < 1:
            raise FedLassoError(f"uploads is {uploads!r}; give a whole number, 1 or more")
        self.ledger = metered(federation)
        self.form = form
        self.uploads = uploads
        self._sent = 0.0
        p = len(self.ledger.columns)
        weights = np.ones(p) if form.weights is None else form.weights
        # All that pays is kept at zero: what is left is the model without any column.
        empty = L1(0.0, np.where(weights > 0, np.inf, 0.0), bounds=form.bounds)
        self.problem = fix_penalty(self.ledger, empty)
        newton = Newton(tol=self.path_tol)
        run = Run(self.ledger, newton, self.problem)
        run.until(lambda run: run.state.step == "bound" or within_uploads(uploads)(run))
        if run.state.step != "bound":
            raise FedLassoError(
                f"uploads is {uploads}, too few for a model without any column; give more"
            )
        self._sent += run.uploads
        self.state = run.state
        self.largest_penalty = form.largest(run.state.slopes)
        self.null_loss = run.state.loss

    @property
    def spent(self) -> int:
        """Vectors of p numbers that each site has sent, the last one perhaps in part."""
        return int(np.ceil(self._sent))

    def fit(
        self, penalty: L1, start: Array | None = None, tol: float = 1e-4, reserve: int = 0
    ) -> PathPoint:
        """Fit at one penalty, until certified to `tol` or out of uploads.

        Parameters
        ----------
        penalty : of this session's form
        start : not needed; a fit goes on from the one before
        tol : relative duality gap
        reserve : uploads that must be left over
        """
        problem = replace(self.problem, penalty=penalty)
        newton = Newton(tol=tol)
        run = Run(self.ledger, newton, problem, state=newton.go_on(problem, self.state))
        run.until(within_uploads(self.uploads - reserve - self._sent))
        self._sent += run.uploads
        self.state = run.state
        b = run.state.b
        objective = run.state.loss + penalty.value(b)
        certificate = newton.certificate(problem, run.state) or Certificate(objective, np.inf)
        deviance = 2 * problem.m * run.state.loss
        return PathPoint(penalty, b, deviance, certificate, newton.finest(problem, run.state))
