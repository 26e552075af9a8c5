"""FederatedCoxLasso, the scikit-learn estimator for survival times."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fedlasso.errors import FedLassoError
from fedlasso.estimators.shared import FederatedEstimator
from fedlasso.families import Family
from fedlasso.families.cox import Cox
from fedlasso.federation import Federation
from fedlasso.fitting.examination.measures import find_concordance
from fedlasso.models import ModelDocument
from fedlasso.models.document import Baselines
from fedlasso.numerics import Array
from fedlasso.sites import BaselineAt, Viewed
from fedlasso.tables import Schema


@dataclass(eq=False, repr=False)
class FederatedCoxLasso(FederatedEstimator):
    """Sparse Cox regression of survival times across sites that keep their records.

    Every site has its own baseline hazard, so there is no intercept and no site effect. Parameters
    are otherwise those of `FederatedLasso`, without ``site_weights``; the goals are as in
    `FederatedLogisticLasso`.

    Parameters
    ----------
    ties : {"efron", "breslow"}
        How tied event times are treated.
    fit_baseline_model : bool
        Whether to request each site's baseline hazard at the times of all events. It discloses when
        a site had events, so it requires the rows in this process.

    Attributes
    ----------
    coef_ : log hazard ratios, on the original scale
    event_times_, baselines_ : event times and each site's cumulative baseline hazard at them, by
        Breslow's estimator, if requested
    columns_, schema_, certificate_, ledger_, penalty_, model_, trust_ : as in `FederatedLasso`

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

    def predict(self, X: Any, offset: Any = None, s: float | str | None = None) -> Array:
        """Return log hazard ratios to a row at the mean of all columns; larger means earlier."""
        return self._score(X, offset, s)

    def predict_survival_function(self, X: Any, site: str, offset: Any = None) -> Array:
        """Return survival probabilities (rows, `event_times_`), by the baseline of `site`."""
        check_is_fitted(self)
        baselines: dict[str, Array] = getattr(self, "baselines_", {})
        if not baselines:
            raise FedLassoError("no baseline hazard was fitted; fit with fit_baseline_model=True")
        if str(site) not in baselines:
            raise FedLassoError(f"no site is called {site!r}; sites are {', '.join(baselines)}")
        with np.errstate(over="ignore"):
            risk = np.exp(self._score(X, offset))
        return np.asarray(np.exp(-np.outer(risk, baselines[str(site)])))

    def score(self, X: Any, y: Any, offset: Any = None) -> float:
        """Return the concordance index: how often the row at higher risk has its event first."""
        times, events = read_survival(y)
        return find_concordance(times, events, self.predict(X, offset))

    def _check(self, X: Any, y: Any) -> tuple[Any, dict[str, Array]]:
        if y is None:
            raise ValueError("y is None; give each row's event (0 or 1) and time")
        X = self._check_table(X)
        times, events = read_survival(y)
        if len(times) != X.shape[0]:
            raise FedLassoError(f"y has {len(times)} rows but X has {X.shape[0]}; give one each")
        return X, {"time": times, "event": events.astype(np.float64)}

    def _accept(self, federation: Federation) -> None:
        if self.fit_baseline_model:
            raise FedLassoError("fit_baseline_model requires rows in this process; omit it")
        super()._accept(federation)

    def _finish(self, federation: Federation, y: Any) -> None:
        if self.fit_baseline_model:
            times, events = read_survival(y)
            self.event_times_ = np.unique(times[events])
            view = Viewed(federation, self.model_.view)
            request = BaselineAt(self.model_.fit.coefficients, self.event_times_)
            self.baselines_ = {reply.site: reply.hazard for reply in view.ask(request)}

    def _to_document(self, target: str | None = None) -> ModelDocument:
        document = super()._to_document(target)
        if not self.fit_baseline_model:
            return document
        hazards = {site: tuple(own.tolist()) for site, own in self.baselines_.items()}
        return replace(document, baselines=Baselines(tuple(self.event_times_.tolist()), hazards))

    def _restore_response(self, schema: Schema) -> None:
        assert self._stored is not None
        if (found := self._stored.baselines) is not None:
            self.fit_baseline_model = True
            self.event_times_ = np.array(found.times)
            self.baselines_ = {site: np.array(own) for site, own in found.hazards.items()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def read_survival(y: Any) -> tuple[Array, Any]:
    """Return times and event indicators, from a structured array or two columns."""
    table = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if table.dtype.names is not None and len(table.dtype.names) == 2:
        columns = [table[name] for name in table.dtype.names]
    elif table.ndim == 2 and table.shape[1] == 2:
        columns = [table[:, 0], table[:, 1]]
    else:
        raise FedLassoError("y must hold event and time, in two columns or two structured fields")
    try:
        event, times = (np.asarray(column, dtype=np.float64) for column in columns)
    except (TypeError, ValueError):
        raise FedLassoError("y is not numeric; give event (0 or 1) and time") from None
    if not np.isin(event, (0, 1)).all():
        raise FedLassoError("the first column of y must be the event, 0 or 1, the second the time")
    if bad := int((~(np.isfinite(times) & (times >= 0))).sum()):
        raise FedLassoError(f"times are negative, missing or infinite in {bad} rows; correct them")
    return times, event == 1
