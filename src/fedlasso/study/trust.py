"""False discovery rates and power of discoveries, and coverage of intervals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

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
from fedlasso.study.best_possible import oracle_probabilities
from fedlasso.study.data_splitting import combine_splits, select_above, split_rows
from fedlasso.study.debiased_bh import debiased_p_values, step_up
from fedlasso.study.fed_fdr import combine_sites, site_scores
from fedlasso.study.outcomes import Record, upload_record
from fedlasso.study.replicate_data import UNITS, SampleArrays, draw_family, require_one_truth
from fedlasso.study.scenario import SCENARIOS, Scenario
from fedlasso.study.study_designs import clusters_of
from fedlasso.study.trust_summary import BEST, BH, FED, MANY, ONE, OURS, trust_lines

# Folds that choose the Lasso's penalty.
FOLDS = 5
# Splits that are combined, and folds of which halves are formed.
SPLITS = 20
PIECES = 20
# Columns of every kind that get an interval.
PER_KIND = 20
# Difficult scenarios beyond the twelve.
OWN = (
    Scenario("dense-truth", nonzeros=150),
    Scenario("near-collinear", correlations=(0.95,)),
    Scenario("twenty-sites", sizes=(40,) * 20),
    Scenario(
        "unequal-noise", sizes=(600, 150, 50), correlations=(0.8, 0.2, -0.5), noise=(3.0, 1.0, 0.5)
    ),
    Scenario("heavy-tails", tails=3.0),
)
# Columns beyond this correlation with their neighbours are interchangeable to the oracle's sampler,
# which changes one effect at a time: its probabilities are then not the best possible.
MIXES = 0.95


def _cell(name: str, **settings: Any) -> Scenario:
    """Return a scenario of moderate size; all rows are for training."""
    usual: dict[str, Any] = {
        "sizes": (300, 300, 300),
        "p": 100,
        "nonzeros": 10,
        "validation": 0,
        "test": 0,
    }
    return Scenario(name, **(usual | settings))


# Real and unusual designs, sites that differ, and broken assumptions.
CELLS = (
    _cell("digits", design="digits", sizes=(400, 400, 400), p=50, nonzeros=8),
    _cell("spectra", design="spectra", sizes=(200, 200, 200), snr=4.0),
    _cell("dummies", design="dummies", p=66),
    _cell("rare-binary", design="rare", sizes=(400, 400, 400)),
    _cell("shifted-sites", design="shifted-sites"),
    _cell("shifted-columns", design="shifted-columns", sizes=(120,) * 8),
    _cell("repeated-visits", design="visits"),
    _cell("unnamed-visits", design="unnamed-visits"),
    _cell("ar-98", correlations=(0.98,), sizes=(200, 200, 200), snr=4.0),
    _cell("ar-995", correlations=(0.995,), sizes=(200, 200, 200), snr=4.0),
    _cell("ar-999", correlations=(0.999,), sizes=(200, 200, 200), snr=4.0),
    _cell("noise-by-column", design="noisy-column", nonzeros=5),
    _cell("bad-leverage", design="leverage"),
    _cell("corrupted-rows", design="corrupted"),
)
METHODS = (OURS, ONE, MANY, FED, BH, BEST)


@dataclass(frozen=True)
class TrustStudy:
    """False discoveries, power and coverage of 95% intervals for the goal 'discoveries'.

    The twelve scenarios, five difficult ones, and cells with real designs, with sites that differ
    and with broken assumptions. Sites have the rows of the training and of both validation samples.
    Every family is fitted by the goal 'discoveries' at both rates, with intervals for named
    columns: some truly nonzero, some truly zero, and some zero beside a nonzero one. For least
    squares it is compared with data splitting, once and twenty times, with Fed-FDR, with debiased
    BH, and with the best possible, which knows how the data were drawn. Uploads are vectors of p
    numbers per site.
    """

    name: ClassVar[str] = "trust"
    summary_is_whole: ClassVar[bool] = True
    seed: int = 1
    families: tuple[str, ...] = (DEFAULT,)
    methods: tuple[str, ...] = METHODS
    rates: tuple[float, ...] = (0.1, 0.2)

    def __post_init__(self) -> None:
        known = {"families": (DEFAULT, *UNITS), "methods": METHODS}
        for label, names in known.items():
            if unknown := [given for given in getattr(self, label) if given not in names]:
                reason = f"no {unknown[0]!r} among its {label}; known: {', '.join(names)}"
                raise FedLassoError(f"study 'trust' has {reason}")
        if not self.rates or not all(0 < rate < 1 for rate in self.rates):
            raise FedLassoError(f"rates is {self.rates}; give numbers between 0 and 1")

    @property
    def scenarios(self) -> dict[str, Scenario]:
        return SCENARIOS | {scenario.name: scenario for scenario in (*OWN, *CELLS)}

    @one_thread()
    def replicate(self, scenario: Scenario, number: int) -> list[Record]:
        require_one_truth(scenario)
        records = []
        for family in self.families:
            trial = TrustTrial.draw(scenario, family, self.seed, number)
            rows = list(trial.discover(self.rates)) if OURS in self.methods else []
            if find_family(family).quadratic:
                if splitting := [method for method in self.methods if method in (ONE, MANY)]:
                    rows += trial.split(splitting, self.rates)
                if FED in self.methods:
                    rows += trial.pair_sites(self.rates)
                if BH in self.methods:
                    rows += trial.test_all(self.rates)
                if BEST in self.methods and not scenario.design and scenario.rho <= MIXES:
                    rows += trial.find_best(self.rates)
            where: Record = {"scenario": scenario.name, "replicate": number, "family": family}
            records += [{"record": "outcome"} | where | row for row in rows]
        return records

    conclude = staticmethod(trust_lines)


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
        kind = find_family(family)
        if kind.quadratic:
            drawn = scenario.draw(scenario.generator(seed, number))
        else:
            drawn = draw_family(scenario, family, seed, number)
        samples = drawn.joined()
        width = len(str(len(samples)))
        options: dict[str, Any] = {"raw": True, "loss": kind.loss.name, "intercept": True}
        sites = [
            Site(
                f"site{j:0{width}d}", X, y, **options, clusters=clusters_of(scenario.design, len(y))
            )
            for j, (X, y) in enumerate(samples, 1)
        ]
        return cls(scenario, family, drawn.truth, samples, sites)

    def discover(self, rates: tuple[float, ...]) -> Iterator[Record]:
        """Yield outcomes of the goal 'discoveries' at every rate, from one fit.

        Columns selected at a smaller rate are selected at a larger one too, with equal estimates.
        """
        places = np.sort(np.concatenate(list(interval_columns(self.truth).values())))
        named = tuple(self.sites[0].columns[k] for k in places)
        fdr = max(rates)
        settings = Settings(family=self.family, goal=OURS, fdr=fdr, cv=FOLDS, intervals=named)
        model = fit_model(InProcess(self.sites), settings)
        for rate in rates:
            record: Record = {"method": OURS, "rate": rate}
            yield record | self._measure(model, rate) | self._costs(model.costs)

    def _measure(self, model: Model, rate: float) -> Record:
        trust = model.trust
        if trust is None or trust.found is None or trust.named is None:
            raise FedLassoError("a fit has no discoveries or intervals: an error of the study")
        assert trust.effects is not None
        likely, groups = trust.effects.discover(rate)
        found = trust.found.take(likely[trust.found.columns])
        # Estimates are per standard deviation of a column.
        truth = self.truth / model.scaling.factors[: self.truth.size]
        units = [(int(k),) for k in np.flatnonzero(likely)]
        record = judge_units([*units, *(group.columns for group in groups)], self.truth)
        for kind, places in interval_columns(self.truth).items():
            own = trust.named.take(np.isin(trust.named.columns, places))
            record[f"coverage_{kind}"] = check_intervals(own, truth)["coverage"]
        named, selected = (check_intervals(each, truth) for each in (trust.named, found))
        record |= {"width_named": named["width"], "not_given": named["not_given"]}
        record |= {"coverage_found": selected["coverage"], "width_found": selected["width"]}
        return record | {"flagged": float(trust.marked)}

    def split(self, methods: Sequence[str], rates: tuple[float, ...]) -> Iterator[Record]:
        """Yield outcomes of data splitting: of the first split, and of all of them combined."""
        ledger = Ledger(InProcess(self.sites))
        view, _ = standardise(ledger, "", centre=True, scale=True)
        folded = Folded.ask(view, PIECES, centre=True, scale=True)
        mirrors = split_rows(folded, SPLITS if MANY in methods else 1)
        for method in methods:
            for rate in rates:
                each = np.array([select_above(own, rate) for own in mirrors])
                selected = each[0] if method == ONE else combine_splits(each, rate)
                record: Record = {"method": method, "rate": rate}
                yield record | judge_selection(selected, self.truth) | self._costs(ledger.costs)

    def pair_sites(self, rates: tuple[float, ...]) -> Iterator[Record]:
        """Yield outcomes of Fed-FDR."""
        scores, numbers = site_scores(self.samples)
        sent = 8 * numbers
        costs: Record = {"uploads": numbers / scores.size, "upload_bytes": sent}
        for rate in rates:
            record: Record = {"method": FED, "rate": rate}
            yield record | judge_selection(combine_sites(scores, rate), self.truth) | costs

    def test_all(self, rates: tuple[float, ...]) -> Iterator[Record]:
        """Yield outcomes of Benjamini and Hochberg's procedure with debiased estimates."""
        ledger = Ledger(InProcess(self.sites))
        view, _ = standardise(ledger, "", centre=True, scale=True)
        p_values = debiased_p_values(Folded.ask(view, FOLDS, centre=True, scale=True))
        for rate in rates:
            record: Record = {"method": BH, "rate": rate}
            selection = judge_selection(step_up(p_values, rate), self.truth)
            yield record | selection | self._costs(ledger.costs)

    def find_best(self, rates: tuple[float, ...]) -> Iterator[Record]:
        """Yield outcomes of the oracle, which knows how the data were drawn."""
        probabilities = oracle_probabilities(self.scenario, self.truth, self.samples, 0)
        for rate in rates:
            # These probabilities are exact, so all of the rate is used.
            selected = select_by_fdr(probabilities, rate / FDR_MARGIN)
            record: Record = {"method": BEST, "rate": rate}
            yield record | judge_selection(selected, self.truth)

    def _costs(self, costs: Costs) -> Record:
        return upload_record(costs, self.truth.size, len(self.sites))


def interval_columns(truth: Array) -> dict[str, NDArray[np.int64]]:
    """Return the columns that get an interval, by kind, at most PER_KIND of each."""
    nonzero = truth != 0
    beside = np.zeros_like(nonzero)
    beside[1:] |= nonzero[:-1]
    beside[:-1] |= nonzero[1:]
    kinds = {"nonzero": nonzero, "zero": ~nonzero & ~beside, "near": ~nonzero & beside}
    return {kind: np.flatnonzero(which)[:PER_KIND] for kind, which in kinds.items()}


def judge_selection(selected: NDArray[np.bool_], truth: Array) -> Record:
    """Return false discovery proportion, recall, F1 and number selected."""
    return judge_units([(int(k),) for k in np.flatnonzero(selected)], truth)


def judge_units(units: Sequence[Sequence[int]], truth: Array) -> Record:
    """Return the same of discoveries that are columns or groups of columns.

    A group claims that one or more of its columns have an effect: it is false if none has one, and
    counts as one true discovery otherwise.
    """
    hits = sum(bool((truth[list(unit)] != 0).any()) for unit in units)
    count = len(units)
    nonzero = int(np.count_nonzero(truth))
    precision = hits / count if count else 0.0
    recall = hits / nonzero if nonzero else 0.0
    f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
    return {"fdp": (count - hits) / max(count, 1), "recall": recall, "f1": f1, "active": count}


def check_intervals(estimates: Estimates, truth: Array) -> Record:
    """Return coverage and mean width of the intervals that are given, and the fraction that is not.

    Coverage and width are missing if there is none.
    """
    low, high = estimates.intervals().T
    given = np.isfinite(low) & np.isfinite(high)
    if not given.any():
        return {"coverage": None, "width": None, "not_given": float(given.size > 0)}
    true = truth[estimates.columns]
    covered = (low <= true) & (true <= high)
    coverage = float(covered[given].mean())
    width = float((high - low)[given].mean())
    return {"coverage": coverage, "width": width, "not_given": float(1 - given.mean())}
