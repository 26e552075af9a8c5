"""A results folder: one checked Parquet part per replicate, a manifest, and the failures.

``manifest.json``, ``parts/SCENARIO/NUMBER-CHECKSUM.parquet``, ``failures/SCENARIO/NUMBER.txt``.
A part's name carries the hash of its bytes and appears in one rename, so a part is whole or absent.
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

if TYPE_CHECKING:
    from fedlasso.study.outcomes import Record

Task = tuple[str, int]


def to_parquet(records: Sequence[Record]) -> bytes:
    """Records of one replicate as the bytes of a Parquet file; a missing quantity is null."""
    names = dict.fromkeys(name for record in records for name in record)
    columns = {name: [record.get(name) for record in records] for name in names}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, compression="zstd")
    data: bytes = sink.getvalue().to_pybytes()
    return data


class Store:
    """A results folder."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.manifest_file = self.folder / "manifest.json"

    def manifest(self) -> Manifest:
        """What was run, with which code, versions, seeds and machine."""
        file = self.manifest_file
        try:
            return msgspec.json.decode(file.read_bytes(), type=Manifest)
        except FileNotFoundError:
            raise FedLassoError(
                f"{self.folder} holds no study; name the folder that `fedlasso study run` wrote"
            ) from None
        except OSError as error:
            raise FedLassoError(f"cannot read {file}: {error.strerror}") from error
        except msgspec.ValidationError as error:
            raise FedLassoError(f"{file} is not the manifest of a study: {error}") from error
        except msgspec.DecodeError as error:
            raise FedLassoError(f"{file} is damaged: {error}") from error

    def open(self, manifest: Manifest, *, allow_code_change: bool = False) -> str:
        """Start a study here or resume one; refuse to mix rows that do not belong together.

        More replicates or more scenarios extend a study. Anything else that differs is refused,
        except, if allowed and then recorded, the code and the versions. Another kind of processor
        is recorded and told in the line returned, which is empty otherwise.
        """
        if self.manifest_file.exists():
            old = self.manifest()
            manifest = old.extended(manifest, self.folder, allow_code_change=allow_code_change)
        write_atomically(self.manifest_file, manifest.text().encode())
        changed = manifest.runs[-1].another_processor
        return changed and (
            f"{self.folder} was computed on another kind of processor: {changed}; what is "
            "kept stays, and what follows agrees with it to rounding, not to the last bit"
        )

    def parts(self) -> dict[Task, Path]:
        """Parts that are there, by their names alone."""
        return {
            (path.parent.name, int(path.name.partition("-")[0])): path
            for path in sorted(self.folder.glob("parts/*/*-*.parquet"))
        }

    def drop_damaged(self) -> None:
        """Remove parts whose bytes are not those that were written."""
        for path in self.parts().values():
            if _checksum(path.read_bytes()) != path.stem.partition("-")[2]:
                path.unlink()

    def write_part(self, task: Task, data: bytes) -> None:
        """Keep a finished replicate."""
        scenario, number = task
        name = f"{number:04d}-{_checksum(data)}.parquet"
        write_atomically(self.folder / "parts" / scenario / name, data)
        self._failure_file(task).unlink(missing_ok=True)

    def write_failure(self, task: Task, text: str) -> None:
        """Record why a replicate failed; it is tried again on resume."""
        write_atomically(self._failure_file(task), text.encode())

    def failures(self) -> dict[Task, str]:
        """Failed replicates and their errors."""
        return {
            (path.parent.name, int(path.stem)): path.read_text()
            for path in sorted(self.folder.glob("failures/*/*.txt"))
        }

    def table(self, record: str = "outcome") -> pd.DataFrame:
        """All rows of one kind of record, in the order of scenarios and replicates.

        Kinds: ``outcome``, ``candidate``, ``reference``, ``penalty``. The files behind it are plain
        Parquet: Polars and DuckDB read ``DIR/parts/*/*.parquet`` just as well.
        """
        return self.tables([record])[record]

    def tables(self, records: Sequence[str]) -> dict[str, pd.DataFrame]:
        """Rows of several kinds of record, reading every part once."""
        parts = sorted(self.parts().items())
        names = self.manifest().scenarios
        paths = [path for name in names for (own, _), path in parts if own == name]
        if not paths:
            return {record: pd.DataFrame() for record in records}
        # Threads read parts side by side: Parquet is decoded without the interpreter's lock.
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            read = list(threads.map(_read, paths))
        # One chunk per column is filtered far faster than one per part.
        whole = pa.concat_tables(read, promote_options="permissive").combine_chunks()
        frames: dict[str, pd.DataFrame] = {}
        for record in records:
            table = whole.filter(pa.compute.equal(whole["record"], record))
            empty = [name for name in table.column_names if table[name].null_count == len(table)]
            frames[record] = table.drop_columns(empty).to_pandas()
        return frames

    def _failure_file(self, task: Task) -> Path:
        return self.folder / "failures" / task[0] / f"{task[1]:04d}.txt"


def _read(path: Path) -> pa.Table:
    try:
        return pq.ParquetFile(path).read(use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise FedLassoError(
            f"cannot read {path}: {error}; `fedlasso study run` again replaces damaged parts"
        ) from error


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
