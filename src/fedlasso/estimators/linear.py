"""FederatedLasso, the scikit-learn estimator for numeric responses."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from sklearn.base import RegressorMixin

from fedlasso.estimators.shared import WithIntercept
from fedlasso.families import Family
from fedlasso.families.linear import Linear


@dataclass(eq=False, repr=False)
class FederatedLasso(RegressorMixin, WithIntercept):  # type: ignore[misc]
    """Lasso across sites that keep their records, with cross-validation and inference.

    Parameters
    ----------
    goal : {"prediction", "selection", "objective", "discoveries"}, optional
        What the model is for: prediction by default. With a penalty or a procedure it is the pooled
        Lasso, whatever the goal. The expected proportion of false discoveries is at most `fdr`.
    penalty : float, optional
        On the standardised scale, as scikit-learn's ``alpha``; chosen by cross-validation by
        default.
    keep : list of str or int
        Names or numbers of columns that are never penalised, so they are always in the model.
    l1_ratio : float
        Fraction of the L1 penalty, as in scikit-learn's ``ElasticNet``; the rest is a ridge penalty.
    bounds : dict, optional
        Lower and upper bounds of coefficients, per unit, by name or number of the column:
        ``{"age": (0, None), "dose": (-1, 2)}``. Zero must lie between them; None means no bound.
    fdr : float
        False discovery rate of the goal "discoveries".
    intervals : list of str or int
        Columns that get confidence intervals in ``trust_.named``, whether selected or not;
        ``["selected"]`` for those that the model selects, in ``trust_.selected``.
    level : float
        Coverage of the intervals.
    site_weights : {"equal", "variance"}, optional
        Weight rows equally at all sites, or by the inverse of their site's noise variance; by
        default the latter if inference is requested and the sites clearly differ.
    procedure : str, optional
        A name from ``fedlasso.REGISTRY``, run at the penalty instead of the goal's own procedure.
    epochs : int
        Local epochs per round of that procedure.
    validation : float or "given", optional
        Hold out this fraction of every site's rows once, instead of cross-validation; "given" uses
        the validation samples of a federation's sites.
    cv : int, optional
        Number of folds; 10 by default, fewer if they cost too much.
    uploads : int, optional
        Maximum number of vectors of p numbers that each site sends in total. By default what the
        plan needs, within 64 MiB.
    rule : {"min", "1se"}, optional
        Choose the smallest held-out error, or the sparsest model within one standard error.
    tol : float
        Relative duality gap of a fit at one penalty.
    standardize, fit_intercept : bool
        Scale and centre the columns, by sums that sites send.
    site_effects : bool
        Fit an intercept per site, which stays there; predictions use their mean over the rows.
    seed : int
        Seed of every split.

    Attributes
    ----------
    coef_, intercept_ : on the original scale
    certificate_ : distance to the best possible objective
    ledger_ : traffic between server and sites
    penalty_ : the penalty, given or chosen on the path
    model_ : the whole fit
    trust_ : discoveries and intervals, if requested

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
