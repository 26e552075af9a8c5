"""FederatedLasso, a scikit-learn estimator of numbers."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from sklearn.base import RegressorMixin

from fedlasso.estimators.shared import WithIntercept
from fedlasso.families import Family
from fedlasso.families.linear import Linear


@dataclass(eq=False, repr=False)
class FederatedLasso(RegressorMixin, WithIntercept):  # type: ignore[misc]
    """One Lasso across sites that keep their records, tuned and told on the original scale.

    Parameters
    ----------
    goal : {"prediction", "selection", "objective", "discoveries"}, optional
        What the model is for: prediction by default. With a penalty or a procedure it is the pooled
        Lasso, whatever the goal. Discoveries are columns of which at most a share `fdr` is false,
        on average.
    penalty : float, optional
        On the standardised scale, as scikit-learn's ``alpha``; chosen by cross-validation by
        default.
    keep : list of str or int
        Columns that no penalty touches, by names or numbers: they are always in the model.
    l1_ratio : float
        The Lasso's share of the penalty; the rest is a ridge's, as in scikit-learn's
        ``ElasticNet``.
    bounds : dict, optional
        A lower and an upper bound of coefficients, per unit of the column, by its name or number:
        ``{"age": (0, None), "dose": (-1, 2)}``. Zero must lie between them, and None is no bound.
    fdr : float
        The rate of false discoveries that the goal of discoveries allows.
    intervals : list of str or int
        Columns whose coefficients get intervals, whether the model uses them or not; they are in
        ``trust_.named``. ``["selected"]`` is for those that the model uses, in
        ``trust_.selected``.
    level : float
        How often intervals are to cover.
    site_weights : {"equal", "variance"}, optional
        Rows count the same at all sites, or by the inverse of the variance of their site's noise;
        by default the latter where inference is asked for and sites clearly differ.
    procedure : str, optional
        A name from ``fedlasso.REGISTRY``, run at the penalty instead of the goal's own procedure.
    epochs : int
        Local epochs per round of that procedure.
    validation : float or "given", optional
        Share of every site's rows that chooses instead of folds, or the samples that a federation's
        sites were given.
    cv : int, optional
        Folds of the cross-validation; 10 by default, fewer where they cost too much.
    uploads : int, optional
        Vectors of p numbers that each site may send in all; never more are sent. By default what
        the plan needs, within 64 MiB.
    rule : {"min", "1se"}, optional
        How the penalty or candidate is chosen.
    tol : float
        Relative duality gap of a fit at one penalty.
    standardize, fit_intercept : bool
        Scale and centre, by sums that sites send.
    site_effects : bool
        An intercept for every site, which stays there; predictions take their mean over the rows.
    seed : int
        Of every split.

    Attributes
    ----------
    coef_, intercept_ : on the original scale
    certificate_ : distance to the best possible objective
    ledger_ : what passed between server and sites
    penalty_ : the penalty: given, or chosen on the path
    model_ : the whole fit
    trust_ : discoveries and intervals, where they were asked for

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from fedlasso import FederatedLasso
    >>> X, y = load_diabetes(return_X_y=True)
    >>> hospital = np.arange(len(y)) % 3
    >>> model = FederatedLasso(penalty=1.0).fit(X, y, sites=hospital)
    >>> int((model.coef_ != 0).sum()), model.ledger_.sites
    (7, ('0', '1', '2'))
    """

    family: ClassVar[Family] = Linear()

    _: KW_ONLY
    site_weights: str | None = None
