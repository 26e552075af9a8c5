"""What a model card says beside the model: comparisons, stability, warnings.

All of it is asked through the federation and told apart from the fit's own cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError, Interrupted
from fedlasso.federation import Federation, Ledger
from fedlasso.fitting import ChoosePenalty, Explorer, Fit, Status, certify, fit, validate
from fedlasso.models.fitted import Model, Settings, tell_path
from fedlasso.numerics import Array, Certificate
from fedlasso.procedures import Averaging, Problem
from fedlasso.procedures.one_shot import LocalFit
from fedlasso.sites import FitAt, Viewed, halves, holdout, standardise

# Sites' own fits and averaging work on columns: beyond this many numbers they are left out.
LARGEST = 40_000_000
EPOCHS, ROUNDS = 5, 30
PATH_POINTS, PATH_UPLOADS = 15, 60
SUBSAMPLES, SUBSAMPLE_TOL, SUBSAMPLE_UPLOADS = 10, 1e-3, 40
STABLE = 0.6
# A site disagrees when the common model's error there is this many times the error over all sites.
DISAGREES = 1.5


@dataclass(frozen=True, eq=False)
class Rival:
    """A model to compare with."""

    name: str
    coefficients: Array
    sent: int


def examine(federation: Federation, model: Model) -> dict[str, Any]:
    """Comparison, stability and warnings as plain values."""
    ledger = Ledger(federation)
    warnings = _rows_warnings(model)
    lam = model.curve.lam if model.curve is not None else model.fit.problem.lam
    found: dict[str, Any] = {"comparison": None, "stability": None}
    if model.curve is None and lam > 0:
        found["path"] = _path_to(Viewed(ledger, model.view), model, lam)
    warnings += _disagreements(Viewed(ledger, model.view), model)
    if model.scaling.rows * len(model.columns) <= LARGEST and lam > 0:
        before = ledger.costs
        found["comparison"], alone = compare(ledger, model, lam)
        warnings += _conflicts(model, alone)
        found["stability"] = stability(ledger, model, lam)
        warnings += _unstable(found["stability"])
        spent = ledger.costs - before
        found["examination_sent"] = {site: spent.total(None, site).upload for site in spent.sites}
    else:
        found["not_compared"] = (
            "the penalty is zero"
            if lam == 0
            else "sites' own fits on so many numbers take too long"
        )
    return found | {"warnings": warnings}


def _path_to(view: Viewed, model: Model, lam: float) -> dict[str, Any] | None:
    """The Lasso path down to a penalty that was given."""
    explorer = Explorer(view, PATH_UPLOADS)
    if explorer.largest_penalty <= lam:
        return None
    grid = np.geomspace(explorer.largest_penalty, lam, PATH_POINTS)
    points = explorer.path(grid)
    B = np.column_stack([point.coefficients for point in points])
    return tell_path(grid[: len(points)], B, model.columns)


def compare(
    ledger: Ledger, model: Model, lam: float
) -> tuple[list[dict[str, Any]], dict[str, Array]]:
    """Averaging and every site alone, on rows that none of them has seen."""
    settings = model.settings
    view, scaling = _held_out_view(ledger, settings)
    best = fit(view, goal="objective", lam=lam, tol=1e-6)
    mine = model.costs.total(None, ledger.sites[0]).upload
    pooled = Rival("pooled Lasso on the training rows", best.coefficients, mine)
    # A model that has seen every row cannot be judged on some of them; the pooled Lasso can.
    seen = view.name != model.view
    rivals = [pooled] if seen else [Rival("this model", model.fit.coefficients, mine), pooled]
    before = ledger.costs
    averaged = fit(view, Averaging(epochs=EPOCHS), lam=lam, rounds=ROUNDS, certified=False)
    sent = (ledger.costs - before).total(None, ledger.sites[0]).upload
    name = f"averaging, {EPOCHS} local epochs, {ROUNDS} rounds"
    rivals.append(Rival(name, averaged.coefficients, sent))
    alone = {}
    for site in ledger.sites if len(ledger.sites) > 1 else ():
        try:
            alone[site] = fit_alone(view, site, lam)
        except Interrupted:
            raise
        except FedLassoError:
            continue
        rivals.append(Rival(f"{site} alone", alone[site], 0))
    models = np.column_stack([rival.coefficients for rival in rivals])
    errors = validate(view, models) if scaling.held_out[1] else None
    rows = []
    for i, rival in enumerate(rivals):
        above = share_above(certify(view, best.problem, rival.coefficients), best)
        rows.append(
            {
                "name": rival.name,
                "active": int((rival.coefficients != 0).sum()),
                "mse": None if errors is None else float(errors.mse[i]),
                "se": None if errors is None else float(errors.se[i]),
                "above": above if np.isfinite(above) else None,
                "sent": rival.sent,
            }
        )
    return rows, alone


def share_above(certificate: Certificate, best: Fit) -> float:
    """How much of the pooled Lasso's objective lies between it and a model's."""
    assert best.certificate is not None
    lowest = best.certificate.objective
    above = max(certificate.objective - lowest, 0.0)
    return above / lowest if lowest > 0 else (0.0 if above == 0 else float("inf"))


def _held_out_view(ledger: Ledger, settings: Settings) -> Any:
    share = settings.validation if settings.cv is None else 1 / settings.cv
    split = "" if share is None else holdout(share, settings.seed)
    return standardise(ledger, split, centre=settings.intercept, scale=settings.standardise)


def fit_alone(view: Federation, site: str, lam: float) -> Array:
    """One site's own Lasso, at the penalty its own held-out rows choose, else at the common one."""
    try:
        (choice,) = view.ask(ChoosePenalty(to=(site,)))
        own = choice.lam
    except Interrupted:
        raise
    except FedLassoError:
        own = lam
    (reply,) = view.ask(LocalFit(own, to=(site,)))
    return np.ascontiguousarray(reply.values[:, 0])


def stability(ledger: Ledger, model: Model, lam: float) -> list[dict[str, Any]]:
    """How often random halves of every site's rows select each column (Meinshausen, Buhlmann)."""
    settings = model.settings
    counts = np.zeros(len(model.columns))
    for split in halves(SUBSAMPLES, settings.seed):
        view, _ = standardise(ledger, split, centre=settings.intercept, scale=settings.standardise)
        point = Explorer(view, SUBSAMPLE_UPLOADS).fit(lam, tol=SUBSAMPLE_TOL)
        counts += point.coefficients != 0
    chosen = model.fit.coefficients != 0
    shown = np.flatnonzero(chosen | (counts >= STABLE * SUBSAMPLES))
    return [
        {
            "name": model.columns[k],
            "selected": bool(chosen[k]),
            "share": float(counts[k] / SUBSAMPLES),
        }
        for k in sorted(shown, key=lambda k: (-counts[k], k))
    ]


def site_errors(view: Federation, b: Array, problem: Problem) -> dict[str, float]:
    """Mean squared error of a model on every site's training rows."""
    sums = view.ask(FitAt(b))
    pairs = zip(sums, problem.sizes, strict=True)
    return {s.site: s.residual_ss / m for s, m in pairs if m}


def _disagreements(view: Viewed, model: Model) -> list[str]:
    problem = replace(model.fit.problem)
    errors = site_errors(view, model.fit.coefficients, problem)
    pooled = sum(errors[s] * m for s, m in zip(view.sites, problem.sizes, strict=True) if m)
    pooled /= problem.m
    return [
        f"site {site} disagrees: the common model's error there is {error / pooled:.1f} times the "
        "error over all sites"
        for site, error in errors.items()
        if len(errors) > 1 and error > DISAGREES * pooled
    ]


def _conflicts(model: Model, alone: dict[str, Array]) -> list[str]:
    if len(alone) < 2:
        return []
    signs = np.sign(np.array(list(alone.values())))
    both = (signs > 0).any(axis=0) & (signs < 0).any(axis=0) & (model.fit.coefficients != 0)
    names = [model.columns[k] for k in np.flatnonzero(both)]
    if not names:
        return []
    return [f"sites disagree on the sign of {_some(names)} when each fits alone"]


def _unstable(stability: Sequence[dict[str, Any]]) -> list[str]:
    names = [row["name"] for row in stability if row["selected"] and row["share"] < STABLE]
    if not names:
        return []
    return [
        f"unstable: {_some(names)} {'is' if len(names) == 1 else 'are'} selected in fewer than "
        f"{STABLE:.0%} of {SUBSAMPLES} random halves of the rows"
    ]


def _rows_warnings(model: Model) -> list[str]:
    warnings = []
    certificate = model.fit.certificate
    if model.fit.status is Status.SHORT and certificate and certificate.relative_gap > 1e-6:
        warnings.append(f"not yet the pooled Lasso ({certificate}): give more uploads")
    active = int((model.fit.coefficients != 0).sum())
    if active and model.scaling.rows < 10 * active:
        warnings.append(
            f"few rows: {model.scaling.rows} training rows for {active} coefficients; "
            "expect other samples to select other columns"
        )
    small = [s for s, m in zip(model.costs.sites, model.fit.problem.sizes, strict=True) if m < 20]
    if small:
        warnings.append(f"small sites: {_some(small)} with fewer than 20 training rows")
    if model.constant:
        warnings.append(f"constant, so left out with coefficient 0: {_some(model.constant)}")
    return warnings


def _some(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
