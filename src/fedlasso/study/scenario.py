"""Scenarios: named parameters from which replicates are drawn."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from fedlasso.errors import FedLassoError

if TYPE_CHECKING:
    from fedlasso.study.replicate_data import ReplicateData


@dataclass(frozen=True)
class Scenario:
    """How a replicate's data are generated. A per-site setting has one value, or one per site.

    Attributes
    ----------
    sizes : training rows of each site
    p, nonzeros : predictors, and how many have a true effect
    magnitudes : range of the absolute true effects
    correlations : rho of Cov(X_k, X_l) = rho^|k-l|
    scales : standard deviation of the predictors
    snr : population signal variance over noise variance
    noise : multipliers of the noise standard deviation
    deviations : number of coefficients in which each site deviates from the common ones
    tails : degrees of freedom (> 2) of the predictors' Student t distribution; 0 for the normal
    validation, test : rows of each validation sample and of the test sample, over all sites
    design : how columns are drawn, if not from correlations and tails (`study_designs.DESIGNS`)
    """

    name: str
    sizes: tuple[int, ...] = (268, 268, 264)
    p: int = 600
    nonzeros: int = 30
    magnitudes: tuple[float, float] = (0.4, 1.2)
    correlations: tuple[float, ...] = (0.5,)
    scales: tuple[float, ...] = (1.0,)
    snr: float = 1.0
    noise: tuple[float, ...] = (1.0,)
    deviations: int = 0
    tails: float = 0.0
    validation: int = 200
    test: int = 2000
    design: str = ""

    def __post_init__(self) -> None:
        scenario = f"scenario {self.name!r}"
        for label in ("correlations", "scales", "noise"):
            if (count := len(getattr(self, label))) not in (1, len(self.sizes)):
                remedy = f"give one, or one for each of the {len(self.sizes)} sites"
                raise FedLassoError(f"{scenario}: {label} has {count} values; {remedy}")
        if not self.sizes or min(self.sizes) < 1:
            raise FedLassoError(f"{scenario}: every site needs at least one row")
        for label in ("nonzeros", "deviations"):
            if not 0 <= getattr(self, label) <= self.p:
                raise FedLassoError(f"{scenario}: {label} must be between 0 and p")
        if not all(-1 < rho < 1 for rho in self.correlations) or self.snr <= 0:
            raise FedLassoError(f"{scenario}: need |correlations| < 1 and snr > 0")
        if self.tails != 0 and not self.tails > 2:
            raise FedLassoError(
                f"{scenario}: tails is {self.tails:g}; give more than 2 degrees of freedom, "
                "since predictors need a variance, or 0 for normal ones"
            )

    @property
    def rho(self) -> float:
        """The largest correlation of neighbouring columns."""
        return max(map(abs, self.correlations))

    def generator(self, seed: int, replicate: int) -> np.random.Generator:
        """Return a generator that depends on study seed, scenario name and replicate only."""
        name = int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:8], "little")
        return np.random.default_rng(np.random.SeedSequence([seed, name, replicate]))

    def draw(self, rng: np.random.Generator) -> ReplicateData:
        """Draw true coefficients and records."""
        # Imported here, so that reading scenarios does not load the code that draws them.
        from fedlasso.study.replicate_data import draw_scenario

        return draw_scenario(self, rng)


def split(n: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """Split n over sites in proportion to sizes, by largest remainder, at least one row each."""
    m = sum(sizes)
    parts = [n * size // m for size in sizes]
    order = sorted(range(len(sizes)), key=lambda j: (-(n * sizes[j] % m), j))
    for j in order[: n - sum(parts)]:
        parts[j] += 1
    return tuple(max(1, part) for part in parts)


_PAPER = (
    Scenario("baseline"),
    Scenario("independent", correlations=(0.0,)),
    Scenario("strong-correlation", correlations=(0.8,)),
    Scenario("two-sites", sizes=(400, 400)),
    Scenario("five-sites", sizes=(160,) * 5),
    Scenario("ten-sites", sizes=(80,) * 10),
    Scenario("weak-signal", snr=0.25),
    Scenario("strong-signal", snr=4.0),
    Scenario("fewer-predictors", p=300),
    Scenario("more-predictors", p=1000),
    Scenario("unequal-sizes", sizes=(640, 120, 40)),
    Scenario(
        "different-distributions",
        correlations=(0.0, 0.4, 0.7), scales=(1.0, 1.4, 0.7), noise=(1.0, 1.5, 0.8),
    ),
)  # fmt: skip
SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in _PAPER}


def read_scenarios(path: Path) -> tuple[Scenario, ...]:
    """Read scenarios from a TOML file: one table each, unlisted settings as in the baseline.

    Examples
    --------
    A file with one scenario::

        [small]
        sizes = [50, 40]
        p = 100
        correlations = [0.2, 0.6]
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FedLassoError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FedLassoError(f"{path} is not a TOML file: {error}") from error
    known = sorted({f.name for f in fields(Scenario)} - {"name"})
    scenarios = []
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise FedLassoError(f"{path}: {name!r} is outside a [scenario] table")
        if unknown := [key for key in table if key not in known]:
            reason = f"has no setting {unknown[0]!r}; known: {', '.join(known)}"
            raise FedLassoError(f"{path}: scenario {name!r} {reason}")
        try:
            scenarios.append(msgspec.convert(table | {"name": name}, Scenario))
        except msgspec.ValidationError as error:
            # Put the field first; messages of Scenario itself have none and stay as they are.
            text, _, where = str(error).partition(" - at `$.")
            if where:
                text = f"scenario {name!r}: {where.rstrip('`')}: {text[0].lower()}{text[1:]}"
            raise FedLassoError(f"{path}: {text}") from error
        if scenarios[-1].design:
            # Imported here, as in `draw`.
            from fedlasso.study.study_designs import find_design

            find_design(scenarios[-1].design)
    return tuple(scenarios)
