"""One replicate's data, drawn as a scenario says."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedlasso.numerics import DEFAULT_LOSS, Array, LeastSquares
from fedlasso.numerics.machine import compiled
from fedlasso.sites import Site
from fedlasso.study.scenario import Scenario, split

SampleArrays = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class ReplicateData:
    """One replicate's data, one entry per site, and the truth behind them."""

    truth: Array
    training: tuple[SampleArrays, ...]
    penalty_validation: tuple[SampleArrays, ...]
    candidate_validation: tuple[SampleArrays, ...]
    test: tuple[SampleArrays, ...]

    def sites(self, loss: str = DEFAULT_LOSS) -> list[Site]:
        """Sites that hold the training and validation records; the test sample stays outside."""
        kinds = (self.training, self.penalty_validation, self.candidate_validation)
        width = len(str(len(self.training)))  # names that sort as numbers do
        sites = []
        for j, (training, penalty, candidate) in enumerate(zip(*kinds, strict=True), 1):
            name = f"site{j:0{width}d}"
            validation = {"penalty": penalty, "candidate": candidate}
            sites.append(Site(name, *training, loss=loss, copy=False, validation=validation))
        return sites


def pool(samples: Sequence[SampleArrays]) -> LeastSquares:
    """All sites' records of one kind together: for evaluation, never for fitting."""
    X = np.concatenate([X.T for X, _ in samples], axis=1).T
    return LeastSquares(X, np.concatenate([y for _, y in samples]))


def draw_scenario(scenario: Scenario, rng: np.random.Generator) -> ReplicateData:
    """Draw truth and records."""
    truth = _effects(scenario, scenario.nonzeros, rng)
    own = [truth] * len(scenario.sizes)
    if scenario.deviations:
        own = [truth + _effects(scenario, scenario.deviations, rng) for _ in scenario.sizes]
    beside = (scenario.validation, scenario.validation, scenario.test)
    rows = (scenario.sizes, *(split(n, scenario.sizes) for n in beside))
    samples = [
        tuple(_sample(scenario, j, n_j, own[j], rng) for j, n_j in enumerate(n)) for n in rows
    ]
    return ReplicateData(truth, *samples)


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
    # Columns in rows: an autoregression of order one has exactly the covariance rho^|k-l|.
    shocks = _shocks(scenario, n, rng)
    shocks[1:] *= np.sqrt(1 - rho**2)
    X = autoregress(shocks, rho).T
    X *= _at_site(scenario.scales, j)
    noise = noise_of(scenario, j, truth) * rng.standard_normal(n)
    y = LeastSquares(X, np.zeros(n)).residual(-truth) + noise
    return X, y


def _shocks(scenario: Scenario, n: int, rng: np.random.Generator) -> Array:
    """Independent numbers of variance one, an array (p, n)."""
    if scenario.tails == 0:
        return rng.standard_normal((scenario.p, n))
    variance = scenario.tails / (scenario.tails - 2)
    return np.asarray(rng.standard_t(scenario.tails, (scenario.p, n)) / np.sqrt(variance))


def signal_variance(b: Array, rho: float) -> float:
    """b' Sigma b with Sigma_kl = rho^|k-l|."""
    tail = autoregress(b[:, None], rho)[:, 0]
    return float((b * (2 * tail - b)).sum())


@compiled
def autoregress(shocks: Array, rho: float) -> Array:
    """Return rows that follow one another: each is its shock plus rho times the row before."""
    x = shocks.copy()
    for k in range(1, x.shape[0]):
        for i in range(x.shape[1]):
            x[k, i] += rho * x[k - 1, i]
    return x
