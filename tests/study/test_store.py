"""Runs, resumes and refusals."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import distributed
import pandas as pd
import pytest
from helpers.study.small import OTHER, SMALL, STUDY, Broken

import fedlasso
from fedlasso import FedLassoError
from fedlasso.deploy.nvflare.local import reserve_port
from fedlasso.study import PaperStudy, Progress, Store, run_study
from fedlasso.study.manifest import ROOMS, UNHASHED, code_hash, describe_code, describe_machine
from fedlasso.study.runner import open_executor, run_replicate


def untimed(store: Store) -> pd.DataFrame:
    frame = store.table()
    return frame[[c for c in frame if not c.startswith("seconds")]]


@contextmanager
def thread(engine: str, workers: int) -> Iterator[Executor]:
    """Replicates in this process: what a store keeps does not depend on who computes it."""
    with ThreadPoolExecutor(1) as pool:
        yield pool


Engine = Callable[[str, int], Any]


def run(
    folder: Path, study: PaperStudy = STUDY, executor: Engine = thread, **options: Any
) -> Store:
    store = Store(folder)
    options.setdefault("workers", 1)
    with patch("fedlasso.study.runner.open_executor", executor):
        run_study(study, options.pop("scenarios", [SMALL, OTHER]), options.pop("replicates", 3),
                  store, **options)  # fmt: skip
    return store


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return run(tmp_path_factory.mktemp("finished"), executor=open_executor)


@pytest.mark.standard
def test_one_worker_is_two_workers_or_a_thread(finished: Store, tmp_path: Path) -> None:
    two = run(tmp_path / "two", executor=open_executor, workers=2)
    assert untimed(two).to_csv() == untimed(finished).to_csv()
    assert untimed(run(tmp_path / "thread")).to_csv() == untimed(finished).to_csv()


def test_rerunning_computes_nothing_again(finished: Store) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.parts().values()}
    run(finished.folder)
    assert {path: path.stat().st_mtime_ns for path in finished.parts().values()} == before


def test_damaged_parts_are_found_and_recomputed(finished: Store, tmp_path: Path) -> None:
    store = run(tmp_path)
    first, second, *_ = store.parts().values()
    first.write_bytes(first.read_bytes()[:-9])
    data = bytearray(second.read_bytes())
    data[len(data) // 2] ^= 1
    second.write_bytes(bytes(data))
    run(tmp_path)
    assert untimed(store).to_csv() == untimed(finished).to_csv()


def test_more_replicates_and_scenarios_extend_a_study(finished: Store, tmp_path: Path) -> None:
    run(tmp_path, scenarios=[SMALL], replicates=1)
    store = run(tmp_path)
    assert untimed(store).to_csv() == untimed(finished).to_csv()
    assert len(store.manifest().runs) == 2


def test_another_configuration_is_refused_with_what_differs(finished: Store) -> None:
    with pytest.raises(FedLassoError, match=r"seed was 7 and is 8.*another --out"):
        run(finished.folder, PaperStudy(seed=8, epochs=(1, 20), budgets=(30,)))
    with pytest.raises(FedLassoError, match=r"epochs was \[1, 20\] and is \[1\]"):
        run(finished.folder, PaperStudy(seed=7, epochs=(1,), budgets=(30,)))
    changed = type(SMALL)("small", sizes=(20, 16, 12), p=31, nonzeros=4)
    with pytest.raises(FedLassoError, match=r"another scenario 'small': p was 30 and is 31"):
        run(finished.folder, scenarios=[changed])


def test_other_code_is_refused_unless_allowed_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, scenarios=[SMALL], replicates=1)
    real = describe_code()
    monkeypatch.setattr("fedlasso.study.runner.describe_code", lambda: real | {"hash": "changed"})
    with pytest.raises(FedLassoError, match=r"hash was .* and is 'changed'; use --allow-code"):
        run(tmp_path, scenarios=[SMALL], replicates=2)
    store = run(tmp_path, scenarios=[SMALL], replicates=2, allow_code_change=True)
    assert [r.code for r in store.manifest().runs] == [real["hash"], "changed"]


def test_the_manifest_names_the_instruction_sets(finished: Store) -> None:
    machine = finished.manifest().runs[0].machine
    assert machine == describe_machine()
    for name in ("processor", "numba_target", "numba_features", "numpy_blas", "scipy_blas"):
        assert getattr(machine, name)


def pretend(store: Store, **machine: str) -> None:
    """Edit the manifest so that the last run was on such a machine."""
    manifest = json.loads(store.manifest_file.read_text())
    manifest["runs"][-1]["machine"] |= machine
    store.manifest_file.write_text(json.dumps(manifest))


def test_going_on_on_another_kind_of_processor_is_told_and_recorded(
    finished: Store, tmp_path: Path
) -> None:
    reported: list[str] = []
    store = run(tmp_path, replicates=1, notify=reported.append)
    run(tmp_path, replicates=1, notify=reported.append)
    assert reported == []
    pretend(store, processor="Abacus 3000", numpy_blas="openblas Abacus")
    kept = {path: path.stat().st_mtime_ns for path in store.parts().values()}
    run(tmp_path, notify=reported.append)
    (notice,) = reported
    assert "another kind of processor: processor was 'Abacus 3000' and is " in notice
    assert "numpy_blas was 'openblas Abacus'" in notice
    assert "\n" not in notice
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert untimed(store).to_csv() == untimed(finished).to_csv()
    first, second, third = store.manifest().runs
    assert first.another_processor == second.another_processor == ""
    assert third.another_processor
    assert third.another_processor in notice
    # The next run is on the processor of the last one.
    run(tmp_path, notify=reported.append)
    assert len(reported) == 1


def test_a_manifest_without_instruction_sets_is_compared_by_what_it_has(tmp_path: Path) -> None:
    reported: list[str] = []
    store = run(tmp_path, scenarios=[SMALL], replicates=1)
    manifest = json.loads(store.manifest_file.read_text())
    machine = manifest["runs"][0]["machine"]
    manifest["runs"][0]["machine"] = {k: machine[k] for k in ("system", "processor", "cores")}
    store.manifest_file.write_text(json.dumps(manifest))
    run(tmp_path, scenarios=[SMALL], replicates=1, notify=reported.append)
    assert reported == []


def test_failures_are_recorded_retried_and_never_counted_as_done(
    finished: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Progress] = []
    broken = Broken(seed=7, epochs=(1, 20), budgets=(30,))
    store = Store(tmp_path)
    run(tmp_path, broken, listen=seen.append)
    assert (seen[-1].done, seen[-1].failed) == (5, 1)
    assert "ZeroDivisionError" in store.failures()["small", 1]
    assert ("small", 1) not in store.parts()
    assert "5 of 6 finished, 1 failed" in store.status()
    run(tmp_path)
    assert store.failures() == {}
    assert untimed(store).to_csv() == untimed(finished).to_csv()


def test_a_full_disk_is_one_clear_error_and_keeps_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = 0

    def full(descriptor: int) -> None:
        nonlocal writes
        writes += 1
        if writes > 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(
        FedLassoError, match=r"cannot write .*No space left on device; what is finished"
    ):
        run(tmp_path)
    assert len(Store(tmp_path).parts()) == 2
    assert not list(tmp_path.rglob(".*"))


def test_a_file_in_the_way_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FedLassoError, match="cannot write"):
        run(tmp_path / "file")


def test_folders_that_hold_no_study_say_so(tmp_path: Path) -> None:
    with pytest.raises(FedLassoError, match="holds no study"):
        Store(tmp_path).table()
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(FedLassoError, match="not the manifest"):
        Store(tmp_path).manifest()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"replicates": "many"}, "not the manifest of a study: Expected `int`, got `str`"),
        ({"study": {"seed": 1}}, "the study has no name or no seed"),
        ({"runs": []}, "there is no run"),
        ({"runs": [{"started": "now"}]}, "missing required field `engine`"),
        ({"scenarios": {"small": {"name": "small", "snr": -1.0}}}, r"snr > 0"),
    ],
)
def test_foreign_manifests_are_one_clear_error(
    finished: Store, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    manifest = json.loads(finished.manifest_file.read_text())
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | change))
    with pytest.raises(FedLassoError, match=message) as caught:
        Store(tmp_path).manifest()
    assert "\n" not in str(caught.value)


def test_a_truncated_manifest_is_called_damaged(finished: Store, tmp_path: Path) -> None:
    whole = finished.manifest_file.read_bytes()
    (tmp_path / "manifest.json").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FedLassoError, match=r"manifest.json is damaged"):
        Store(tmp_path).manifest()


def test_a_manifest_is_read_as_it_was_written(finished: Store) -> None:
    manifest = finished.manifest()
    assert manifest.scenarios == {"small": SMALL, "other": OTHER}
    assert manifest.text() == finished.manifest_file.read_text()


def test_only_the_rooms_that_compute_are_in_the_hash_of_the_code(tmp_path: Path) -> None:
    package = tmp_path / "fedlasso"
    shutil.copytree(Path(fedlasso.__file__).parent, package)
    before = code_hash(package)
    assert before == code_hash()
    for file in ("models/card.py", "estimators/glm.py", "cli/study.py", "report/figures.py",
                 "governance/policy.py", "tables/columns.py", "study/store.py"):  # fmt: skip
        edit(package / file)
    assert code_hash(package) == before
    for file in ("numerics/local_steps.py", "federation/ledger.py", "sites/site.py",
                 "procedures/secant.py", "fitting/rounds.py", "study/paper.py",
                 "study/outcomes.py", "study/scenario.py", "study/real.py",
                 "fitting/model.py"):  # fmt: skip
        old = code_hash(package)
        edit(package / file)
        assert code_hash(package) != old, file


def edit(file: Path) -> None:
    file.write_text(file.read_text() + "# edited\n")


def test_no_file_that_computes_imports_one_that_is_not_in_the_hash() -> None:
    """Only the table of columns, whose words are no numbers."""
    package = Path(fedlasso.__file__).parent
    for file in [file for room in ROOMS for file in (package / room).rglob("*.py")]:
        if file.stem in (*UNHASHED, "__init__"):
            continue
        for name in re.findall(r"^ *from fedlasso\.([\w.]+) import", file.read_text(), re.M):
            first, *rest = name.split(".")
            assert first in (*ROOMS, "errors", "atomic_files"), (file, name)
            assert first != "study" or rest[0] not in set(UNHASHED) - {"record_columns"}, (
                file,
                name,
            )


def test_parts_are_plain_parquet(finished: Store) -> None:
    one = pd.read_parquet(finished.parts()["small", 0])
    assert set(one["record"]) == {"outcome", "candidate", "reference", "penalty"}
    assert isinstance(run_replicate((), STUDY, SMALL, 0, {}), bytes)


def test_bad_engines_and_counts_are_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FedLassoError, match="no engine is called 'spark'"):
        run(tmp_path / "a", executor=open_executor, engine="spark")
    with pytest.raises(FedLassoError, match="replicates is 0"):
        run(tmp_path / "b", replicates=0)
    # Nobody listens at a port that is kept, so that a short patience is enough.
    client = distributed.Client
    monkeypatch.setattr(distributed, "Client", lambda at, timeout: client(at, timeout="100ms"))
    with reserve_port() as kept:
        nobody = f"tcp://127.0.0.1:{kept.getsockname()[1]}"
        with pytest.raises(FedLassoError, match="no Dask scheduler answers"):
            run(tmp_path / "c", executor=open_executor, engine=nobody)
