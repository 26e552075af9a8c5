"""Cross-validation by gradients, where second moments are too many: a session on every split.

The Lasso, the adaptive Lasso and its least-squares refits are fitted on the training rows of all
splits, penalty by penalty, and judged on the rows that each has not seen. The chosen one is then
fitted to all rows. Sharing the directions of one split with the others was tried: a direction then
costs a vector from every fold, and a path took three times the uploads.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Federation, Ledger, metered
from fedlasso.federation.messages import add_up
from fedlasso.fitting.by_procedure import Status
from fedlasso.fitting.curved_session import PLAIN, CurvedSession, open_session
from fedlasso.fitting.families import SURE, average
from fedlasso.fitting.goals import (
    ADAPTIVE,
    PATIENCE,
    PATIENCE_SPARSE,
    REFIT_TOL,
    SMALLEST_RATIO,
    TOL,
    Goal,
    GoalFit,
)
from fedlasso.fitting.session import PathPoint, Session
from fedlasso.fitting.tuning import Curve, Rule, Validation, pool_errors
from fedlasso.numerics import L1, Array, PenaltyForm
from fedlasso.sites import HeldOutErrors, HeldOutSums, standardise

RATIO = 0.003
# The last fit, to all rows, is made as exact as uploads allow, up to this relative gap.
FINAL_TOL = 1e-6
# Vectors that standardising takes on every split, and gradients without which no path gets far.
SCALING = 4
FEWEST = 10
Fits = list[PathPoint]
LASSO = "Lasso"
REFITTED = "refitted adaptive Lasso"


def count_gradients(splits: int) -> int:
    """Return the fewest vectors of p numbers with which a path on every split is worth starting."""
    return splits * (SCALING + FEWEST)


@dataclass(frozen=True, eq=False)
class Family:
    """One family's fits on all splits along its penalties.

    Attributes
    ----------
    name : of the family
    penalties : strengths, before weights; those of the adaptive Lasso for its refits
    fits : for each penalty, the fits on all splits
    sums : for each penalty and split, sums of errors on the rows that the split holds out
    """

    name: str
    penalties: list[float]
    fits: list[Fits]
    sums: list[list[HeldOutSums]]

    @cached_property
    def validation(self) -> Validation:
        """Errors over the held-out rows of all splits."""
        rows = [_pool(fits, sums) for fits, sums in zip(self.fits, self.sums, strict=True)]
        return Validation(*(np.concatenate(v) for v in zip(*map(_parts, rows), strict=True)))

    def each(self, at: int) -> Array:
        """Mean errors on the held-out rows of every split, at one penalty."""
        return np.array([float(sums.errors[0] / sums.counts[0]) for sums in self.sums[at]])

    @property
    def rows(self) -> Array:
        """Held-out rows of every split."""
        return np.array([float(sums.counts[0]) for sums in self.sums[0]])


def _pool(fits: Fits, sums: list[HeldOutSums]) -> Validation:
    """Errors at one penalty, over the held-out rows of all splits."""
    pooled = pool_errors(add_up(tuple(sums)), np.array([np.mean([fit.active for fit in fits])]))
    if len(sums) == 1:
        return pooled
    # Errors that differ from fold to fold say how far their mean is off.
    rows = np.array([float(one.counts[0]) for one in sums])
    _, se = average(np.array([one.errors[0] for one in sums]) / rows, rows)
    return replace(pooled, se=np.array([se]))


def _parts(validation: Validation) -> tuple[Array, Array, Array]:
    return validation.error, validation.se, validation.active


class Splits:
    """Sessions on the training rows of all splits.

    Parameters
    ----------
    federation : the sites
    splits : names of the splits; each has its own means and scales, as `scaling` asks for, so no
        held-out row takes part in its own prediction
    uploads : vectors of p numbers that each site may send for all splits together

    Attributes
    ----------
    cut : whether uploads ended before the error was seen to rise
    """

    def __init__(
        self,
        federation: Federation,
        splits: Sequence[str],
        uploads: int,
        form: PenaltyForm = PLAIN,
        **scaling: bool,
    ) -> None:
        ledger = metered(federation)
        least = count_gradients(len(splits))
        if uploads < least:
            raise FedLassoError(
                f"uploads leave {uploads} vectors to choose the penalty on {len(splits)} splits, "
                f"and that takes {least} or more; give more uploads, fewer folds, or a penalty"
            )
        standardised = [standardise(ledger, split, **scaling) for split in splits]
        self._scaling = sum(found.vectors for _, found in standardised)
        self._each = (uploads - self._scaling) // len(splits)
        # Bounds are those of coefficients on the original scale.
        self.forms = [form.scaled(found.factors) for _, found in standardised]
        self.sessions: list[Session | CurvedSession] = [
            open_session(view, self._each, own)
            for (view, _), own in zip(standardised, self.forms, strict=True)
        ]
        self.cut = False

    @property
    def _plain(self) -> list[Session]:
        """The sessions, for families that only least squares has."""
        return [session for session in self.sessions if isinstance(session, Session)]

    @property
    def sent(self) -> int:
        """Vectors of p numbers that each site has sent."""
        return self._scaling + sum(session.spent for session in self.sessions)

    def lasso(self, reserve: float = 0.0) -> Family:
        """Walk down the penalties until the error has long been rising."""
        largest = max(session.largest_penalty for session in self.sessions)
        step = RATIO ** (1 / (self.sessions[0].path_penalties - 1))
        weights = [None] * len(self.sessions)
        fits = self._fit(largest, step, SMALLEST_RATIO, weights, int(reserve * self._each))
        return self._judge(LASSO, fits, PATIENCE)

    def adaptive(self, lasso: Family, at: int, goal: Goal) -> Family:
        """Walk down the penalties with weights from the Lasso at one penalty."""
        power, count, ratio = ADAPTIVE[goal]
        pairs = zip(self._plain, lasso.fits[at], strict=True)
        weights = [session.adaptive_weights(fit.coefficients, power) for session, fit in pairs]
        largest = max(
            session.grid(2, ratio, own)[0].lam
            for session, own in zip(self._plain, weights, strict=True)
        )
        step = ratio ** (1 / (count - 1))
        fits = self._fit(largest, step, ratio, weights, self._each // 5)
        return self._judge("adaptive Lasso", fits, PATIENCE_SPARSE)

    def refits(self, adaptive: Family) -> Family:
        """Least squares on the supports of the adaptive Lasso."""
        return self._judge(REFITTED, self._relax(adaptive), PATIENCE_SPARSE)

    def _relax(self, adaptive: Family) -> Iterator[tuple[float, Fits]]:
        for lam, fits in zip(adaptive.penalties, adaptive.fits, strict=True):
            pairs = zip(self._plain, fits, strict=True)
            relaxed = [session.relax(fit.coefficients, tol=REFIT_TOL) for session, fit in pairs]
            if not self._arrived(relaxed, REFIT_TOL):
                return
            yield lam, relaxed

    def _fit(
        self,
        lam: float,
        step: float,
        ratio: float,
        weights: Sequence[Array | None],
        reserve: int,
    ) -> Iterator[tuple[float, Fits]]:
        """Fit all splits at decreasing penalties, while uploads last."""
        smallest = ratio * lam
        starts: list[Array | None] = [None] * len(self.sessions)
        while True:
            fits = []
            for session, form, own, b in zip(
                self.sessions, self.forms, weights, starts, strict=True
            ):
                penalty = form.at(lam) if own is None else L1(lam, own)
                fits.append(session.fit(penalty, b, session.path_tol, reserve))
            if not self._arrived(fits, self.sessions[0].path_tol):
                self.cut = True
                return
            yield lam, fits
            if lam <= smallest:
                return
            starts = [fit.coefficients for fit in fits]
            lam = max(lam * step, smallest)

    def _arrived(self, fits: Fits, tol: float) -> bool:
        return all(fit.arrived(tol) for fit in fits)

    def _judge(self, name: str, fits: Iterator[tuple[float, Fits]], patience: int) -> Family:
        """Judge fits on held-out rows until the error has long been rising."""
        found = Family(name, [], [], [])
        errors: list[float] = []
        for lam, one in fits:
            sums = [
                session.ledger.total(HeldOutErrors(fit.coefficients[:, None], "penalty"))
                for session, fit in zip(self.sessions, one, strict=True)
            ]
            found.penalties.append(lam)
            found.fits.append(one)
            found.sums.append(sums)
            errors.append(float(_pool(one, sums).error[0]))
            if min(errors) < min(errors[-patience:]):
                break
        return found


def curve_of(lasso: Family, at: int, sent: int, cut: bool) -> Curve:
    """Return the Lasso's errors along its penalties, and its fits on the first split."""
    coefficients = np.column_stack([fits[0].coefficients for fits in lasso.fits])
    return Curve(np.array(lasso.penalties), coefficients, lasso.validation, at, sent, cut)


def search_penalties(
    federation: Federation,
    splits: Sequence[str],
    uploads: int,
    rule: Rule,
    form: PenaltyForm = PLAIN,
    **scaling: bool,
) -> Curve:
    """Choose the strength of a penalty by the error on held-out rows of one or more splits."""
    sessions = Splits(federation, splits, uploads, form, **scaling)
    lasso = sessions.lasso()
    if not lasso.penalties:
        raise FedLassoError(
            "no column pays a penalty, so none can be chosen; give one, which changes nothing"
        )
    return curve_of(lasso, lasso.validation.select(rule), sessions.sent, sessions.cut)


def fit_by_folds(
    ledger: Ledger,
    view: Federation,
    splits: Sequence[str],
    uploads: int,
    goal: Goal,
    rule: Rule,
    **scaling: bool,
) -> GoalFit:
    """Choose among families by cross-validation with gradients, and fit the choice to all rows.

    Parameters
    ----------
    ledger : the sites
    view : the same with all rows standardised
    splits : names of the folds
    uploads : vectors of p numbers that each site may send in all
    goal, rule : what the model is for, and how it is chosen among all families' candidates
    scaling : how the training rows of every split are standardised
    """
    before = ledger.costs
    last = uploads // (len(splits) + 1)
    sessions = Splits(ledger, splits, uploads - last, PLAIN, **scaling)
    lasso = sessions.lasso(reserve=0.5)
    cut = sessions.cut
    best = lasso.validation.select("min")
    families = [lasso]
    if lasso.validation.active[best] > 0:
        families.append(sessions.adaptive(lasso, best, goal))
        families.append(sessions.refits(families[-1]))
    candidates = [(family, at) for family in families for at in range(len(family.fits))]
    family, at = _choose(candidates, (lasso, best), rule)
    session = Session(view, uploads - sessions.sent)
    point = _fit_all(session, lasso.penalties[best], family, at, goal)
    arrived = point.arrived(TOL)
    validation = family.validation
    how = {"min": "the smallest error", "1se": "the sparsest within one standard error"}[rule]
    return GoalFit(
        goal=goal,
        problem=replace(session.problem, penalty=point.penalty),
        method=family.name,
        rounds=sum(one.spent for one in sessions.sessions) + session.spent,
        points=(point,),
        chosen=0,
        validation=Validation(*(part[[at]] for part in _parts(validation))),
        curve=curve_of(lasso, at if family is lasso else best, sessions.sent, cut),
        costs=ledger.costs - before,
        why=(
            f"goal {goal!r}: {family.name} with {point.active} active coefficients, {how} of "
            f"{len(candidates)} candidates on {len(splits)} folds, fitted to all rows"
        ),
        status=Status.CHOSEN if arrived and not cut else Status.CUT,
    )


def _choose(
    candidates: list[tuple[Family, int]], plain: tuple[Family, int], rule: Rule
) -> tuple[Family, int]:
    """The sparsest within one standard error, or the best, which must surely beat the Lasso."""
    errors = [float(family.validation.error[at]) for family, at in candidates]
    best = int(np.argmin(errors))
    family, at = candidates[best]
    if rule == "1se":
        limit = errors[best] + float(family.validation.se[at])
        near = [i for i, error in enumerate(errors) if error <= limit]

        def sparse(i: int) -> tuple[float, float]:
            other, place = candidates[i]
            return float(other.validation.active[place]), errors[i]

        return candidates[min(near, key=sparse)]
    lasso, place = plain
    error, se = average(family.each(at) - lasso.each(place), lasso.rows)
    return (family, at) if error < -SURE * se else plain


def _fit_all(session: Session, lam: float, family: Family, at: int, goal: Goal) -> PathPoint:
    """Fit the chosen candidate to all rows; an adaptive one takes its weights from the Lasso."""
    if family.name == LASSO:
        return session.fit(L1(family.penalties[at]), tol=FINAL_TOL)
    lasso = session.fit(L1(lam), tol=TOL)
    if not lasso.active:
        return lasso
    weights = session.adaptive_weights(lasso.coefficients, ADAPTIVE[goal][0])
    refits = family.name == REFITTED
    tol = TOL if refits else FINAL_TOL
    adaptive = session.fit(L1(family.penalties[at], weights), lasso.coefficients, tol)
    if refits and adaptive.active:
        return session.relax(adaptive.coefficients, tol=REFIT_TOL)
    return adaptive
