"""A results folder: one Parquet part per replicate, a manifest, and the failures.

``manifest.json``, ``parts/SCENARIO/NUMBER-CHECKSUM.parquet``, ``failures/SCENARIO/NUMBER.txt``.
A part is renamed into place with the hash of its bytes in its name, so it is complete or absent.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fedlasso.atomic_files import write_atomically
from fedlasso.errors import FedLassoError
from fedlasso.study.manifest import Manifest
from fedlasso.study.record_columns import COLUMNS

if TYPE_CHECKING:
    from fedlasso.study.outcomes import Record

Task = tuple[str, int]


def to_parquet(records: Sequence[Record]) -> bytes:
    """Return records of one replicate as the bytes of a Parquet file; missing values are null."""
    names = dict.fromkeys(name for record in records for name in record)
    columns = {name: [record.get(name) for record in records] for name in names}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, compression="zstd")
    data: bytes = sink.getvalue().to_pybytes()
    return data


class Store:
    """A results folder, which `fedlasso study run` fills and reports read."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.manifest_file = self.folder / "manifest.json"

    def manifest(self) -> Manifest:
        """Read what was run, with which code, versions, seeds and machine."""
        file = self.manifest_file
        try:
            manifest = msgspec.json.decode(file.read_bytes(), type=Manifest)
        except FileNotFoundError:
            remedy = "name the folder that `fedlasso study run` wrote"
            raise FedLassoError(f"{self.folder} holds no study; {remedy}") from None
        except OSError as error:
            raise FedLassoError(f"cannot read {file}: {error.strerror}") from error
        except msgspec.ValidationError as error:
            raise FedLassoError(f"{file} is not the manifest of a study: {error}") from error
        except msgspec.DecodeError as error:
            raise FedLassoError(f"{file} is damaged: {error}") from error
        # Reports then know the columns that a plug-in has added.
        for field in manifest.metrics:
            COLUMNS.setdefault(field.name, field)
        return manifest

    def open(self, manifest: Manifest, *, allow_code_change: bool = False) -> str:
        """Start or resume a study; return a notice if the processor differs, else "".

        More replicates or scenarios extend a study. Other differences are refused, except those of
        code and versions if allowed; they are recorded.
        """
        if self.manifest_file.exists():
            old = self.manifest()
            manifest = old.extended(manifest, self.folder, allow_code_change=allow_code_change)
        write_atomically(self.manifest_file, manifest.text().encode())
        changed = manifest.runs[-1].another_processor
        return changed and (
            f"{self.folder} was computed on another kind of processor: {changed}; stored "
            "replicates are kept, and new ones agree with them to rounding, not to the last bit"
        )

    def parts(self) -> dict[Task, Path]:
        """Return the files of finished replicates, without reading them."""
        return {
            (path.parent.name, int(path.name.partition("-")[0])): path
            for path in sorted(self.folder.glob("parts/*/*-*.parquet"))
        }

    def drop_damaged(self) -> None:
        """Remove parts whose bytes do not match their checksum."""
        for path in self.parts().values():
            if _checksum(path.read_bytes()) != path.stem.partition("-")[2]:
                path.unlink()

    def write_part(self, task: Task, data: bytes) -> None:
        scenario, number = task
        name = f"{number:04d}-{_checksum(data)}.parquet"
        write_atomically(self.folder / "parts" / scenario / name, data)
        self._failure_file(task).unlink(missing_ok=True)

    def write_failure(self, task: Task, text: str) -> None:
        """Record why a replicate failed; it is tried again on resume."""
        write_atomically(self._failure_file(task), text.encode())

    def failures(self) -> dict[Task, str]:
        """Return failed replicates and their errors."""
        return {
            (path.parent.name, int(path.stem)): path.read_text()
            for path in sorted(self.folder.glob("failures/*/*.txt"))
        }

    def table(self, record: str = "outcome") -> pd.DataFrame:
        """Return all rows of one kind of record, in the order of scenarios and replicates.

        Polars and DuckDB can read the files ``DIR/parts/*/*.parquet`` too.
        """
        return self.tables([record])[record]

    def tables(self, records: Sequence[str]) -> dict[str, pd.DataFrame]:
        """Return rows of several kinds of record, reading every part once."""
        parts = sorted(self.parts().items())
        names = self.manifest().scenarios
        paths = [path for name in names for (own, _), path in parts if own == name]
        if not paths:
            return {record: pd.DataFrame() for record in records}
        # Threads read parts in parallel: Parquet is decoded without the interpreter's lock.
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            read = list(threads.map(_read, paths))
        # Filtering one chunk per column is far faster than one per part.
        whole = pa.concat_tables(read, promote_options="permissive").combine_chunks()
        frames: dict[str, pd.DataFrame] = {}
        for record in records:
            table = whole.filter(pa.compute.equal(whole["record"], record))
            empty = [name for name in table.column_names if table[name].null_count == len(table)]
            frames[record] = table.drop_columns(empty).to_pandas()
        return frames

    def status(self) -> str:
        """Return how many replicates are finished, and which fits met their tolerance."""
        manifest = self.manifest()
        tasks = [(s, r) for s in manifest.scenarios for r in range(manifest.replicates)]
        parts = self.parts()
        lines = [f"replicates: {sum(t in parts for t in tasks)} of {len(tasks)} finished"]
        if failures := self.failures():
            lines[0] += f", {len(failures)} failed"
        if parts:
            tables = self.tables(["reference", "penalty"])
            exact = "exact pooled Lasso fits (stationarity <= 1e-9)"
            lines += _met(exact, tables["reference"], "stationarity")
            exact = "exact penalty paths of sites (gap <= 1e-10)"
            lines += _met(exact, tables["penalty"], "worst_gap")
        return "\n".join(lines)

    def _failure_file(self, task: Task) -> Path:
        return self.folder / "failures" / task[0] / f"{task[1]:04d}.txt"


def _met(what: str, rows: pd.DataFrame, worst: str) -> list[str]:
    if rows.empty:
        return []
    missed = rows[~rows["met"].astype(bool)]
    line = f"{what}: {len(rows) - len(missed)} of {len(rows)} (worst {rows[worst].max():.1e})"
    return [line] + [f"  not met: {row.scenario} {row.replicate}" for row in missed.itertuples()]


def _read(path: Path) -> pa.Table:
    try:
        return pq.ParquetFile(path).read(use_threads=False)
    except (OSError, pa.ArrowException) as error:
        remedy = "run `fedlasso study run` again to replace damaged parts"
        raise FedLassoError(f"cannot read {path}: {error}; {remedy}") from error


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
