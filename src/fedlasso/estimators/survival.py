"""FederatedCoxLasso, a scikit-learn estimator of survival times."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from fedlasso.errors import FedLassoError
from fedlasso.estimators.shared import FederatedEstimator
from fedlasso.families import Family
from fedlasso.families.cox import Cox
from fedlasso.federation import Federation
from fedlasso.fitting.examination.measures import find_concordance
from fedlasso.numerics import Array
from fedlasso.sites import BaselineAt, Viewed


@dataclass(eq=False, repr=False)
class FederatedCoxLasso(FederatedEstimator):
    """One sparse model of survival times across sites that keep their records: Cox regression.

    Every site has a baseline hazard of its own, so there is no intercept and no site effect.

    Parameters
    ----------
    goal, penalty, keep, l1_ratio, bounds, fdr, intervals, level, procedure, epochs, validation, cv,
    uploads, rule, tol,
    standardize, seed : as of `FederatedLasso`
        The penalty is chosen by held-out deviance. Selection and prediction differ in how
        it is chosen only: for selection it is the sparsest model within one standard error.
    ties : {"efron", "breslow"}
        How events at the same time are treated.
    fit_baseline_model : bool
        Whether every site is asked for its baseline hazard as well, at the times of all events.
        It tells when there were events at that site, so it takes the rows in this process.

    Attributes
    ----------
    coef_ : of the logarithm of the hazard, on the original scale
    event_times_, baselines_ : where they were asked for, times of events and each site's
        cumulative baseline hazard at them, by Breslow's estimator
    certificate_, ledger_, penalty_, model_ : as of `FederatedLasso`

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import FederatedCoxLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 5))
    >>> lasted = rng.exponential(np.exp(-X[:, 0]))
    >>> y = np.array(list(zip(lasted < 2, np.minimum(lasted, 2))), dtype="?,f8")
    >>> model = FederatedCoxLasso(penalty=0.1).fit(X, y, sites=np.arange(300) % 3)
    >>> np.flatnonzero(model.coef_), round(model.score(X, y), 2)
    (array([0]), 0.75)
    """

    family: ClassVar[Family] = Cox()

    _: KW_ONLY
    ties: str = "efron"
    fit_baseline_model: bool = False

    def predict(self, X: Any, offset: Any = None) -> Array:
        """Logarithms of risks, relative to a row whose columns are all at their mean.

        The larger, the sooner the event; as of scikit-survival's linear models.
        """
        return self._score(X, offset)

    def predict_survival_function(self, X: Any, site: str, offset: Any = None) -> Array:
        """Chances of being without the event after each of `event_times_`, one row per row.

        Parameters
        ----------
        X : table
        site : whose baseline hazard the rows have
        offset : as in `fit`
        """
        check_is_fitted(self)
        baselines: dict[str, Array] = getattr(self, "baselines_", {})
        if not baselines:
            raise FedLassoError("no baseline was asked for; fit with fit_baseline_model=True")
        if str(site) not in baselines:
            raise FedLassoError(f"no site is called {site!r}; they are {', '.join(baselines)}")
        with np.errstate(over="ignore"):
            risk = np.exp(self._score(X, offset))
        hazard = np.outer(risk, baselines[str(site)])
        return np.asarray(np.exp(-hazard))

    def score(self, X: Any, y: Any) -> float:
        """Return the concordance: how often the row with the larger risk has its event first."""
        times, events = read_survival(y)
        return find_concordance(times, events, self.predict(X))

    def _check(self, X: Any, y: Any) -> tuple[Any, Array]:
        if y is None:
            raise ValueError("y is None; give whether each row had its event, and its time")
        X = validate_data(self, X, accept_sparse=("csc", "csr"), dtype=np.float64)
        times, events = read_survival(y)
        if len(times) != X.shape[0]:
            raise FedLassoError(f"y has {len(times)} rows but X has {X.shape[0]}; give one each")
        return X, self.family.encode({"time": times, "event": events})

    def _accept(self, federation: Federation) -> None:
        if self.fit_baseline_model:
            raise FedLassoError(
                "fit_baseline_model takes the rows in this process, and this is a federation; "
                "leave it out"
            )
        super()._accept(federation)

    def _finish(self, federation: Federation, y: Any) -> None:
        if self.fit_baseline_model:
            times, events = read_survival(y)
            self.event_times_ = np.unique(times[events])
            view = Viewed(federation, self.model_.view)
            asked = BaselineAt(self.model_.fit.coefficients, self.event_times_)
            self.baselines_ = {reply.site: reply.hazard for reply in view.ask(asked)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def read_survival(y: Any) -> tuple[Array, Any]:
    """Return times, and whether each ended in an event, from any form that a response may have."""
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()
    table = np.asarray(y)
    if table.dtype.names is not None and len(table.dtype.names) == 2:
        columns = [table[name] for name in table.dtype.names]
    elif table.ndim == 2 and table.shape[1] == 2:
        columns = [table[:, 0], table[:, 1]]
    else:
        raise FedLassoError(
            "y must tell of every row whether it had its event, and its time: a structured array "
            "of two fields, or two columns"
        )
    try:
        event, times = (np.asarray(column, dtype=np.float64) for column in columns)
    except (TypeError, ValueError):
        raise FedLassoError("y holds what is no number; give event (0 or 1) and time") from None
    if not np.isin(event, (0, 1)).all():
        raise FedLassoError(
            "the first column of y is whether a row had its event, 0 or 1, and the second its time"
        )
    if bad := int((~(np.isfinite(times) & (times >= 0))).sum()):
        raise FedLassoError(f"times are negative, missing or infinite in {bad} rows; correct them")
    return times, event == 1
