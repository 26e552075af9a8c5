r"""Cox's partial likelihood for survival times, with a separate baseline hazard at every site.

.. math:: f(\eta) = \sum_k d_k \log \sum_j c_{kj} e^{\eta_j} - \sum_{i \text{ event}} w_i \eta_i .

With Breslow's ties there is one term k per event time, d is the total weight of its events, and
c_kj is the weight w_j of every row at risk. With Efron's there is one term per event: of n events
at one time, term l = 0, ..., n - 1 gives the n events a fraction 1 - l/n of their weight, and d is
their mean weight.
"""

import math
from typing import ClassVar, Literal

import numpy as np
from scipy.special import xlogy

from fedlasso.numerics.losses.loss import Loss
from fedlasso.numerics.machine import Array
from fedlasso.numerics.response import Places, Response, RiskSets

# Risks are summed in one unit unless they differ by more than this power of e.
SPAN = 300.0


class CoxLoss(Loss):
    """Minus the log partial likelihood of Cox's model over the rows of one sample."""

    smoothness: ClassVar[float] = np.inf
    intercept: ClassVar[bool] = False
    survival: ClassVar[bool] = True
    wants: ClassVar[str] = "times, zero or more, and whether each ended in an event"

    def __init__(self, ties: Literal["efron", "breslow"] = "efron") -> None:
        self.ties = ties
        self.name = "cox" if ties == "efron" else "cox with Breslow ties"  # type: ignore[misc]

    def values(self, eta: Array, rows: Response) -> Array:
        terms = _Terms(eta, rows, self.ties)
        sets = terms.sets
        # The cost of the events at one time is divided by their weights.
        shared = np.bincount(terms.group, terms.mass * terms.log_risk, minlength=sets.size)
        each = np.zeros(len(eta))
        mean = shared / sets.masses
        each[sets.deaths] = terms.w[sets.deaths] * (mean[sets.death_group] - terms.eta[sets.deaths])
        return terms.unsort(each)

    def slopes(self, eta: Array, rows: Response) -> Array:
        terms = _Terms(eta, rows, self.ties)
        return terms.unsort(terms.expected - terms.w * terms.dead)

    def curve(self, eta: Array, rows: Response, V: Array) -> Array:
        terms = _Terms(eta, rows, self.ties)
        v = V[terms.sets.order]
        mean = terms.means(v)
        spread = terms.expected * v.T - terms.gather(mean).T
        return np.asarray(terms.unsort(spread.T))

    def row_curvature(self, eta: Array, rows: Response) -> Array:
        # The Hessian is diag(expected) minus a positive semidefinite matrix.
        terms = _Terms(eta, rows, self.ties)
        return terms.unsort(terms.expected)

    def slope_terms(self, eta: Array, rows: Response, V: Array) -> Array:
        # Rows at risk share the terms of an event, so that rows' parts are score residuals (Lin and
        # Wei 1989) instead of slopes times V.
        terms = _Terms(eta, rows, self.ties)
        sets = terms.sets
        means = np.zeros((sets.size, V.shape[1]))
        np.add.at(means, terms.group, terms.means(V[sets.order]))
        means /= np.bincount(terms.group, minlength=sets.size)[:, None]
        parts = np.zeros_like(V)
        deaths = sets.order[sets.deaths]
        parts[deaths] = rows.weights[deaths, None] * (V[deaths] - means[sets.death_group])
        return self.curve(eta, rows, V) - parts

    def dual(self, eta: Array, rows: Response, scale: float) -> float:
        terms = _Terms(eta, rows, self.ties)
        sets = terms.sets
        # The scaled slopes are those of mixtures q of the risk distribution and the events.
        entropy = xlogy(scale, scale) + scale * (terms.means(terms.eta) - terms.log_risk)
        if self.ties == "efron":
            term, death = sets.pairs
        else:
            term = sets.death_group
            death = np.arange(len(sets.deaths))
        row = sets.deaths[death]
        log_ratio = terms.eta[row] - terms.log_risk[term]
        c = terms.w[row] * (1 - terms.discount[term])
        p = c * np.exp(log_ratio)
        own = terms.w[row] / sets.masses[terms.group[term]]
        q = scale * p + (1 - scale) * own
        beyond = xlogy(q, q / c) - p * (xlogy(scale, scale) + scale * log_ratio)
        np.add.at(entropy, term, beyond)
        slopes = scale * (terms.expected - terms.w * terms.dead)
        given = float(slopes @ rows.offset[sets.order])
        return given - float(terms.mass @ entropy)

    def mean(self, eta: Array) -> Array:
        """Return the risk relative to a linear predictor of zero."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(eta))

    def disclosed_response(self, y: Array) -> Array:
        return np.asarray(~np.signbit(y), dtype=np.float64)

    def varies(self, total: float, weight: float) -> bool:
        return total > 0

    def slope_size(self, rows: float, y_norm: float) -> float:
        # Expected events of all rows sum to the observed ones.
        return float(np.sqrt(rows) + rows)


class _Terms:
    """The terms of the partial likelihood at one linear predictor, rows ordered by time."""

    def __init__(self, eta: Array, rows: Response, ties: str) -> None:
        self.sets: RiskSets = rows.risk_sets
        sets = self.sets
        self.eta = eta[sets.order]
        self.w = rows.weights[sets.order]
        self.dead = np.zeros(len(eta))
        self.dead[sets.deaths] = 1.0
        log_w = np.log(self.w) + self.eta
        log_all = np.logaddexp.accumulate(log_w[::-1])[::-1][sets.start]
        if ties == "efron":
            self.group: Places = np.repeat(np.arange(sets.size), sets.counts)
            first = np.repeat(np.cumsum(sets.counts) - sets.counts, sets.counts)
            rank = np.arange(len(self.group)) - first
            self.discount: Array = rank / sets.counts[self.group]
            self.mass: Array = (sets.masses / sets.counts)[self.group]
        else:
            self.group = np.arange(sets.size)
            self.discount = np.zeros(sets.size)
            self.mass = sets.masses
        # The events' fraction of the total risk.
        part = np.exp(log_w[sets.deaths] - log_all[sets.death_group])
        fraction = np.bincount(sets.death_group, part, minlength=sets.size)
        self.left = 1 - self.discount * np.minimum(fraction, 1.0)[self.group]
        self.log_risk: Array = log_all[self.group] + np.log(self.left)
        self._log_all = log_all
        self._log_w = log_w

    def unsort(self, v: Array) -> Array:
        """Return numbers ordered by time in the order of the rows."""
        out = np.empty_like(v)
        out[self.sets.order] = v
        return out

    @property
    def expected(self) -> Array:
        """The expected weight of events of each row."""
        return self.gather(np.ones(len(self.mass)))

    def gather(self, per_term: Array) -> Array:
        """Return for each row the sum over terms of mass * (its fraction of the risk) * number.

        The terms are those up to a row's own time, in which events have Efron's discount.
        `per_term` has one number per term, or a row of them.
        """
        sets = self.sets
        out = np.zeros((len(self.eta), math.prod(per_term.shape[1:])))
        if sets.size:
            wide = per_term.reshape(len(self.mass), out.shape[1])
            v = (self.mass * (wide.T / self.left)).T
            first = np.searchsorted(self.group, np.arange(sets.size))
            running = sum_in_units(np.add.reduceat(v, first), -self._log_all, -self._log_all)
            less = np.add.reduceat((self.discount * v.T).T, first)
            # Rows before the first event have no term.
            own = np.arange(sets.start[0], len(self.eta))
            group = sets.group[own]
            part = np.exp(self._log_w[own] - self._log_all[group])
            out[own] = part[:, None] * (running[group] - self.dead[own, None] * less[group])
        return out.reshape(len(self.eta), *per_term.shape[1:])

    def means(self, v: Array) -> Array:
        """Return for each term the risk-weighted mean of v over the rows at risk."""
        sets = self.sets
        wide = np.ascontiguousarray(v).reshape(len(self.eta), math.prod(v.shape[1:]))
        if not sets.size:
            return np.zeros((0, *v.shape[1:]))
        # The last rows first: the unit is the largest risk so far.
        log_w = self._log_w[::-1]
        unit = np.maximum.accumulate(log_w)
        row = len(log_w) - 1 - sets.start
        scale = np.exp(unit[row] - self._log_all)
        at_risk = scale[:, None] * sum_in_units(wide[::-1], log_w, unit)[row]
        part = np.exp(self._log_w[sets.deaths] - self._log_all[sets.death_group])
        own = np.add.reduceat(
            part[:, None] * wide[sets.deaths], np.cumsum(sets.counts) - sets.counts
        )
        less = (self.discount * own[self.group].T).T
        out = ((at_risk[self.group] - less).T / self.left).T
        return np.asarray(out.reshape(len(self.mass), *v.shape[1:]))


def sum_in_units(v: Array, logs: Array, units: Array) -> Array:
    """Return running sums of exp(logs) v, the one up to row i divided by exp(units[i]).

    Units do not decrease, and no row's logarithm exceeds its unit. They may differ too much for one
    sum, so rows are summed in blocks of similar units.
    """
    out = np.empty(v.shape)
    before = np.zeros(v.shape[1])
    at = 0
    while at < len(v):
        base = units[at]
        end = at + max(int(np.searchsorted(units[at:], base + SPAN)), 1)
        part = slice(at, end)
        sums = before + np.cumsum(np.exp(logs[part] - base)[:, None] * v[part], axis=0)
        out[part] = np.exp(base - units[part])[:, None] * sums
        if end < len(v):
            before = out[end - 1] * np.exp(units[end - 1] - units[end])
        at = end
    return out
