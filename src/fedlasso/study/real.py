"""Real data: federated fits by goal against standard software on pooled rows."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError
from fedlasso.federation import InProcess
from fedlasso.fitting import Settings, fit_model
from fedlasso.numerics import Array, one_thread
from fedlasso.sites import Site
from fedlasso.sites.fold_assignment import digest_records
from fedlasso.study.datasets import EXPORT, ORIGINS, find_sets, read_set
from fedlasso.study.judges import FOLDS, GLMNET, JUDGES, glmnet_runs, judge
from fedlasso.study.outcomes import Record, upload_record
from fedlasso.study.paper import COMPARED
from fedlasso.study.real_summary import real_lines
from fedlasso.study.scenario import Scenario, split

TRAINING = 0.7  # fraction of the rows
# Relative sizes of the sites, for each assignment of training rows to sites.
SIZES = {"random": (1, 1, 1), "unequal": (6, 3, 1), "sorted": (1, 1, 1)}
# A column is used if one standard deviation of it moves the prediction by more than this fraction
# of the response's standard deviation.
MIN_EFFECT = 1e-8


def available_methods() -> tuple[str, ...]:
    """Return the goals, and the judges that are installed."""
    return tuple(m for m in (*COMPARED, *JUDGES) if m not in GLMNET or glmnet_runs())


@dataclass(frozen=True, eq=False)
class SplitRows:
    """The rows of one replicate: training, test, and the site and fold of each training row.

    They depend on study seed, data set and replicate only. ``sites`` has one entry per assignment
    of the same training rows to sites.
    """

    X: Array
    y: Array
    test_X: Array
    test_y: Array
    sites: Mapping[str, NDArray[np.int64]]
    folds: NDArray[np.int64]

    def federation(self, way: str) -> InProcess:
        """Return the training rows at three sites, with the splits that estimators make."""
        chosen = [self.sites[way] == j for j in range(len(SIZES[way]))]
        parts = enumerate(((self.X[own], self.y[own]) for own in chosen), 1)
        return InProcess(
            [Site(f"site{j}", X, y, raw=True, draws=digest_records(X, y)) for j, (X, y) in parts]
        )


def draw_rows(X: Array, y: Array, rng: np.random.Generator) -> SplitRows:
    """Split the rows of a data set into training and test, and assign sites and folds."""
    count = round(TRAINING * len(y))
    training, test = np.split(rng.permutation(len(y)), [count])
    sites = {}
    for way, sizes in SIZES.items():
        if way == "sorted":  # the first site has the smallest responses, the last the largest
            place = np.argsort(y[training], kind="stable")
        else:
            place = rng.permutation(count)
        sites[way] = np.empty(count, dtype=np.int64)
        sites[way][place] = np.repeat(np.arange(len(sizes)), split(count, sizes))
    folds = rng.permutation(np.arange(count) % FOLDS)
    return SplitRows(X[training], y[training], X[test], y[test], sites, folds)


@dataclass(frozen=True)
class RealStudy:
    """Fits by goal on real data at three sites, compared with pooled fits by glmnet and LassoCV.

    A scenario is a data set. A replicate splits its rows into 70% training and 30% test rows, and
    assigns the training rows to three sites in three ways: at random, at random with 60, 30 and 10
    per cent of the rows, and in blocks of the sorted response.
    """

    name: ClassVar[str] = "real"
    summary_is_whole: ClassVar[bool] = True
    seed: int = 1
    methods: tuple[str, ...] = field(default_factory=available_methods)
    data: str = ""

    def __post_init__(self) -> None:
        known = (*COMPARED, *JUDGES)
        if unknown := [method for method in self.methods if method not in known]:
            names = ", ".join(known)
            raise FedLassoError(f"study 'real' has no method {unknown[0]!r}; known: {names}")
        if set(self.methods) & set(GLMNET) and not glmnet_runs():
            raise FedLassoError(
                "pooled cv.glmnet requires Rscript with its package glmnet, which is missing; "
                "install it (Debian: apt-get install r-cran-glmnet) or leave it out of --methods"
            )

    @property
    def scenarios(self) -> dict[str, Scenario]:
        """The available data sets, with their sizes."""
        return {name: self._scenario(name) for name in find_sets(self.data)}

    def _scenario(self, name: str) -> Scenario:
        """Return a scenario that has sizes only: real data have no known truth."""
        X, y = read_set(self.data, name)
        count = round(TRAINING * len(y))
        sizes = split(count, SIZES["random"])
        p, test = X.shape[1], len(y) - count
        return Scenario(name, sizes=sizes, p=p, nonzeros=0, validation=0, test=test)

    @property
    def notices(self) -> list[str]:
        """Data sets and judges that are not available, and how to get them."""
        lines = []
        here = find_sets(self.data)
        if absent := [name for name in ORIGINS if name not in here]:
            lines.append(
                f"data sets not found: {', '.join(absent)}; export those of installed R packages "
                f"with `{EXPORT}` and use --data FOLDER"
            )
        if not set(self.methods) & set(GLMNET):
            lines.append(
                "pooled cv.glmnet is left out: it requires Rscript with the package glmnet "
                "(Debian: apt-get install r-cran-glmnet); LassoCV is the only judge"
            )
        return lines

    @one_thread()
    def replicate(self, scenario: Scenario, number: int) -> list[Record]:
        X, y = read_set(self.data, scenario.name)
        rows = draw_rows(X, y, scenario.generator(self.seed, number))
        where: Record = {"record": "outcome", "scenario": scenario.name, "replicate": number}
        records = list(self._ours(rows))
        for fit in judge(self.methods, rows.X, rows.y, rows.folds):
            record: Record = {"method": fit.judge, "split": "pooled"}
            record |= _measure(rows, fit.coefficients, fit.intercept)
            records.append(record | {"lam": fit.lam, "seconds": fit.seconds})
        return [where | record for record in records]

    def _ours(self, rows: SplitRows) -> Iterator[Record]:
        for way, goal in product(SIZES, COMPARED):
            if goal in self.methods:
                federation = rows.federation(way)
                start = time.perf_counter()
                model = fit_model(federation, Settings(goal=goal))
                seconds = time.perf_counter() - start
                record: Record = {"method": goal, "split": way}
                record |= _measure(rows, model.coefficients, model.intercept)
                record |= {"lam": model.penalty}
                record |= upload_record(model.costs, rows.X.shape[1], len(federation.sites))
                yield record | {"seconds": seconds, "status": model.status.name.lower()}

    conclude = staticmethod(real_lines)


def _measure(rows: SplitRows, coefficients: Array, intercept: float) -> Record:
    """Return the error on the test rows, and the columns that the model uses."""
    error = rows.test_y - rows.test_X @ coefficients - intercept
    used = np.abs(coefficients) * rows.X.std(axis=0) > MIN_EFFECT * rows.y.std()
    support = ",".join(map(str, np.flatnonzero(used)))
    mse = float((error * error).mean())
    return {"test_mse": mse, "active": int(used.sum()), "support": support}
