"""Linear, logistic and Poisson regression as scikit-learn estimators."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, d2_tweedie_score, r2_score
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from fedlasso.errors import FedLassoError
from fedlasso.estimators.labels import choose_positive, name_classes, read_labels
from fedlasso.estimators.shared import WithIntercept
from fedlasso.estimators.table_rows import one_per_row
from fedlasso.families import Family
from fedlasso.families.binomial import Binomial
from fedlasso.families.linear import Linear
from fedlasso.families.poisson import Poisson
from fedlasso.federation import Federation
from fedlasso.numerics import Array
from fedlasso.tables import Schema


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
    penalty_factors : dict, optional
        Factors of the penalty, by name or number of the column, one for all others:
        ``{"age": 0.5}``.
    groups : list
        Columns that enter or leave the model together (group Lasso). An entry is one column, whose
        levels are then a group, or a list of columns: ``["ward", ("bmi", "bmi2")]``.
    l1_ratio : float
        Fraction of the L1 penalty, as in scikit-learn's ``ElasticNet``; the rest is ridge.
    bounds : dict, optional
        Lower and upper bounds of coefficients, per unit, by name or number of the column:
        ``{"age": (0, None), "dose": (-1, 2)}``. Zero must lie between them; None means no bound.
    fdr, level : float
        False discovery rate of the goal "discoveries", and coverage of intervals.
    intervals : list of str or int
        Columns that get confidence intervals in ``trust_.named``, whether selected or not;
        ``["selected"]`` for those that the model selects, in ``trust_.selected``.
    site_weights : {"equal", "variance"}, optional
        Weight rows equally at all sites, or by the inverse of their site's noise variance; by
        default the latter if inference is requested and the sites clearly differ.
    procedure, epochs : str and int, optional
        A name from ``fedlasso.REGISTRY``, run at the penalty instead of the goal's own procedure,
        and its local epochs per round.
    validation : float or "given", optional
        Hold out this fraction of every site's rows once, instead of cross-validation; "given" uses
        the validation samples of a federation's sites.
    cv : int, optional
        Number of folds; 10 by default, fewer if they cost too much.
    uploads : int, optional
        Maximum number of vectors of p numbers that each site sends in total. By default what the
        plan needs, within 64 MiB.
    round_trips : int, optional
        Maximum number of exchanges with the sites, each with one or more questions.
    rule : {"min", "1se"}, optional
        Choose the smallest held-out error, or the sparsest model within one standard error.
    tol : float
        Relative duality gap of a fit at one penalty.
    standardize, fit_intercept : bool
        Scale and centre the columns, by sums that sites send.
    site_effects : bool, optional
        Fit an intercept per site, which stays there; predictions use their mean over the rows. By
        default if inference is requested and the sites' mean responses clearly differ.
    seed : int
        Seed of every split.
    missing : {"refuse", "mean"}
        Refuse missing values, or replace them by the mean over all sites.
    na, categorical : lists
        For data frames: codes that mean a missing value, as ``[".", -999]``, and columns whose
        numbers are codes of levels. Text and categorical columns need no option. Levels are
        sorted, and the first is the reference; a dict ``{"ward": ["west", "east"]}`` gives another
        order.
    min_level : int
        Minimum rows of a text level at some site; rarer levels are pooled.

    Attributes
    ----------
    coef_, intercept_ : on the original scale
    columns_ : names of the coefficients; levels of text columns as ``ward=west``
    schema_ : types and levels of a data frame's columns; None for plain numbers
    certificate_ : distance to the best possible objective
    ledger_ : traffic between server and sites; ``ledger_.trips`` are the round trips
    penalty_ : the model's penalty, given or chosen; `certificate_` refers to it
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

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Return the fraction of variance explained, R^2."""
        return float(r2_score(y, self.predict(X, offset), sample_weight=sample_weight))


@dataclass(eq=False, repr=False)
class FederatedLogisticLasso(ClassifierMixin, WithIntercept):  # type: ignore[misc]
    """Sparse logistic regression of two classes across sites that keep their records.

    Parameters are those of `FederatedLasso`, without ``site_weights``. Cross-validation minimises
    the held-out deviance. The goals of prediction and selection differ only in the rule: selection
    takes the sparsest model within one standard error.

    Parameters
    ----------
    class_weight : dict or "balanced", optional
        Weights of the rows by class, as in scikit-learn's ``LogisticRegression``; they multiply
        those of `fit`. The classes are counted over all sites, which requires the rows in this
        process.
    positive : label, optional
        The class that is modelled. By default the text of an event (yes, true, case, dead, ..., or
        the opposite of no, control, alive, ...), else the last of the sorted labels.

    Attributes
    ----------
    classes_ : the two labels, sorted
    positive_ : the class that is modelled; coefficients and ratios are of its odds. It is
        ``classes_[1]``, unless `positive` or its text makes it ``classes_[0]``
    coef_, intercept_ : of the log-odds of `positive_`, on the original scale; `coef_` has one row
    columns_, schema_, certificate_, ledger_, penalty_, model_, trust_ : as in `FederatedLasso`

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from fedlasso import FederatedLogisticLasso
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> hospital = np.arange(len(y)) % 3
    >>> model = FederatedLogisticLasso(penalty=0.05).fit(X, y, sites=hospital)
    >>> model.predict_proba(X).shape, round(model.score(X, y), 2)
    ((569, 2), 0.96)
    """

    family: ClassVar[Family] = Binomial()

    _: KW_ONLY
    class_weight: Any = None
    positive: Any = None

    def decision_function(self, X: Any, offset: Any = None, s: float | str | None = None) -> Array:
        """Return the log-odds of the second of `classes_`, one per row; `s` as in `coef_at`.

        These are the log-odds that `coef_` gives, with the other sign if `positive_` is the first.
        """
        score = self._score(X, offset, s)
        return score if self._models_last else -score

    def predict_proba(self, X: Any, offset: Any = None, s: float | str | None = None) -> Array:
        """Return probabilities of shape (rows, 2), in the order of `classes_`."""
        yes = self.family.loss.mean(self._score(X, offset, s))
        columns = np.column_stack([1 - yes, yes])
        return columns if self._models_last else columns[:, ::-1]

    def predict(self, X: Any, offset: Any = None, s: float | str | None = None) -> Any:
        """Return the more probable class of every row."""
        second = self.decision_function(X, offset, s) > 0
        return self.classes_[second.astype(int)]

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Return the fraction of rows whose class is predicted."""
        return float(accuracy_score(y, self.predict(X, offset), sample_weight=sample_weight))

    def _check(self, X: Any, y: Any) -> tuple[Any, dict[str, Array]]:
        X, y = self._check_table(X, y)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        classes, places = np.unique(y, return_inverse=True)
        if kind != "binary":
            raise FedLassoError(
                "Only binary classification is supported. The type of the target is "
                f"{kind}, with {len(classes)} classes; fit one class against the others"
            )
        positive = classes[-1] if len(classes) < 2 else choose_positive(classes, self.positive)
        self._set_classes(classes, positive)
        return X, {"target": np.where(self._models_last, places, 1 - places).astype(np.float64)}

    def _set_classes(self, classes: Any, positive: Any) -> None:
        self.classes_ = classes
        self.positive_ = positive
        self._models_last = bool(classes[-1] == positive)

    @property
    def _coded(self) -> Any:
        """The labels that are 0 and 1 in the fit."""
        return self.classes_ if self._models_last else self.classes_[::-1]

    def _name_classes(self) -> tuple[str, ...]:
        return name_classes(self._coded)

    def _notices(self) -> list[str]:
        if self._models_last or self.positive is not None:
            return []
        zero, one = map(str, self._coded)
        return [f"notice: the model is of {one!r}, against {zero!r}; positive chooses the class"]

    def _weigh(self, response: dict[str, Array], sample_weight: Any) -> Any:
        if self.class_weight is None:
            return sample_weight
        labels = self._coded[response["target"].astype(int)]
        by_class = compute_sample_weight(self.class_weight, labels)
        if sample_weight is None:
            return by_class
        return by_class * one_per_row("sample_weight", sample_weight, len(labels))

    def _describe_constant(self, y: Array) -> str:
        return f"holds one class, {str(self.classes_[int(y[0])])!r}, in every row"

    def _accept(self, federation: Federation) -> None:
        if self.class_weight is not None:
            raise FedLassoError(
                "class_weight requires rows in this process; omit it, or give the sites a column "
                "of weights"
            )
        if self.positive is not None:
            raise FedLassoError(
                "positive requires rows in this process; omit it, since a federation's sites have "
                "coded the two classes as 0 and 1"
            )
        super()._accept(federation)
        self._set_classes(np.array([0, 1]), 1)

    def _restore_response(self, schema: Schema) -> None:
        labels = read_labels(schema.classes)
        self._set_classes(np.unique(labels), labels[1])
        self._finish(None, None)

    def _finish(self, federation: Federation | None, y: Any) -> None:
        self.coef_ = self.coef_[None, :]
        self.intercept_ = np.array([self.intercept_])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@dataclass(eq=False, repr=False)
class FederatedPoissonLasso(RegressorMixin, WithIntercept):  # type: ignore[misc]
    """Sparse Poisson regression of counts across sites that keep their records.

    Parameters are those of `FederatedLasso`, without ``site_weights``; the goals are as in
    `FederatedLogisticLasso`.

    Attributes
    ----------
    coef_, intercept_ : of the log rate, on the original scale
    columns_, schema_, certificate_, ledger_, penalty_, model_, trust_ : as in `FederatedLasso`

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import FederatedPoissonLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 5))
    >>> visits = rng.poisson(np.exp(0.5 + 0.8 * X[:, 0]))
    >>> model = FederatedPoissonLasso(penalty=0.3).fit(X, visits, sites=np.arange(300) % 3)
    >>> np.flatnonzero(model.coef_), bool((model.predict(X) > 0).all())
    (array([0]), True)
    """

    family: ClassVar[Family] = Poisson()

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Return the fraction of deviance explained, D^2."""
        rates = self.predict(X, offset)
        return float(d2_tweedie_score(y, rates, sample_weight=sample_weight, power=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
