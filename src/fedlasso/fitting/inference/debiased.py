"""How sure single coefficients are, worked out from a fit and from sums over sites around it.

Everything comes from sums over all sites: second derivatives and the gradient of the loss at the
Lasso, which tell how likely each column is to have an effect; and, for columns that are asked
about, one direction per column and two numbers per direction and site. Standard errors are those of
the model, with the variance that its residuals have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from fedlasso.errors import CannotFit, FedLassoError
from fedlasso.families import family_of
from fedlasso.federation import Federation
from fedlasso.fitting.inference.estimates import Effects, Estimates
from fedlasso.fitting.local_penalty import fix_penalty
from fedlasso.numerics import Array, Penalty, one_thread
from fedlasso.numerics.debiasing import find_directions, take_out
from fedlasso.numerics.moments import Normal
from fedlasso.numerics.spike_slab import Posterior, sample_posterior
from fedlasso.numerics.triangles import count_packed, unpack
from fedlasso.procedures import Problem
from fedlasso.sites import CurvatureAt, PartAt, SiteSlopesAlong, SlopesAlong

# How closely directions follow one column alone.
STRENGTH = 0.4
# Runs of draws that tell how likely columns are: one alone may stay with some of the columns that
# stand for one another.
RUNS = 3
TAIL = 0.995
# Steps to expected effects are halved at most so many times.
HALVINGS = 6
# Bytes of second derivatives that each site may send.
MOST_BYTES = 64 << 20
# Directions that one question looks along.
SIDE_BY_SIDE = 200
# Curvature along a direction, as a share of what a site's rows would have on average, without which
# its own estimate is left out.
LEAST = 0.1


def count_curvature(p: int) -> int:
    """Return how many numbers the second derivatives of p columns are."""
    return count_packed(p)


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
    active : how many columns follow the rows' noise there
    noise_inflation : how many times as much noise rows are taken to have as they have on average
    """

    federation: Federation
    problem: Problem
    b: Array
    H: Array
    slopes: Array
    loss: float
    active: float
    noise_inflation: float = 1.0

    @classmethod
    def at(
        cls, federation: Federation, penalty: Penalty, b: Array, noise_inflation: float = 1.0
    ) -> Start:
        """Ask for the gradient and the second derivatives at a fit."""
        problem = fix_penalty(federation, penalty)
        H = _ask_curvature(federation, problem, b)
        part = federation.total(PartAt(b, np.arange(0)))
        slopes = part.gradient / problem.m
        active = float(np.count_nonzero(b))
        return cls(federation, problem, b, H, slopes, part.loss, active, noise_inflation)

    def move(self, effects: Effects) -> Start:
        """Ask for the gradient at the expected effects; second derivatives are taken to be alike.

        Where the loss is far above what they let expect, a shorter step is taken.
        """
        step = self.expect(effects) - self.b
        for _ in range(HALVINGS):
            foreseen = self.problem.m * float(step @ (self.slopes + self.H @ step / 2))
            part = self.federation.total(PartAt(self.b + step, np.arange(0)))
            if part.loss - self.loss <= max(2 * foreseen, foreseen / 2):
                return replace(
                    self,
                    b=self.b + step,
                    slopes=part.gradient / self.problem.m,
                    loss=part.loss,
                    active=float(effects.chances.sum()),
                )
            step = step / 2
        return self

    def renew(self) -> Start:
        """Ask for the second derivatives where this one has moved to."""
        return replace(self, H=_ask_curvature(self.federation, self.problem, self.b))

    def expect(self, effects: Effects) -> Array:
        """Return the coefficients that effects leave to be expected.

        Columns that pay nothing have those that are best beside the expected effects.
        """
        kept = np.flatnonzero(self.problem.penalty.free(self.problem.p))
        b = effects.expected
        b[kept] = 0.0
        score = self.H @ (self.b - b) - self.slopes
        b[kept] = np.linalg.lstsq(self.H[np.ix_(kept, kept)], score[kept], rcond=None)[0]
        return b

    @one_thread()
    def find_effects(self, seed: int) -> Effects:
        """Tell how likely columns that pay a penalty are to have an effect; the others have none.

        The loss is taken to be the parabola that it is nearly, in which columns that pay nothing
        move along.
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
        # Noisier rows tell as much as fewer rows would.
        rows = max(round(self.problem.m / self.noise_inflation), 1)
        normal = Normal(H, own, variance, rows, np.zeros(count + 1), np.ones(count), count)
        runs = [
            sample_posterior(
                normal, count, self.b[others], (seed, run), noise=noise, nonlocal_prior=True
            )
            for run in range(RUNS)
        ]
        found = Posterior.average(runs)
        whole = np.zeros((3, p))
        whole[:, others] = found.probabilities, *found.sizes
        return Effects(*whole)

    def look(
        self,
        columns: NDArray[np.int64],
        tests: int = 0,
        *,
        strength: float = STRENGTH,
        other: Array | None = None,
        by_site: bool = False,
    ) -> Estimates:
        """Estimate some coefficients without the Lasso's bias.

        What is left of other columns' errors depends on the model that estimates start from. Where
        another model is given, estimates are halfway between those from either, and half of the
        difference adds to the errors.

        Parameters
        ----------
        columns : places of the columns, increasing
        tests : how many columns might have been looked at; those given, if none is said
        strength : how closely directions follow one column alone
        other : another model to start from
        by_site : ask for sites' own estimates too
        """
        tests = tests or columns.size
        parts = np.array_split(columns, max(-(-columns.size // SIDE_BY_SIDE), 1))
        found = [self._look(own, tests, strength, other, by_site) for own in parts]
        return found[0] if len(found) == 1 else Estimates.join(found)

    def attenuation(self, effects: Effects) -> float:
        """How many times smaller effects appear than they are, because others are not known."""
        return family_of(self.problem.loss).attenuation(effects.variance)

    @property
    def dispersion(self) -> float:
        """How much responses vary, as a share of what the loss takes for granted.

        Of least squares it is the variance of the noise. The family bounds it.
        """
        low, high = family_of(self.problem.loss).dispersion
        return low if low == high else max(self.noise_inflation * 2 * self.loss / self._left, low)

    @property
    def _left(self) -> float:
        """Rows beyond those whose noise the fit has followed, one for each of its columns."""
        if self.problem.m - self.active < 2:
            raise CannotFit(
                f"{self.problem.m} rows and {self.active:.0f} active columns leave nothing to tell "
                "chance by; give more rows, or a larger penalty"
            )
        return self.problem.m - self.active

    def _look(
        self,
        columns: NDArray[np.int64],
        tests: int,
        strength: float,
        other: Array | None,
        by_site: bool,
    ) -> Estimates:
        """Estimate as many coefficients as one question asks about."""
        if not columns.size:
            return Estimates(columns, np.zeros(0), np.zeros(0), tests)
        rows = self.problem.m
        free = self.problem.penalty.free(self.problem.p)
        directions = find_directions(self.H, columns, free, rows, strength)
        total = self.federation.total(SlopesAlong(self.b, directions))
        values = self.b[columns] - total.slopes / rows
        # Few rows leave the spread itself to chance: as far out as it matters, scores have the
        # tails of Student's distribution.
        wider = float(stdtrit(self._left, TAIL) / ndtri(TAIL))
        errors = wider * np.sqrt(self.dispersion * total.curvatures) / rows
        if other is not None:
            step = other - self.b
            half = (step[columns] - directions.T @ (self.H @ step)) / 2
            values = values + half
            errors = np.sqrt(errors**2 + half**2)
        found = Estimates(columns, values, errors, tests)
        if not by_site or len(self.federation.sites) < 2:
            return found
        replies = self.federation.ask(SiteSlopesAlong(self.b, directions))
        slopes = np.array([reply.slopes for reply in replies])
        curvatures = np.array([reply.curvatures for reply in replies])
        # A site moves a coefficient by its slope over its share of the curvature of all rows.
        share = curvatures * rows / total.curvatures
        known = share > LEAST * np.array(self.problem.sizes)[:, None]
        steps = np.divide(slopes, share, out=np.zeros_like(share), where=known)
        variances = np.divide(
            self.dispersion * curvatures, share**2, out=np.zeros_like(share), where=known
        )
        return replace(found, site_values=self.b[columns] - steps, site_variances=variances)


def _ask_curvature(federation: Federation, problem: Problem, b: Array) -> Array:
    """Mean second derivatives of the loss, p by p."""
    p = problem.p
    numbers = count_curvature(p)
    if 8 * numbers > MOST_BYTES:
        raise FedLassoError(
            f"{p} columns have {numbers} second derivatives, {8e-6 * numbers:.0f} MB per site, "
            f"and {MOST_BYTES >> 20} MiB is the most; drop columns that cannot matter, or "
            "choose a goal without inference"
        )
    total = federation.total(CurvatureAt(b, np.arange(p), 0))
    return np.asarray(unpack(total.block, p, lower=True) / problem.m)
