"""Real data: federated fits by goal against what people fit to pooled rows."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError
from fedlasso.federation import InProcess
from fedlasso.fitting import Settings, fit_model
from fedlasso.numerics import Array, one_thread
from fedlasso.sites import Site
from fedlasso.study.datasets import EXPORT, ORIGINS, find_sets, read_set
from fedlasso.study.judges import FOLDS, GLMNET, JUDGES, glmnet_runs, judge
from fedlasso.study.outcomes import Record, upload_record
from fedlasso.study.paper import COMPARED
from fedlasso.study.real_summary import tell_real
from fedlasso.study.scenario import Scenario, split

TRAINING = 0.7
# Sites' shares of the training rows, for each way of dealing rows out to sites.
SHARES = {"random": (1, 1, 1), "unequal": (6, 3, 1), "sorted": (1, 1, 1)}
# A column is used if one standard deviation of it moves the prediction by more than this share of
# the response's standard deviation.
USED = 1e-8


def available_methods() -> tuple[str, ...]:
    """The goals, and the judges that can be asked here."""
    return tuple(m for m in (*COMPARED, *JUDGES) if m not in GLMNET or glmnet_runs())


@dataclass(frozen=True, eq=False)
class SplitRows:
    """The rows of one replicate: training, test, and which site and fold each training row is in.

    They depend on study seed, data set and replicate only; ways of dealing rows out to sites share
    the training and the test rows.
    """

    X: Array
    y: Array
    test_X: Array
    test_y: Array
    sites: Mapping[str, NDArray[np.int64]]
    folds: NDArray[np.int64]

    def federation(self, way: str) -> InProcess:
        """The training rows at three sites."""
        chosen = [self.sites[way] == j for j in range(len(SHARES[way]))]
        sites = enumerate(((self.X[own], self.y[own]) for own in chosen), 1)
        return InProcess([Site(f"site{j}", X, y, raw=True) for j, (X, y) in sites])


def draw_rows(X: Array, y: Array, rng: np.random.Generator) -> SplitRows:
    """Deal the rows of a data set out."""
    count = round(TRAINING * len(y))
    training, test = np.split(rng.permutation(len(y)), [count])
    sites = {}
    for way, shares in SHARES.items():
        if way == "sorted":  # the first site has the smallest responses, the last the largest
            place = np.argsort(y[training], kind="stable")
        else:
            place = rng.permutation(count)
        sites[way] = np.empty(count, dtype=np.int64)
        sites[way][place] = np.repeat(np.arange(len(shares)), split(count, shares))
    folds = rng.permutation(np.arange(count) % FOLDS)
    return SplitRows(X[training], y[training], X[test], y[test], sites, folds)


@dataclass(frozen=True)
class RealStudy:
    """Fits by goal on real data at three sites, beside pooled fits by others.

    A scenario is a data set; a replicate splits its rows into 70% for training and 30% for the
    test, and deals the training rows out to three sites in three ways: at random, at random with
    shares of 60, 30 and 10 per cent, and in blocks of the sorted response.
    """

    name: ClassVar[str] = "real"
    summary_is_whole: ClassVar[bool] = True
    seed: int = 1
    methods: tuple[str, ...] = field(default_factory=available_methods)
    data: str = ""

    def __post_init__(self) -> None:
        known = (*COMPARED, *JUDGES)
        for method in self.methods:
            if method not in known:
                names = ", ".join(known)
                raise FedLassoError(f"study 'real' has no method {method!r}; known: {names}")
        if set(self.methods) & set(GLMNET) and not glmnet_runs():
            raise FedLassoError(
                "pooled cv.glmnet takes Rscript with the package glmnet, which is not here; "
                "install it (Debian: apt-get install r-cran-glmnet) or leave it out of --methods"
            )

    @property
    def scenarios(self) -> dict[str, Scenario]:
        """The data sets that are here, with their sizes."""
        return {name: self._scenario(name) for name in find_sets(self.data)}

    def _scenario(self, name: str) -> Scenario:
        X, y = read_set(self.data, name)
        count = round(TRAINING * len(y))
        sizes = split(count, SHARES["random"])
        # There is no truth to draw; only sizes are said.
        nothing = Scenario(name, nonzeros=0, validation=0)
        return replace(nothing, sizes=sizes, p=X.shape[1], test=len(y) - count)

    @property
    def notices(self) -> list[str]:
        """What is left out here, and what to do about it."""
        lines = []
        here = find_sets(self.data)
        if absent := [name for name in ORIGINS if name not in here]:
            lines.append(
                f"data sets not found: {', '.join(absent)}; export those of installed R packages "
                f"with `{EXPORT}` and give --data FOLDER"
            )
        if not set(self.methods) & set(GLMNET):
            lines.append(
                "pooled cv.glmnet is left out: it takes Rscript with the package glmnet "
                "(Debian: apt-get install r-cran-glmnet); scikit-learn's LassoCV judges alone"
            )
        return lines

    @one_thread()
    def replicate(self, scenario: Scenario, number: int) -> list[Record]:
        X, y = read_set(self.data, scenario.name)
        rows = draw_rows(X, y, scenario.generator(self.seed, number))
        where: Record = {"record": "outcome", "scenario": scenario.name, "replicate": number}
        return [where | record for record in (*self._ours(rows), *self._judges(rows))]

    def _ours(self, rows: SplitRows) -> Iterator[Record]:
        for way in SHARES:
            for goal in (goal for goal in COMPARED if goal in self.methods):
                federation = rows.federation(way)
                start = time.perf_counter()
                model = fit_model(federation, Settings(goal=goal))
                seconds = time.perf_counter() - start
                record: Record = {"method": goal, "split": way}
                record |= _measure(rows, model.coefficients, model.intercept)
                record |= {"lam": model.penalty}
                record |= upload_record(model.costs, rows.X.shape[1], len(federation.sites))
                yield record | {"seconds": seconds, "status": model.status.name.lower()}

    def _judges(self, rows: SplitRows) -> Iterator[Record]:
        """Judges see all training rows, so the way of dealing them out is nothing to them."""
        for fit in judge(self.methods, rows.X, rows.y, rows.folds):
            record: Record = {"method": fit.judge, "split": "pooled"}
            record |= _measure(rows, fit.coefficients, fit.intercept)
            yield record | {"lam": fit.lam, "seconds": fit.seconds}

    conclude = staticmethod(tell_real)


def _measure(rows: SplitRows, coefficients: Array, intercept: float) -> Record:
    """Error on the test rows, and the columns that the model uses."""
    error = rows.test_y - rows.test_X @ coefficients - intercept
    used = np.abs(coefficients) * rows.X.std(axis=0) > USED * rows.y.std()
    support = ",".join(map(str, np.flatnonzero(used)))
    mse = float((error * error).mean())
    return {"test_mse": mse, "active": int(used.sum()), "support": support}
