r"""One replicate's data, drawn from a scenario, with linear or other responses.

For responses that are not linear, the coefficients of a scenario are multiplied by one number c, so
that the linear predictor

.. math:: \eta = c X \beta^*, \qquad c^2 = \text{snr} \cdot s^2 / \operatorname{Var}(X \beta^*),

has the variance snr s^2 over the rows of all sites. The family's `unit` s is the spread of a
response's random part. Predictors, their correlations and scales are the scenario's; its noise
multipliers do not apply. There is no intercept, as in the paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.families import DEFAULT, FAMILIES, find_family
from fedlasso.numerics import DEFAULT_LOSS, Array, LeastSquares
from fedlasso.sites import Site
from fedlasso.study.scenario import Scenario, split
from fedlasso.study.study_designs import autoregress, find_design

SampleArrays = tuple[Array, Array]
# Standard deviation of each family's linear predictor at a signal-to-noise ratio of one.
UNITS = {name: own.unit for name, own in FAMILIES.items() if own.unit is not None}


@dataclass(frozen=True, eq=False)
class ReplicateData:
    """One replicate's samples, one entry per site, and the true coefficients."""

    truth: Array
    training: tuple[SampleArrays, ...]
    penalty_validation: tuple[SampleArrays, ...]
    candidate_validation: tuple[SampleArrays, ...]
    test: tuple[SampleArrays, ...]

    def sites(self, loss: str = DEFAULT_LOSS) -> list[Site]:
        """Return sites that hold the training and validation records, not the test sample."""
        kinds = (self.training, self.penalty_validation, self.candidate_validation)
        width = len(str(len(self.training)))  # names that sort as numbers do
        sites = []
        for j, (training, penalty, candidate) in enumerate(zip(*kinds, strict=True), 1):
            name = f"site{j:0{width}d}"
            validation = {"penalty": penalty, "candidate": candidate}
            sites.append(Site(name, *training, loss=loss, copy=False, validation=validation))
        return sites

    def joined(self) -> list[SampleArrays]:
        """Return every site's rows of the training and of both validation samples together."""
        kinds = (self.training, self.penalty_validation, self.candidate_validation)
        return [
            (np.vstack([X for X, _ in samples]), np.concatenate([y for _, y in samples]))
            for samples in zip(*kinds, strict=True)
        ]


def pool(samples: Sequence[SampleArrays]) -> LeastSquares:
    """Return all sites' records of one kind together: for evaluation, never for fitting."""
    X = np.concatenate([X.T for X, _ in samples], axis=1).T
    return LeastSquares(X, np.concatenate([y for _, y in samples]))


def draw_scenario(scenario: Scenario, rng: np.random.Generator) -> ReplicateData:
    if scenario.design:
        return _draw_design(scenario, DEFAULT, rng)
    truth = _effects(scenario, scenario.nonzeros, rng)
    own = [truth] * len(scenario.sizes)
    if scenario.deviations:
        own = [truth + _effects(scenario, scenario.deviations, rng) for _ in scenario.sizes]
    others = (scenario.validation, scenario.validation, scenario.test)
    rows = (scenario.sizes, *(split(n, scenario.sizes) for n in others))
    samples = [
        tuple(_sample(scenario, j, n_j, own[j], rng) for j, n_j in enumerate(n)) for n in rows
    ]
    return ReplicateData(truth, *samples)


def draw_family(scenario: Scenario, family: str, seed: int, number: int) -> ReplicateData:
    """Draw one replicate of a family; it depends on study seed, scenario, family and number."""
    require_one_truth(scenario)
    rng = replace(scenario, name=f"{scenario.name}, {family}").generator(seed, number)
    if scenario.design:
        return _draw_design(scenario, family, rng)
    draw = scenario.draw(rng)
    truth = scale_truth(scenario, family, draw.truth) * draw.truth
    respond = find_family(family).draw
    kinds = (draw.training, draw.penalty_validation, draw.candidate_validation, draw.test)
    samples = (tuple((X, respond(X @ truth, rng)) for X, _ in kind) for kind in kinds)
    return ReplicateData(truth, *samples)


def _draw_design(scenario: Scenario, family: str, rng: np.random.Generator) -> ReplicateData:
    """Draw the rows of all samples by the scenario's design, with responses of a family.

    The unit of the noise is such that the linear predictor has `snr` times its variance. For other
    families the effects are scaled instead, and offsets add to the linear predictor as they are.
    """
    truth = _effects(scenario, scenario.nonzeros, rng)
    sizes = scenario.sizes
    others = (scenario.validation, scenario.validation, scenario.test)
    kinds = [sizes, *(split(n, sizes) if n else (0,) * len(sizes) for n in others)]
    totals = np.sum(kinds, axis=0)
    rows = find_design(scenario.design)(totals.tolist(), truth, rng)
    signal = rows.X @ truth
    spread = float(signal.std()) or 1.0
    if family == DEFAULT:
        unit = spread / np.sqrt(scenario.snr)
        y = signal + unit * (rows.offset + rows.spread * rng.standard_normal(len(signal)))
    else:
        truth = truth * (UNITS[family] * np.sqrt(scenario.snr) / spread)
        y = find_family(family).draw(rows.X @ truth + rows.offset, rng)
    ends = np.cumsum(totals)
    samples: list[list[SampleArrays]] = [[] for _ in kinds]
    for j, end in enumerate(ends):
        start = int(end - totals[j])
        for kind, own in zip(kinds, samples, strict=True):
            here = slice(start, start + kind[j])
            own.append((np.asfortranarray(rows.X[here]), np.ascontiguousarray(y[here])))
            start += kind[j]
    return ReplicateData(truth, *map(tuple, samples))


def require_one_truth(scenario: Scenario) -> None:
    """Refuse a scenario whose sites have coefficients of their own."""
    if scenario.deviations:
        raise FedLassoError(
            f"scenario {scenario.name!r} has deviations, but this study needs the same "
            "coefficients at every site; leave them out"
        )


def scale_truth(scenario: Scenario, family: str, truth: Array) -> float:
    """Return the factor c of the coefficients."""
    sites = len(scenario.sizes)
    rhos = np.resize(scenario.correlations, sites)
    scales = np.resize(scenario.scales, sites)
    variances = [s**2 * signal_variance(truth, r) for r, s in zip(rhos, scales, strict=True)]
    variance = float(np.average(variances, weights=scenario.sizes))
    if variance == 0.0:
        return 1.0
    return UNITS[family] * float(np.sqrt(scenario.snr / variance))


def _effects(scenario: Scenario, count: int, rng: np.random.Generator) -> Array:
    effects = np.zeros(scenario.p)
    where = rng.choice(scenario.p, count, replace=False)
    signs = rng.choice([-1.0, 1.0], count)
    effects[where] = signs * rng.uniform(*scenario.magnitudes, count)
    return effects


def _at_site(values: tuple[float, ...], j: int) -> float:
    return values[j if len(values) > 1 else 0]


def noise_of(scenario: Scenario, j: int, truth: Array) -> float:
    """Return the standard deviation of the noise at the site of index j."""
    scale = _at_site(scenario.scales, j)
    variance = signal_variance(truth, _at_site(scenario.correlations, j)) / scenario.snr
    return float(scale * np.sqrt(variance) * _at_site(scenario.noise, j))


def _sample(
    scenario: Scenario, j: int, n: int, truth: Array, rng: np.random.Generator
) -> SampleArrays:
    rho = _at_site(scenario.correlations, j)
    if scenario.tails == 0:
        shocks = rng.standard_normal((scenario.p, n))
    else:
        variance = scenario.tails / (scenario.tails - 2)
        shocks = rng.standard_t(scenario.tails, (scenario.p, n)) / np.sqrt(variance)
    # Columns in rows: an autoregression of order one has exactly the covariance rho^|k-l|.
    shocks[1:] *= np.sqrt(1 - rho**2)
    X = autoregress(shocks, rho).T
    X *= _at_site(scenario.scales, j)
    noise = noise_of(scenario, j, truth) * rng.standard_normal(n)
    y = LeastSquares(X, np.zeros(n)).residual(-truth) + noise
    return X, y


def signal_variance(b: Array, rho: float) -> float:
    """Return b' Sigma b with Sigma_kl = rho^|k-l|."""
    tail = autoregress(b[:, None], rho)[:, 0]
    return float((b * (2 * tail - b)).sum())
