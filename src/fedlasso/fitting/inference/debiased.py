"""Debiased estimates of single coefficients, from a fit and from sums over sites around it.

Second derivatives and the gradient of the loss at the Lasso give the probability of an effect of
each column. Each requested column takes one direction, and two numbers per direction and site.
Standard errors come from batches of rows, whatever the noise is like, and never from less variance
than a family has; with few rows they are those of the model, with the variance of its residuals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from fedlasso.errors import CannotFit, FedLassoError, Refused
from fedlasso.families import family_of
from fedlasso.federation import Federation, Request, total_together
from fedlasso.fitting.at_penalty import fit_any_loss, solve_squares
from fedlasso.fitting.dialogue import ask_once, drive_together
from fedlasso.fitting.inference.estimates import Effects, Estimates
from fedlasso.fitting.inference.few_rows import ask_rows
from fedlasso.fitting.inference.groups import find_groups, lower, spread_starts
from fedlasso.fitting.local_penalty import fix_penalty
from fedlasso.fitting.result import Fit
from fedlasso.numerics import Array, Penalty, one_thread
from fedlasso.numerics.debiasing import find_directions, take_out
from fedlasso.numerics.moments import Normal
from fedlasso.numerics.quadratic_lasso import solve_step
from fedlasso.numerics.spike_slab import Posterior, sample_posterior
from fedlasso.numerics.triangles import count_packed, unpack
from fedlasso.procedures import Problem
from fedlasso.procedures.newton import SOLVED
from fedlasso.procedures.newton_state import NewtonState
from fedlasso.sites import (
    CLEARLY,
    BatchSlopes,
    CurvatureAt,
    PartAt,
    SiteSlopesAlong,
    SlopesAlong,
)
from fedlasso.sites.inference import AlongSums, BatchSums

# How closely directions follow one column alone.
STRENGTH = 0.4
TAIL = 0.995
# Steps to expected effects are halved at most so many times.
STEP_HALVINGS = 6
# Bytes of second derivatives that each site may send.
MOST_BYTES = 64 << 20
# Fewest degrees of freedom of errors from batches: of rows, where the model's errors will do, and
# of clusters, where they do not.
FEWEST_BATCHES = 20.0
FEWEST_CLUSTERED = 5.0
# Least fraction of the noise that residuals of clusters are assumed to have.
LEAST_LEFT = 0.25
# A smaller probability of an effect is not lowered.
POSSIBLE = 0.05
# Directions of one question.
SIDE_BY_SIDE = 200
# A site has no estimate of its own if its curvature along a direction is below this fraction of the
# average of as many rows.
SMALLEST_CURVATURE = 0.1


@dataclass(frozen=True, eq=False)
class Start:
    """A fit that estimates start from.

    Attributes
    ----------
    federation, problem : the sites, and the pooled problem with the penalty of the fit
    b : the coefficients
    H : mean second derivatives of the loss there, p by p
    slopes : its mean gradient there
    loss : the loss there, over all rows
    active : degrees of freedom of the fit
    noise_inflation : assumed noise variance over that of the average row
    batches : degrees of freedom of errors from batches of rows; zero for errors of the model
    clusters : number of clusters that batches are made of, zero for rows
    few_rows : what a few rows far from the others do to the estimates, if there is a sign of such
    repeated : number of sites at which rows look repeated, unless clusters are named
    """

    federation: Federation
    problem: Problem
    b: Array
    H: Array
    slopes: Array
    loss: float
    active: float
    noise_inflation: float = 1.0
    batches: float = 0.0
    clusters: float = 0.0
    few_rows: str = ""
    repeated: int = 0

    @classmethod
    def at(
        cls,
        federation: Federation,
        penalty: Penalty,
        b: Array,
        noise_inflation: float = 1.0,
        sizes: Sequence[int] | None = None,
    ) -> Start:
        """Ask for the gradient and the second derivatives at a fit, in one round trip."""
        problem = fix_penalty(federation, penalty, sizes)
        H, part = _ask_curvature(federation, problem, b, PartAt(b, np.arange(0)))
        slopes = part.gradient / problem.m
        active = float(np.count_nonzero(b))
        return cls(federation, problem, b, H, slopes, part.loss, active, noise_inflation)

    def move(self, effects: Effects) -> Start:
        """Ask for the gradient at the expected effects; second derivatives are kept.

        If the loss is far above what those predict, a shorter step is taken.
        """
        step = self.expect(effects) - self.b
        for _ in range(STEP_HALVINGS):
            predicted = self.problem.m * float(step @ (self.slopes + self.H @ step / 2))
            part = self.federation.total(PartAt(self.b + step, np.arange(0)))
            if part.loss - self.loss <= max(2 * predicted, predicted / 2):
                return replace(
                    self,
                    b=self.b + step,
                    slopes=part.gradient / self.problem.m,
                    loss=part.loss,
                    active=float(effects.probabilities.sum()),
                )
            step = step / 2
        return self

    def renew(self) -> Start:
        """Ask for the second derivatives at the current coefficients."""
        (H,) = _ask_curvature(self.federation, self.problem, self.b)
        return replace(self, H=H)

    def expect(self, effects: Effects) -> Array:
        """Return the expected coefficients; unpenalised columns have those that fit best."""
        kept = np.flatnonzero(self.problem.penalty.free(self.problem.p))
        b = effects.expected
        b[kept] = 0.0
        score = self.H @ (self.b - b) - self.slopes
        b[kept] = np.linalg.lstsq(self.H[np.ix_(kept, kept)], score[kept], rcond=None)[0]
        return b

    @one_thread()
    def find_effects(self, seed: int) -> Effects:
        """Return probabilities and sizes of effects of the penalised columns; zero for others.

        The loss is approximated by a parabola, minimised over the unpenalised columns.
        """
        p = self.problem.p
        free = self.problem.penalty.free(p)
        kept = np.flatnonzero(free)
        others, out, H = take_out(self.H, kept)
        if not others.size:
            return Effects(np.zeros(p), np.zeros(p), np.zeros(p))
        score = self.H @ self.b - self.slopes
        own = score[others] - out.T @ score[kept]
        noise = None if self.problem.quadratic else self.dispersion
        if noise is None:
            moved = np.linalg.lstsq(self.H[np.ix_(kept, kept)], score[kept], rcond=None)[0]
            explained = self.b @ (score - self.slopes) - score[kept] @ moved
            variance = 2 * self.loss / self.problem.m + float(explained)
        else:
            variance = noise + float(self.b[others] @ H @ self.b[others])
        count = others.size
        # Noisier rows carry as much information as fewer rows would.
        rows = max(round(self.problem.m / self.noise_inflation), 1)
        normal = Normal(H, own, variance, rows, np.zeros(count + 1), np.ones(count), count)
        runs = [
            sample_posterior(normal, count, own, (seed, run), noise=noise, nonlocal_prior=True)
            for run, own in enumerate(spread_starts(H, self.b[others]))
        ]
        found = Posterior.average(runs)
        whole = np.zeros((4, p))
        lowered = lower(np.array([run.probabilities for run in runs]))
        whole[:, others] = found.probabilities, *found.sizes, lowered
        groups = tuple(group.move(others) for group in find_groups(H, runs))
        probabilities, means, spreads, lowered = whole
        sizes = np.sqrt(np.diagonal(H))
        scaled = np.divide(found.mean, sizes, out=np.zeros(count), where=sizes > 0)
        variance = found.spread - float(scaled @ H @ scaled)
        return Effects(probabilities, means, spreads, lowered, groups, variance)

    def refit(self, penalty: Penalty, uploads: int, tol: float) -> Fit:
        """Fit the columns without an infinite penalty, by their second derivatives.

        For least squares those are known. For other losses Newton starts at the minimum of the
        parabola, and requests them there.
        """
        p = self.problem.p
        problem = replace(self.problem, penalty=penalty)
        score = self.H @ self.b - self.slopes
        if self.problem.quadratic:
            return solve_squares(self.federation, problem, self.H, score, uploads, tol)
        thresholds = penalty.thresholds(p)
        on = np.flatnonzero(np.isfinite(thresholds))
        state = None
        if on.size:
            H = self.H[np.ix_(on, on)]
            zero, trial = np.zeros((2, p))
            trial[on] = solve_step(H, -score[on], thresholds[on], zero[on])[0]
            state = NewtonState(
                A=on,
                b=zero,
                slopes=zero,
                H=np.zeros((0, 0)),
                trial=trial,
                slow=True,
                aim=SOLVED,
                step="try",
            )
        return fit_any_loss(self.federation, penalty, uploads, tol, state)

    def look(
        self,
        columns: NDArray[np.int64],
        tests: int = 0,
        *,
        strength: float = STRENGTH,
        other: Array | None = None,
        effects: Effects | None = None,
        by_site: bool = False,
    ) -> Estimates:
        """Estimate some coefficients without the Lasso's bias.

        The remaining bias depends on the starting model. With an `other` one, half of the
        difference between the estimates from either adds to the errors, and for least squares
        estimates are halfway. For other losses the Lasso would pull them towards zero. With the
        posterior `effects`, so does the bias that uncertain coefficients leave. `tests` is the
        number of columns that might have been estimated, and `strength` how closely directions
        follow one column alone. Columns that are not identified have NaN. Sites' own estimates are
        added `by_site`, unless they refuse.
        """
        tests = tests or columns.size
        if columns.size > SIDE_BY_SIDE:
            options: dict[str, Any] = {"strength": strength, "other": other, "by_site": by_site}
            options["effects"] = effects
            parts = np.array_split(columns, -(-columns.size // SIDE_BY_SIDE))
            return Estimates.join([self.look(part, tests, **options) for part in parts])
        if not columns.size:
            return Estimates(columns, np.zeros(0), np.zeros(0), tests)
        rows = self.problem.m
        free = self.problem.penalty.free(self.problem.p)
        unknown = None if effects is None else rows * effects.variances / self.dispersion
        projections = find_directions(self.H, columns, free, rows, strength, unknown)
        directions = projections.directions
        total, batches, own = self._ask_along(directions, by_site)
        slopes, curvatures = total.slopes, total.curvatures
        scale = np.ones(columns.size)
        if not self.problem.quadratic:
            # Those of a model nearby may have been kept, and second derivatives be others here.
            scale = _compare(curvatures / rows, directions, self.H)
            slopes, curvatures = slopes / scale, curvatures / scale**2
        values = self.b[columns] - slopes / rows
        ratios = 1.0 if batches is None else self._find_ratios(batches)
        leftover = rows * projections.leftover
        variances = self.dispersion * (ratios * curvatures + leftover)
        # Few rows leave the variance uncertain: scores have the tails of Student's distribution.
        wider = float(stdtrit(self.batches or self._left, TAIL) / ndtri(TAIL))
        errors = wider * np.sqrt(variances) / rows
        if other is not None:
            step = other - self.b
            half = (step[columns] - projections.directions.T @ (self.H @ step)) / 2
            values = values + half if self.problem.quadratic else values
            errors = np.sqrt(errors**2 + half**2)
        lost = np.isin(columns, list(projections.combinations))
        values[lost] = errors[lost] = np.nan
        found = Estimates(columns, values, errors, tests, combinations=projections.combinations)
        if isinstance(own, Refused):
            return replace(found, own_refused=str(own))
        if own is None:
            return found
        # A site moves a coefficient by its slope over its part of the curvature of all rows.
        all_rows = np.where(lost, 1.0, curvatures)
        slopes = np.divide([reply.slopes for reply in own], scale)
        curvatures = np.divide([reply.curvatures for reply in own], scale**2)
        fractions = curvatures * rows / all_rows
        known = fractions > SMALLEST_CURVATURE * np.array(self.problem.sizes)[:, None]
        steps = np.divide(slopes, fractions, out=np.zeros_like(fractions), where=known)
        variances = self.dispersion * curvatures
        variances = np.divide(variances, fractions**2, out=np.zeros_like(fractions), where=known)
        return replace(found, site_values=self.b[columns] - steps, site_variances=variances)

    def _ask_along(
        self, directions: Array, by_site: bool
    ) -> tuple[AlongSums, BatchSums | None, tuple[AlongSums, ...] | Refused | None]:
        """Return sums along directions, over batches of rows and of each site, in one round trip.

        Sites may refuse their own sums.
        """
        ask = self.federation.prepare
        sums = [ask(SlopesAlong(self.b, directions))]
        sums += [ask(BatchSlopes(self.b, directions))] * bool(self.batches)
        asked = [ask_once(sums)]
        if by_site and len(self.federation.sites) > 1:
            asked.append(ask_once([ask(SiteSlopesAlong(self.b, directions), own=True)]))
        totals, *own = drive_together(asked)
        if isinstance(totals, Refused):
            raise totals
        batches = totals[1] if self.batches else None
        if not own:
            return totals[0], batches, None
        return totals[0], batches, own[0] if isinstance(own[0], Refused) else own[0][0]

    def with_batches(self, seed: int = 0) -> Start:
        """Ask for how many batches of rows there are; too few leave the model's errors in place."""
        sums, few_rows = ask_rows(self, seed)
        enough = sums.degrees >= (FEWEST_CLUSTERED if sums.clusters else FEWEST_BATCHES)
        return replace(
            self,
            batches=sums.degrees if enough else 0.0,
            clusters=sums.clusters,
            few_rows=few_rows if enough else "",
            repeated=round(sums.repeated),
        )

    def _find_ratios(self, sums: BatchSums) -> Array:
        """Return variances of slopes in batches over those of the model."""
        # Residuals are smaller than noise, by the fraction of independent rows that a fit uses up.
        left = 1 - self.active / (self.clusters or self.problem.m)
        of_model = self.dispersion * sums.curvatures * max(left, LEAST_LEFT)
        known = of_model > 0
        ratios = np.divide(sums.variances, of_model, np.ones(known.size), where=known)
        # Where a rare outcome hardly occurs, batches vary less than the family does.
        least = family_of(self.problem.loss).dispersion[0]
        return np.maximum(ratios, least / self.dispersion) if least else ratios

    def temper(self, effects: Effects) -> tuple[Effects, float]:
        """Lower the probabilities of columns whose slopes vary more than the model assumes.

        Also return the largest clear ratio of the two variances. Ratios below one are not used, and
        without clusters, only what is above one by a standard error.
        """
        mains = [group.main for group in effects.groups]
        likely = np.union1d(np.flatnonzero(effects.probabilities > POSSIBLE), mains).astype(
            np.int64
        )
        if not (self.batches and likely.size):
            return effects, 1.0
        free = self.problem.penalty.free(self.problem.p)
        parts = np.array_split(likely, -(-likely.size // SIDE_BY_SIDE))
        projected = (
            find_directions(self.H, part, free, self.problem.m, STRENGTH) for part in parts
        )
        questions = [BatchSlopes(self.b, each.directions) for each in projected]
        totals = total_together([(self.federation, question) for question in questions])
        ratios = np.hstack([self._find_ratios(sums) for sums in totals])
        unsure = np.sqrt(2 / self.batches)
        largest = float(ratios.max()) if ratios.max() > 1 + CLEARLY * unsure else 1.0
        ratios = np.maximum(ratios if self.clusters else ratios / (1 + unsure), 1.0)
        return effects.temper(likely, ratios), largest

    def attenuation(self, effects: Effects) -> float:
        """Return how many times smaller effects appear, because others are unknown."""
        return family_of(self.problem.loss).attenuation(effects.variance)

    @property
    def dispersion(self) -> float:
        """Variance of responses over that of the loss, within the bounds of the family.

        For least squares it is the variance of the noise.
        """
        low, high = family_of(self.problem.loss).dispersion
        return low if low == high else max(self.noise_inflation * 2 * self.loss / self._left, low)

    @property
    def _left(self) -> float:
        """Residual degrees of freedom."""
        if self.problem.m - self.active < 2:
            raise CannotFit(
                f"{self.problem.m} rows and {self.active:.0f} active columns leave no residual "
                "degrees of freedom; give more rows, or a larger penalty"
            )
        return self.problem.m - self.active


def _compare(curvatures: Array, directions: Array, H: Array) -> Array:
    """Return curvatures along directions over those in the metric H; one where these are zero."""
    there = np.einsum("ik,ik->k", directions, H @ directions)
    known = (there > 0) & (curvatures > 0)
    return np.asarray(np.divide(curvatures, there, out=np.ones(known.size), where=known))


def _ask_curvature(
    federation: Federation, problem: Problem, b: Array, *further: Request[Any]
) -> tuple[Any, ...]:
    """Return the mean second derivatives of the loss, p by p, and totals of further questions."""
    p = problem.p
    numbers = count_packed(p)
    if 8 * numbers > MOST_BYTES:
        raise FedLassoError(
            f"{p} columns have {numbers} second derivatives, {8e-6 * numbers:.0f} MB per site, "
            f"and {MOST_BYTES >> 20} MiB is the maximum; drop irrelevant columns, or choose a goal "
            "without inference"
        )
    questions = (CurvatureAt(b, np.arange(p), 0), *further)
    total, *others = total_together([(federation, question) for question in questions])
    return np.asarray(unpack(total.block, p, lower=True) / problem.m), *others
