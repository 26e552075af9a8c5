"""Before trusting averaging: what it does on these sites.

Averaging local fits has a limit of its own. How far that lies from the pooled Lasso grows with the
local epochs and with how unlike the sites are, and an average is active wherever any site is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Federation
from fedlasso.fitting import ACTIVE, Fit, Run, certify, when_still
from fedlasso.fitting.plan import GRADIENTS
from fedlasso.models.at_penalty import fit_pooled
from fedlasso.models.charts import Line, bar_chart, line_chart
from fedlasso.models.comparing import share_above
from fedlasso.models.fitted import fit_model
from fedlasso.models.page import bullets, percent, section, table, whole
from fedlasso.models.settings import Settings
from fedlasso.models.warning import some_of
from fedlasso.numerics import Array
from fedlasso.procedures import Averaging
from fedlasso.procedures.one_shot import LocalFit
from fedlasso.sites import Viewed, standardise

EPOCHS = (1, 2, 5, 10, 20)
# Averaging has settled when a round moves no coefficient by this share of the largest.
SETTLED = 1e-7
ROUNDS = 500


@dataclass(frozen=True, eq=False)
class Limit:
    """Where averaging ends with some local epochs, in rounds until nothing moved or the last.

    Its objective lies a share `above` the pooled Lasso's, which leaves `extra` active columns out.
    """

    epochs: int
    rounds: int
    above: float
    active: int
    extra: int


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What averaging does on these sites, at one penalty."""

    lam: float
    columns: tuple[str, ...]
    pooled: Array
    limits: tuple[Limit, ...]
    alone: dict[str, Array]

    @property
    def union(self) -> int:
        """Columns that at least one site selects: where a one-shot average is active."""
        return int(np.any([b != 0 for b in self.alone.values()], axis=0).sum())

    @property
    def lonely(self) -> dict[str, list[str]]:
        """Columns that one site alone selects, by site."""
        chosen = np.array([b != 0 for b in self.alone.values()])
        once = chosen.sum(axis=0) == 1
        return {
            site: [self.columns[k] for k in np.flatnonzero(row & once)]
            for site, row in zip(self.alone, chosen, strict=True)
        }

    def lines(self) -> list[str]:
        """The findings, in words."""
        first, *_, last = self.limits
        active = int((self.pooled != 0).sum())
        mine = ", ".join(f"{site} {int((b != 0).sum())}" for site, b in self.alone.items())
        lonely = self.lonely.items()
        return [
            f"penalty {self.lam:.4g}; the pooled Lasso has {active} active columns",
            f"limit of averaging: {percent(first.above)} above the best objective with "
            f"{_epochs(first.epochs)}, {percent(last.above)} with {last.epochs}",
            f"active columns of that limit: {first.active} with {_epochs(first.epochs)}, "
            f"{last.active} with {last.epochs}, of which {last.extra} the pooled Lasso leaves out",
            f"active at each site alone: {mine}; at any site: {self.union}",
            *(f"only {site} selects {some_of(names, 8)}" for site, names in lonely if names),
        ]


def diagnose(federation: Federation, settings: Settings) -> Diagnosis:
    """Measure averaging on a federation's own records."""
    if len(federation.sites) < 2:
        raise FedLassoError("one site has nothing to average; give at least two")
    lam = settings.penalty
    if lam is None:
        lam = fit_model(federation, replace(settings, goal="objective")).penalty
    if not lam > 0:
        raise FedLassoError(f"the penalty is {lam}; give one above zero")
    view, scaling = standardise(federation, "", **settings.scaling)
    best = fit_pooled(view, lam, settings.uploads or GRADIENTS, 1e-9)
    limits = tuple(_limit(view, best, epochs) for epochs in EPOCHS)
    alone = {
        reply.site: reply.values[:, 0] / max(rows, 1)
        for reply, rows in zip(view.ask(LocalFit(lam)), scaling.sizes, strict=True)
    }
    return Diagnosis(lam, federation.columns, best.coefficients, limits, alone)


def _limit(view: Viewed, best: Fit, epochs: int) -> Limit:
    pooled = best.coefficients
    run = Run(view, Averaging(epochs=epochs), best.problem)
    state = run.until(when_still(_still, ROUNDS))
    b = np.ascontiguousarray(run.models[:, 0])
    above = share_above(certify(view, best.problem, b), best)
    active = np.abs(b) > ACTIVE * float(np.abs(pooled).max(initial=1e-300))
    return Limit(epochs, state.round, above, int(active.sum()), int((active & (pooled == 0)).sum()))


def _still(before: Array, now: Array) -> bool:
    return float(np.abs(now - before).max()) <= SETTLED * float(np.abs(now).max(initial=0.0))


def draw_diagnosis(found: Diagnosis) -> str:
    """The same as a page with pictures."""
    limits = found.limits
    epochs = [float(limit.epochs) for limit in limits]
    gaps = [100 * max(limit.above, 1e-12) for limit in limits]
    pooled = float((found.pooled != 0).sum())
    averaging = Line(epochs, gaps, "averaging", 1, dots=True)
    moves = line_chart([averaging], "local epochs per round", "% above the best objective")
    lines = [
        Line(epochs, [float(limit.active) for limit in limits], "averaging", 1, dots=True),
        Line(epochs, [pooled] * len(epochs), "pooled", 0),
        Line(epochs, [float(found.union)] * len(epochs), "any site", 7),
    ]
    grows = line_chart(lines, "local epochs per round", "active columns", legend=True)
    counts = {site: len(names) for site, names in found.lonely.items()}
    lonely = bar_chart([(site, float(count), str(count)) for site, count in counts.items()])
    word = "At the common penalty; each would enter an average on the word of one site."
    if not any(counts.values()):
        lonely = ""
        word = "None: at the common penalty, each column that a site selects is another's as well."
    rows = [
        [_epochs(one.epochs), f"{one.rounds}", percent(one.above), f"{one.active}", f"{one.extra}"]
        for one in limits
    ]
    head = ["averaging with", "rounds", "above the best objective", "active"]
    limits_table = table([*head, "not in the pooled Lasso"], rows)
    title = "Can these sites be averaged?"
    ends = "Where averaging ends, however many rounds it is given."
    wherever = "An average is active wherever any site's fit is."
    body = (
        f"<h1>{title}</h1><div class='lead'>{bullets(found.lines())}</div>"
        + section("Local epochs move the limit", ends, moves)
        + section("Averaging grows the support", wherever, grows + limits_table)
        + section("Columns that one site alone selects", word, lonely)
    )
    return whole(title, body)


def _epochs(count: int) -> str:
    return f"{count} local epoch{'s' * (count != 1)}"
