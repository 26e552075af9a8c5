"""What a fitted estimator offers: its path, models at other penalties, tables and plots."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fedlasso.errors import FedLassoError
from fedlasso.estimators.path_tables import (
    CrossValidation,
    PenaltyModel,
    PenaltyPath,
    data_frame,
)
from fedlasso.families import Family
from fedlasso.federation import Costs, Ledger
from fedlasso.fitting import Model
from fedlasso.fitting.at_penalty import FINEST_GAP
from fedlasso.fitting.exact_path import ExactPath, fit_path, path_by_moments
from fedlasso.fitting.examination.assessment import Assessment
from fedlasso.fitting.examination.comparison import CoefficientPath
from fedlasso.fitting.examination.examine import Nested, assess_again, expect_error
from fedlasso.fitting.inference.infer import separate_sites
from fedlasso.models import ModelDocument, plots
from fedlasso.models.document import ErrorCurve, ExpectedError
from fedlasso.models.effects import Effect, effects_of, exponentiate
from fedlasso.models.text import describe_model
from fedlasso.numerics import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Columns of a coefficient table that inference adds, and the fields with their values.
INFERRED = {
    "debiased": "value",
    "std.error": "error",
    "statistic": "statistic",
    "conf.low": "low",
    "conf.high": "high",
    "p.value": "p_value",
    "adj.p.value": "adjusted",
    "probability": "probability",
}
ON_COEFFICIENTS = ("estimate", "debiased", "conf.low", "conf.high")
AGAIN = "fit again with penalty={penalty:.6g}, or use the estimator before it is stored"


@dataclass(eq=False)
class SitesAtHand:
    """The sites of a fit, and the model with its second moments; neither is ever stored."""

    ledger: Ledger
    model: Model
    after: Costs

    @property
    def costs(self) -> Costs:
        """What passed since the fit, and in the fit."""
        return self.model.costs + (self.ledger.costs - self.after)

    @cached_property
    def path(self) -> ExactPath:
        """The exact path, from second moments or by asking the sites again."""
        return path_by_moments(self.model) or fit_path(self.ledger, self.model)

    def fit_at(self, penalty: float) -> ExactPath:
        """Return the fit to all rows at one penalty."""
        return fit_path(self.ledger, self.model, [penalty])

    @cached_property
    def assessment(self) -> Assessment:
        """Performance on held-out rows, by asking the sites again."""
        effects = bool(self.model.settings.site_effects)
        ledger = separate_sites(self.ledger, effects, None)
        return assess_again(ledger, self.model, self.nested)

    @cached_property
    def nested(self) -> Nested | None:
        """Nested cross-validation, if there are second moments of folds."""
        return expect_error(self.model)


class FittedSurface(BaseEstimator):  # type: ignore[misc]
    """Paths, tables and plots of a fitted estimator; all of them read its model document."""

    family: ClassVar[Family]
    columns_: tuple[str, ...]
    coef_: Array
    intercept_: Any
    penalty_: float
    _sites: SitesAtHand | None
    _error: ExpectedError | None
    _path: ExactPath | None
    _found: dict[float, PenaltyModel]
    _scales: Array

    def _to_document(self, target: str | None = None) -> ModelDocument:
        raise NotImplementedError

    def _to_summary(self, target: str | None = None) -> ModelDocument:
        raise NotImplementedError

    @property
    def path_(self) -> PenaltyPath:
        """The pooled Lasso of all rows along the penalties, each certified.

        Where second moments chose, they give it. Otherwise the sites are asked again when it is
        first used, and `ledger_` counts that.
        """
        check_is_fitted(self)
        if self._path is None:
            if self._sites is None:
                what = "the path of a stored model needs its sites"
                raise FedLassoError(f"{what}: fit again, and use path_ before it is stored")
            self._path = self._sites.path
            self._charge()
        return PenaltyPath.of(tuple(self.columns_), self._path, self.family.intercept)

    @property
    def cv_(self) -> CrossValidation | None:
        """Held-out errors along the penalties; None if the penalty was given."""
        check_is_fitted(self)
        curve = self._to_document().curve
        return None if curve is None else CrossValidation.of(curve)

    @property
    def assessment_(self) -> Assessment:
        """Performance on rows that the assessed models were not fitted to.

        The sites are asked again when it is first used, and `ledger_` counts that.
        """
        check_is_fitted(self)
        stored = self._to_document().assessment
        if stored is not None:
            return stored
        if self._sites is None:
            raise FedLassoError("a stored model has no assessment; fit again, and use it there")
        found = self._sites.assessment
        self._charge()
        return found

    def model_at(self, s: float | str | None = None) -> PenaltyModel:
        """Return the model at a penalty, with its certified gap.

        Parameters
        ----------
        s : ``"min"`` and ``"1se"`` are glmnet's lambda.min and lambda.1se, a number is a penalty;
            None is the estimator's own model, which may be a related one, such as a relaxed Lasso.
            For all others it is the pooled Lasso (or elastic net) of all rows at that penalty,
            for which the sites are asked again if they have to be.
        """
        check_is_fitted(self)
        document = self._to_document()
        coef = np.asarray(self.coef_).ravel()
        intercept = float(np.ravel(self.intercept_)[0])
        own = PenaltyModel(self.penalty_, coef, intercept, document.certificate.relative_gap)
        if s is None:
            return own
        penalty = self._read_penalty(s)
        if _is_same(penalty, own.penalty) and _is_pooled(document):
            return own
        if penalty not in self._found:
            self._found[penalty] = self._fit_at(penalty)
        return self._found[penalty]

    def coef_at(self, s: float | str | None = None) -> Array:
        """Return the coefficients at a penalty, in the shape of `coef_`; see `model_at`."""
        return self.model_at(s).coef.reshape(np.shape(self.coef_))

    def intercept_at(self, s: float | str | None = None) -> float:
        """Return the intercept at a penalty; see `model_at`."""
        return self.model_at(s).intercept

    def _fit_at(self, penalty: float) -> PenaltyModel:
        path = self._path
        at = None if path is None else path.find(penalty)
        if path is None or at is None:
            if self._sites is None:
                raise FedLassoError(
                    f"a stored model has no coefficients at the penalty {penalty:.6g}; "
                    + AGAIN.format(penalty=penalty)
                )
            path = self._sites.fit_at(penalty)
            at = 0
            self._charge()
        return PenaltyModel(
            penalty,
            path.coefficients[:, at].copy(),
            float(path.intercepts[at]),
            float(path.gaps[at]),
        )

    def _read_penalty(self, s: float | str) -> float:
        """Return the penalty that `s` stands for."""
        if isinstance(s, str):
            names = {"min": "lambda_min", "lambda.min": "lambda_min"}
            names |= {"1se": "lambda_1se", "lambda.1se": "lambda_1se"}
            if s not in names:
                raise FedLassoError(f"s is {s!r}; use 'min', '1se' or a number")
            if (found := self.cv_) is None:
                raise FedLassoError(
                    f"s is {s!r}, but the penalty was given, so nothing was cross-validated; give "
                    "a number"
                )
            return float(getattr(found, names[s]))
        if not isinstance(s, Real) or isinstance(s, bool) or not 0 <= float(s) < np.inf:
            raise FedLassoError(f"s is {s!r}; use 'min', '1se' or a number, zero or more")
        return float(s)

    def _charge(self) -> None:
        """Add what the sites have sent since the fit."""
        assert self._sites is not None
        self.ledger_ = self._sites.costs

    def coefficient_table(self, s: float | str | None = None, exponentiate: bool = False) -> Any:
        """Return a data frame with one row per term, zeros included, in broom's names.

        `estimate` is the coefficient that predictions use, per unit of the column, `standardised`
        per standard deviation, and `ratio` the odds, rate or hazard ratio per unit. If inference
        was requested, `debiased` is the estimate without the Lasso's shrinkage (or the expected
        effect), and `std.error`, `statistic`, `conf.low` and `conf.high` belong to it;
        `adj.p.value` is adjusted by Holm's method, or for the false discovery rate.

        Parameters
        ----------
        s : the penalty, as in `coef_at`; inference is about the estimator's own model only
        exponentiate : return ratios instead of coefficients, also for the intervals
        """
        model = self.model_at(s)
        document = self._to_document()
        effects = effects_of(document) if s is None else []
        found = {effect.name: effect for effect in effects}
        rows = [
            _row(found.get(name, Effect(name)), name, float(value), float(value * scale))
            for name, value, scale in zip(self.columns_, model.coef, self._scales, strict=True)
        ]
        if self.family.intercept:
            rows.insert(0, {"term": "(Intercept)", "estimate": model.intercept})
        names = ["term", "estimate"]
        names += [name for name in ("standardised", *INFERRED) if any(name in row for row in rows)]
        table = {name: [row.get(name, np.nan) for row in rows] for name in names}
        if self.family.ratio is not None:
            table["ratio"] = [_ratio(value) for value in table["estimate"]]
        if exponentiate:
            for name in set(ON_COEFFICIENTS) & set(table):
                table[name] = [_ratio(value) for value in table[name]]
        return data_frame(table)

    def summary(self) -> str:
        """Return the model in a few lines, as `fedlasso inspect` prints it."""
        check_is_fitted(self)
        return describe_model(self._to_summary())

    def plot_cv(self, ax: Axes | None = None) -> Axes:
        """Plot the held-out error against the penalty on given axes or new ones; return them."""
        return plots.plot_cv(self._curve(), self.family.error_name, ax)

    def plot_path(self, ax: Axes | None = None) -> Axes:
        """Plot the coefficients per standard deviation of all rows against the penalty."""
        document = self._to_document()
        drawn = document.path
        if drawn is None or self._path is not None or self._sites is not None:
            path = self.path_
            B = (path.coefficients.T * self._scales).T
            drawn = CoefficientPath.largest(path.penalties, B, list(self.columns_))
        selected = [row.name for row in document.coefficients]
        return plots.plot_path(drawn, selected, document.path_penalty, ax)

    def plot_forest(self, ax: Axes | None = None, per_sd: bool = True) -> Axes:
        """Plot the estimates with their intervals, ratios on a log axis."""
        check_is_fitted(self)
        document = self._to_document()
        return plots.plot_forest(effects_of(document), document.ratio_name, per_sd, ax)

    def plot_calibration(self, ax: Axes | None = None) -> Axes:
        """Plot mean responses against mean predictions of held-out rows."""
        found = self.assessment_
        if not found.groups:
            raise FedLassoError(f"{self.family.responses} have no calibration plot")
        return plots.plot_calibration(found, ax)

    def plot_roc(self, ax: Axes | None = None) -> Axes:
        """Plot the ROC curve of held-out rows."""
        found = self.assessment_
        if not found.roc:
            raise FedLassoError(f"{self.family.responses} have no ROC curve")
        return plots.plot_roc(found, ax)

    def plot_survival(self, ax: Axes | None = None) -> Axes:
        """Plot Kaplan-Meier curves of held-out rows by thirds of the predicted risk."""
        found = self.assessment_
        if not found.curves:
            raise FedLassoError(f"{self.family.responses} have no survival curves")
        return plots.plot_survival(found, ax)

    def _curve(self) -> ErrorCurve:
        check_is_fitted(self)
        curve = self._to_document().curve
        if curve is None:
            raise FedLassoError("the penalty was given, so there is no cross-validation to plot")
        return curve

    def _get_fitted_attr_html(self, doc_link: str = "") -> dict[str, Any]:
        """Return nothing, as scikit-learn's list would evaluate attributes that ask the sites."""
        return {}

    def __dir__(self) -> list[str]:
        """Return all names; scikit-learn's list evaluates attributes, too."""
        return list(object.__dir__(self))

    def __getstate__(self) -> Any:
        # Sites hold records, and a stored model must not disclose more than itself.
        state = dict(super().__getstate__())
        if "_sites" in state:
            state["_sites"] = None
        return state


def _row(effect: Effect, name: str, value: float, standardised: float) -> dict[str, Any]:
    row: dict[str, Any] = {"term": name, "estimate": value, "standardised": standardised}
    if effect.estimate is not None:
        for own, field in INFERRED.items():
            if (number := getattr(effect.estimate, field)) is not None:
                row[own] = number
    return row


def _ratio(value: float) -> float:
    return exponentiate(value)[0]


def _is_same(penalty: float, other: float) -> bool:
    return bool(np.isclose(penalty, other, rtol=1e-12, atol=0))


def _is_pooled(document: ModelDocument) -> bool:
    """Whether a model is the pooled Lasso, or elastic net, of all rows at its penalty."""
    own = 1.0 if document.l1_ratio is None else document.l1_ratio
    settings = document.settings
    factors = settings.penalty_factors | dict.fromkeys(settings.keep, 0.0)
    usual = {name: factors.get(name, 1.0) for name in document.schema.encoded}
    return (
        document.penalty_factors in (None, usual)
        and own == settings.l1_ratio
        and document.certificate.relative_gap <= FINEST_GAP
        and (settings.validation == "given" or not any(document.rows.held_out))
    )
