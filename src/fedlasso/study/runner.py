"""Run a study's replicates on any executor, and store each one as soon as it is finished."""

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
from fedlasso.study.plugins import Plugin
from fedlasso.study.record_columns import COLUMNS
from fedlasso.study.scenario import Scenario

if TYPE_CHECKING:
    from fedlasso.study.store import Store, Task

# Pairs of study and scenario that this process has run before.
_WARM: set[tuple[str, str]] = set()


class Study(Protocol):
    """A study definition: a frozen dataclass of settings, a seed among them, and a replicate."""

    name: ClassVar[str]

    def replicate(self, scenario: Scenario, number: int) -> list[Record]:
        """Return all records of one replicate: a pure function of (study, scenario, number)."""


def run_replicate(
    plugins: Sequence[Plugin],
    study: Study,
    scenario: Scenario,
    number: int,
    metrics: Mapping[str, TrialMeasure],
) -> bytes | str:
    """Return one replicate as Parquet, or its traceback; runs in a worker, in one BLAS thread.

    Plug-ins come first: unpickling them imports what the study and the metrics may refer to.
    """
    from fedlasso.study.store import to_parquet

    # A new worker does not know metrics added from outside.
    METRICS.update(metrics)
    try:
        with threadpool_limits(1):
            warm_up(study, scenario, number)
            return to_parquet(study.replicate(scenario, number))
    except Exception:
        return traceback.format_exc()


def warm_up(study: Study, scenario: Scenario, number: int) -> None:
    """Compute a small replicate first, once per process and scenario.

    Otherwise the first replicates' seconds would include compiling and loading code. A tenth of the
    rows and columns selects the same kernels as the full size.
    """
    known = (study.name, scenario.name)
    if known in _WARM:
        return
    _WARM.add(known)
    tenths: dict[str, Any] = {
        name: math.ceil(getattr(scenario, name) / 10) for name in ("p", "nonzeros", "deviations")
    }
    tenths["sizes"] = tuple(math.ceil(size / 10) for size in scenario.sizes)
    test = 2 * len(scenario.sizes)
    small = replace(scenario, **tenths, validation=test + scenario.validation // 10, test=test)
    # Errors that matter recur in the replicate itself, where they are recorded.
    with suppress(Exception):
        study.replicate(small, number)


@dataclass
class Progress:
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
    plugins: Sequence[Plugin] = (),
    listen: Listener = lambda progress: None,
    notify: Notify = lambda notice: None,
) -> Progress:
    """Run the replicates that are not finished, and store every one as it finishes.

    Parameters
    ----------
    engine : ``"processes"``, ``"dask"`` (a local cluster) or a scheduler such as ``tcp://host:8786``
    workers : processes, or workers of the local cluster; by default one per core
    plugins : imported modules that workers must import too
    listen : called with the progress whenever it changes
    notify : called with one line if the study resumes on another kind of processor
    """
    if replicates < 1:
        raise FedLassoError(f"replicates is {replicates}; give a whole number, 1 or more")
    if not workers:
        # Cores available to this process, or all cores if the system does not report them.
        cores = getattr(os, "sched_getaffinity", lambda pid: range(os.cpu_count() or 1))
        workers = len(cores(0))
    by_name = {scenario.name: scenario for scenario in scenarios}
    settings = msgspec.json.decode(msgspec.json.encode(study))
    code = describe_code() | {f"import {plugin.name}": plugin.digest for plugin in plugins}
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    run = StudyRun(started, engine, workers, code["hash"], describe_machine())
    metrics = tuple(COLUMNS[name] for name in METRICS)
    named = {"name": study.name, **settings}
    manifest = Manifest(named, by_name, replicates, code, (run,), metrics)
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
            executor.submit(run_replicate, plugins, study, by_name[s], r, dict(METRICS)): (s, r)
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
            "a worker process died, possibly out of memory; finished replicates are kept: "
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
    """Open the executor of an engine."""
    if engine == "processes":
        # Windows has no fork server.
        methods = multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        # The fork server imports what every worker needs once for all of them.
        context.set_forkserver_preload([__name__, "fedlasso.study.store"])
        # Workers ignore Ctrl-C: the parent stores what is finished and stops them.
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
        known = "processes, dask or a scheduler's address"
        raise FedLassoError(f"no engine is called {engine!r}; use {known}")


def _dask_client(engine: str, workers: int) -> Any:
    try:
        from distributed import Client
    except ImportError as error:
        remedy = "install it with: pip install 'fedlasso[dask]'"
        raise FedLassoError(f"Dask is not installed; {remedy}") from error
    if engine == "dask":
        # A free port: the default one may be in use by another cluster.
        return Client(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0")
    try:
        return Client(engine, timeout="10s")
    except (OSError, TimeoutError) as error:
        remedy = "start one with `dask scheduler`"
        raise FedLassoError(f"no Dask scheduler answers at {engine}; {remedy}") from error
