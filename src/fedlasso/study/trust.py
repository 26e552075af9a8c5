"""Can discoveries and intervals be trusted: how often they are false, and how often they cover."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError
from fedlasso.families import DEFAULT, find_family
from fedlasso.federation import Costs, InProcess, Ledger
from fedlasso.fitting import Model, Settings, fit_model
from fedlasso.fitting.evidence import Folded
from fedlasso.fitting.inference.estimates import Estimates
from fedlasso.numerics import Array, one_thread
from fedlasso.numerics.spike_slab import FDR_MARGIN, select_by_fdr
from fedlasso.sites import Site, standardise
from fedlasso.study.best_possible import find_chances
from fedlasso.study.data_splitting import combine_splits, find_above, split_rows
from fedlasso.study.outcomes import Record, support_record, upload_record
from fedlasso.study.replicate_data import ReplicateData, SampleArrays
from fedlasso.study.responses import UNITS, draw_family
from fedlasso.study.scenario import SCENARIOS, Scenario
from fedlasso.study.trust_summary import BEST, MANY, ONE, OURS, tell_trust

# Folds that choose the Lasso's penalty.
FOLDS = 5
# Splits that are combined, and folds that the halves are made of.
SPLITS = 20
PIECES = 20
# Columns of every kind that are named for an interval.
EACH = 20
# Scenarios beyond the twelve, where a promise might break.
OWN = (
    Scenario("dense-truth", nonzeros=150),
    Scenario("near-collinear", correlations=(0.95,)),
    Scenario("twenty-sites", sizes=(40,) * 20),
    Scenario(
        "unequal-noise", sizes=(600, 150, 50), correlations=(0.8, 0.2, -0.5), noise=(3.0, 1.0, 0.5)
    ),
    Scenario("heavy-tails", tails=3.0),
)


@dataclass(frozen=True)
class TrustStudy:
    """False discoveries, power, and how often 95% intervals cover, for the goal 'discoveries'.

    The twelve scenarios, and five of its own where promises might break. Sites have the rows of the
    training and of both validation samples. Every family is fitted by the goal of discoveries at
    both rates, with intervals for named columns: some truly nonzero, some truly zero, and some zero
    beside a nonzero one. For least squares, discoveries by one data split and by twenty of them
    stand beside, and the best possible: what somebody would find who knows how the data were drawn.
    Uploads are vectors of p numbers per site.
    """

    name: ClassVar[str] = "trust"
    summary_is_whole: ClassVar[bool] = True
    seed: int = 1
    families: tuple[str, ...] = (DEFAULT,)
    methods: tuple[str, ...] = (OURS, ONE, MANY, BEST)
    rates: tuple[float, ...] = (0.1, 0.2)

    def __post_init__(self) -> None:
        known = {"families": (DEFAULT, *UNITS), "methods": (OURS, ONE, MANY, BEST)}
        for label, names in known.items():
            for given in getattr(self, label):
                if given not in names:
                    told = f"no {given!r} among its {label}; known: {', '.join(names)}"
                    raise FedLassoError(f"study 'trust' has {told}")
        if not self.rates or not all(0 < rate < 1 for rate in self.rates):
            raise FedLassoError(f"rates is {self.rates}; give shares above 0 and below 1")

    @property
    def scenarios(self) -> dict[str, Scenario]:
        """The twelve, and those of this study."""
        return SCENARIOS | {scenario.name: scenario for scenario in OWN}

    @one_thread()
    def replicate(self, scenario: Scenario, number: int) -> list[Record]:
        if scenario.deviations:
            raise FedLassoError(
                f"scenario {scenario.name!r} has deviations, and intervals are judged by one truth "
                "of all sites; leave them out"
            )
        records = []
        for family in self.families:
            trial = TrustTrial.draw(scenario, family, self.seed, number)
            where: Record = {"scenario": scenario.name, "replicate": number, "family": family}
            records += [{"record": "outcome"} | where | row for row in self._rows(trial)]
        return records

    def _rows(self, trial: "TrustTrial") -> Iterator[Record]:
        if OURS in self.methods:
            yield from trial.discover(self.rates)
        if not find_family(trial.family).quadratic:
            return
        if splitting := [method for method in self.methods if method in (ONE, MANY)]:
            yield from trial.split(splitting, self.rates)
        if BEST in self.methods:
            yield from trial.find_best(self.rates)

    conclude = staticmethod(tell_trust)


@dataclass(frozen=True, eq=False)
class TrustTrial:
    """One replicate of one family: the true effects, every site's rows, and the sites."""

    scenario: Scenario
    family: str
    truth: Array
    samples: list[SampleArrays]
    sites: list[Site]

    @classmethod
    def draw(cls, scenario: Scenario, family: str, seed: int, number: int) -> Self:
        """Draw the data."""
        kind = find_family(family)
        if kind.quadratic:
            drawn = scenario.draw(scenario.generator(seed, number))
        else:
            drawn = draw_family(scenario, family, seed, number)
        samples = join_samples(drawn)
        width = len(str(len(samples)))
        sites = [
            Site(f"site{j:0{width}d}", X, y, raw=True, loss=kind.loss.name, intercept=True)
            for j, (X, y) in enumerate(samples, 1)
        ]
        return cls(scenario, family, drawn.truth, samples, sites)

    def discover(self, rates: tuple[float, ...]) -> Iterator[Record]:
        """The goal of discoveries at every rate, by one fit.

        What is found at a smaller rate is found at a larger one too, with the same estimates.
        """
        places = np.sort(np.concatenate(list(name_columns(self.truth).values())))
        named = tuple(self.sites[0].columns[k] for k in places)
        settings = Settings(
            family=self.family, goal=OURS, fdr=max(rates), cv=FOLDS, intervals=named
        )
        model = fit_model(InProcess(self.sites), settings)
        for rate in rates:
            record: Record = {"method": OURS, "rate": rate}
            yield record | self._measure(model, rate) | self._costs(model.costs)

    def _measure(self, model: Model, rate: float) -> Record:
        trust = model.trust
        if trust is None or trust.found is None or trust.named is None:
            raise FedLassoError("a fit of discoveries tells none; this is a mistake of the study")
        found = trust.found if rate == model.settings.fdr else trust.found.found(rate)
        selected = np.zeros(self.truth.size, dtype=bool)
        selected[found.columns] = True
        # Estimates are per standard deviation of a column.
        truth = self.truth / model.scaling.factors[: self.truth.size]
        covered = cover(trust.named, truth)
        record = judge_selection(selected, self.truth)
        for kind, places in name_columns(self.truth).items():
            own = np.isin(trust.named.columns, places)
            record[f"coverage_{kind}"] = float(covered[own].mean()) if own.any() else None
        record["width_named"] = measure_width(trust.named)
        if found.columns.size:
            record["coverage_found"] = float(cover(found, truth).mean())
            record["width_found"] = measure_width(found)
        return record

    def split(self, methods: Sequence[str], rates: tuple[float, ...]) -> Iterator[Record]:
        """Discoveries by one data split, and by several that are combined; the one is the first."""
        ledger = Ledger(InProcess(self.sites))
        view, _ = standardise(ledger, "", centre=True, scale=True)
        folded = Folded.ask(view, PIECES, centre=True, scale=True)
        mirrors = split_rows(folded, SPLITS if MANY in methods else 1)
        for method in methods:
            for rate in rates:
                each = np.array([find_above(own, rate) for own in mirrors])
                selected = each[0] if method == ONE else combine_splits(each, rate)
                record: Record = {"method": method, "rate": rate}
                yield record | judge_selection(selected, self.truth) | self._costs(ledger.costs)

    def find_best(self, rates: tuple[float, ...]) -> Iterator[Record]:
        """The most that can be found, by somebody who knows how the data were drawn."""
        chances = find_chances(self.scenario, self.truth, self.samples, 0)
        for rate in rates:
            # Chances are what they are said to be, so all of the rate is used.
            selected = select_by_fdr(chances, rate / FDR_MARGIN)
            record: Record = {"method": BEST, "rate": rate}
            yield record | judge_selection(selected, self.truth)

    def _costs(self, costs: Costs) -> Record:
        return upload_record(costs, self.truth.size, len(self.sites))


def join_samples(draw: ReplicateData) -> list[SampleArrays]:
    """Return every site's rows of the training and of both validation samples."""
    kinds = (draw.training, draw.penalty_validation, draw.candidate_validation)
    return [
        (np.vstack([X for X, _ in samples]), np.concatenate([y for _, y in samples]))
        for samples in zip(*kinds, strict=True)
    ]


def name_columns(truth: Array) -> dict[str, NDArray[np.int64]]:
    """Return the columns that are named for an interval, by kind, a few of each."""
    nonzero = truth != 0
    beside = np.zeros_like(nonzero)
    beside[1:] |= nonzero[:-1]
    beside[:-1] |= nonzero[1:]
    kinds = {"nonzero": nonzero, "zero": ~nonzero & ~beside, "near": ~nonzero & beside}
    return {kind: np.flatnonzero(which)[:EACH] for kind, which in kinds.items()}


def judge_selection(selected: NDArray[np.bool_], truth: Array) -> Record:
    """Return the share of false columns, and how many of the true ones are there."""
    agreement = support_record(selected.astype(np.float64), truth)
    false = int((selected & (truth == 0)).sum())
    shares: Record = {"fdp": false / max(int(selected.sum()), 1)}
    return shares | {name: agreement[name] for name in ("recall", "f1", "active")}


def cover(estimates: Estimates, truth: Array) -> NDArray[np.bool_]:
    """Return which intervals hold the true coefficients."""
    low, high = estimates.intervals().T
    true = truth[estimates.columns]
    return np.asarray((low <= true) & (true <= high))


def measure_width(estimates: Estimates) -> float:
    """Return the mean width of the intervals."""
    low, high = estimates.intervals().T
    return float((high - low).mean())
