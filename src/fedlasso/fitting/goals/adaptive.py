"""The adaptive Lasso by gradients, and least squares on the supports that it takes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from fedlasso.fitting.candidates import ADAPTIVE, REFITTED, adaptive_weights, relaxed
from fedlasso.fitting.evidence import PathPoint, SplitEvidence, Wanted
from fedlasso.fitting.paths import has_risen
from fedlasso.fitting.tuning import CandidateErrors, Fits, fit_down, judge_by_gradients
from fedlasso.fitting.validation import ACTIVE
from fedlasso.numerics import L1

# Certified relative gap of refits on a support.
REFIT_TOL = 0.005
# Sparse fits of a weak signal are noisy, so paths that start with a few large coefficients may go
# on for longer without lowering the error.
has_long_risen = partial(has_risen, patience=8)


@dataclass(frozen=True)
class AdaptivePath:
    """The adaptive path of a goal: power of the weights, penalties, and the last of them.

    `ratio` is the last penalty as a fraction of the first.
    """

    power: float
    count: int
    ratio: float


def weigh_adaptively(fits: Sequence[PathPoint], power: float) -> list[L1]:
    """Return the adaptive Lasso's penalties with weights from a Lasso on every split."""
    return [L1(1.0, adaptive_weights(fit.coefficients, power, ACTIVE)) for fit in fits]


def largest_of(evidence: SplitEvidence, forms: Sequence[L1]) -> float:
    """Return the smallest strength at which the fits on all splits are empty."""
    parts = zip(forms, evidence.parts.values(), strict=True)
    return max(form.largest(part.first_slopes) for form, part in parts)


def judge_adaptive(
    evidence: SplitEvidence, penalties: Iterable[float], forms: Sequence[L1], reserve: int
) -> CandidateErrors:
    """Walk down the penalties of the adaptive Lasso."""
    fits = fit_down(evidence, penalties, forms, reserve)
    return judge_by_gradients(evidence, ADAPTIVE, fits, has_long_risen)[0]


def judge_refits(evidence: SplitEvidence, adaptive: CandidateErrors) -> CandidateErrors:
    """Judge least squares on every support that the adaptive Lasso takes."""
    fits = _refit(evidence, adaptive)
    return judge_by_gradients(evidence, REFITTED, fits, has_long_risen)[0]


def _refit(evidence: SplitEvidence, adaptive: CandidateErrors) -> Fits:
    """Least squares on every support once, while uploads last."""
    seen: set[tuple[bytes, ...]] = set()
    for lam, fits in zip(adaptive.penalties.tolist(), adaptive.fits, strict=True):
        models = [fit.coefficients for fit in fits]
        supports = tuple((b != 0).tobytes() for b in models)
        if supports in seen or not any(fit.active for fit in fits):
            continue
        seen.add(supports)
        wanted = [
            Wanted(relaxed(b, part.largest_penalty), REFIT_TOL, rows, b)
            for (rows, part), b in zip(evidence.parts.items(), models, strict=True)
        ]
        points = evidence.fit_many(wanted)
        if all(point.arrived(REFIT_TOL) for point in points):
            yield lam, points
