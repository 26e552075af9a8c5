"""Runs a study's replicates on any executor, and keeps each one as soon as it is finished."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec
from threadpoolctl import threadpool_limits

from fedlasso.errors import FedLassoError
from fedlasso.federation.ledger import Notify
from fedlasso.study.manifest import Manifest, StudyRun, describe_code, describe_machine
from fedlasso.study.outcomes import METRICS, Record, TrialMeasure
from fedlasso.study.scenario import Scenario

if TYPE_CHECKING:
    from fedlasso.study.store import Store, Task


# Studies and scenarios whose code this process has used before.
_WARM: set[tuple[str, str]] = set()


class Study(Protocol):
    """A study definition: a frozen dataclass of settings, a seed among them, and a replicate."""

    name: ClassVar[str]

    def replicate(self, scenario: Scenario, number: int) -> list[Record]:
        """All records of one replicate: a pure function of (study, scenario, number)."""


def run_replicate(
    study: Study, scenario: Scenario, number: int, metrics: Mapping[str, TrialMeasure]
) -> bytes | str:
    """One replicate in one BLAS thread as Parquet, or its error; runs in a worker, near or far."""
    from fedlasso.study.store import to_parquet

    # A worker that has just begun does not know the metrics that were added from outside.
    METRICS.update(metrics)
    try:
        with threadpool_limits(1):
            warm_up(study, scenario, number)
            return to_parquet(study.replicate(scenario, number))
    except Exception:
        return traceback.format_exc()


def warm_up(study: Study, scenario: Scenario, number: int) -> None:
    """Compute a small replicate first, once per process and scenario.

    Code that is compiled or loaded at its first use would otherwise be part of the seconds that the
    first replicates report. A tenth of the rows and columns chooses between kernels as all do.
    """
    known = (study.name, scenario.name)
    if known in _WARM:
        return
    _WARM.add(known)
    small = replace(
        scenario,
        sizes=tuple(math.ceil(size / 10) for size in scenario.sizes),
        p=math.ceil(scenario.p / 10),
        nonzeros=math.ceil(scenario.nonzeros / 10),
        deviations=math.ceil(scenario.deviations / 10),
        validation=2 * len(scenario.sizes) + scenario.validation // 10,
        test=2 * len(scenario.sizes),
    )
    # What fails here and matters fails again, and is told, when it counts.
    with suppress(Exception):
        study.replicate(small, number)


@dataclass
class Progress:
    """How far a run is."""

    total: int
    done: int = 0
    failed: int = 0


Listener = Callable[[Progress], None]


def run_study(
    study: Study,
    scenarios: Sequence[Scenario],
    replicates: int,
    store: Store,
    *,
    engine: str = "processes",
    workers: int | None = None,
    allow_code_change: bool = False,
    listen: Listener = lambda progress: None,
    notify: Notify = lambda notice: None,
) -> Progress:
    """Run what is not finished yet, and keep every replicate as it finishes.

    Parameters
    ----------
    engine : ``"processes"``, ``"dask"`` (a local cluster) or a scheduler such as ``tcp://host:8786``
    workers : processes, or workers of the local cluster; by default one per core
    listen : called with the progress whenever it changes
    tell : called with one line when the study goes on on another kind of processor
    """
    if replicates < 1:
        raise FedLassoError(f"replicates is {replicates}; give a whole number, 1 or more")
    if not workers:
        # Cores that this process may use; all of the machine's where the system does not say.
        cores = getattr(os, "sched_getaffinity", lambda pid: range(os.cpu_count() or 1))
        workers = len(cores(0))
    by_name = {scenario.name: scenario for scenario in scenarios}
    settings = msgspec.json.decode(msgspec.json.encode(study))
    code = describe_code()
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    run = StudyRun(started, engine, workers, code["hash"], describe_machine())
    manifest = Manifest({"name": study.name, **settings}, by_name, replicates, code, (run,))
    if notice := store.open(manifest, allow_code_change=allow_code_change):
        notify(notice)
    store.drop_damaged()
    finished = store.parts()
    tasks = [(s, r) for s in by_name for r in range(replicates)]
    left = [task for task in tasks if task not in finished]
    progress = Progress(len(tasks), len(tasks) - len(left))
    listen(progress)
    with open_executor(engine, workers) as executor:
        futures = {
            executor.submit(run_replicate, study, by_name[s], r, dict(METRICS)): (s, r)
            for s, r in left
        }
        for future in as_completed(futures):
            _keep(store, futures[future], future, progress)
            listen(progress)
    return progress


def _keep(store: Store, task: Task, future: Future[bytes | str], progress: Progress) -> None:
    try:
        outcome = future.result()
    except BrokenExecutor as error:
        raise FedLassoError(
            "a worker process died, perhaps for want of memory; what is finished is kept: "
            "run the same command again, with fewer --workers if it happens again"
        ) from error
    except Exception as error:
        outcome = f"{type(error).__name__}: {error}"
    if isinstance(outcome, bytes):
        store.write_part(task, outcome)
        progress.done += 1
    else:
        store.write_failure(task, outcome)
        progress.failed += 1


@contextmanager
def open_executor(engine: str, workers: int) -> Iterator[Executor]:
    """An executor for an engine's name."""
    if engine == "processes":
        # Workers leave Ctrl-C to the parent, which keeps what is finished and stops them.
        # Windows has no fork server; its workers start from nothing.
        methods = multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        # The fork server imports what every worker needs once for all of them.
        context.set_forkserver_preload([__name__, "fedlasso.study.store"])
        ignoring = (signal.SIGINT, signal.SIG_IGN)
        pool = ProcessPoolExecutor(workers, context, initializer=signal.signal, initargs=ignoring)
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)
    elif engine == "dask" or "://" in engine:
        with _dask_client(engine, workers) as client:
            executor = client.get_executor(pure=False)
            try:
                yield executor
            finally:
                executor.shutdown(wait=False)
    else:
        raise FedLassoError(
            f"no engine is called {engine!r}; use processes, dask or a scheduler's address"
        )


def _dask_client(engine: str, workers: int) -> Any:
    try:
        from distributed import Client
    except ImportError as error:
        raise FedLassoError(
            "Dask is not installed; install it with: pip install 'fedlasso[dask]'"
        ) from error
    if engine == "dask":
        # Any free port will do: the usual one may be another cluster's.
        return Client(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0")
    try:
        return Client(engine, timeout="10s")
    except (OSError, TimeoutError) as error:
        raise FedLassoError(
            f"no Dask scheduler answers at {engine}; start one with `dask scheduler`"
        ) from error
