"""Small data files for federations of real processes, and the same federation in one process."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from fedlasso import InProcess
from fedlasso.atomic_files import write_atomically
from fedlasso.cli import main
from fedlasso.deploy.kit import open_audit
from fedlasso.deploy.schemas import write_schema
from fedlasso.deploy.site_data import TableRecords
from fedlasso.governance import Lifetime, Policy
from fedlasso.governance.cuts import recall_cut
from fedlasso.governance.door_messages import Open
from fedlasso.models import read_document, write_model
from fedlasso.tables import Column, Schema

# Seconds that one question may take when somebody is known to be silent: sites that have answered
# before answer at once, and the server notices by itself after 16 to 30 seconds.
SHORT = 15.0
MODEL = ("coefficients.csv", "model.json", "card.html")
SECRET = "patient-4711-0815"
SITES = ("a", "b", "c")
FIT = "ab" * 8
# The secret of every site in tests without an engine.
KEY = b"key"
COLUMNS = tuple(f"x{k:02d}" for k in range(12))


def write_tables(folder: Path, rows: int = 120, mixed: bool = False) -> dict[str, Path]:
    """One file per site, columns in a different order at each.

    Mixed tables have text and missing values too.
    """
    rng = np.random.default_rng(0)
    b = np.zeros(len(COLUMNS))
    b[:4] = (1.0, -1.0, 0.5, 0.5)
    paths = {}
    for k, site in enumerate(SITES):
        X = rng.standard_normal((rows + 10 * k, len(COLUMNS)))
        frame = pd.DataFrame(X, columns=COLUMNS)
        frame["y"] = X @ b + rng.standard_normal(len(X))
        frame["note"] = SECRET
        if mixed:
            _mix(frame, site)
        order = rng.permutation(frame.columns)
        paths[site] = folder / f"{site}.csv"
        frame[list(order)].to_csv(paths[site], index=False)
    return paths


def _mix(frame: pd.DataFrame, site: str) -> None:
    """Add a ward, whose levels are rare at some sites, and a weight that was not always taken."""
    rng = np.random.default_rng(len(frame))
    wards = rng.choice(["east", "north", "south"], len(frame)).astype(object)
    # At site a many rows have the level west and at b few; rare-* has few rows at every site.
    wards[: 30 if site == "a" else 4] = "west"
    wards[-3:] = f"rare-{site}"
    wards[[40, 44, 50, 52, 55, 61]] = None
    frame["ward"] = wards
    weight = rng.normal(70.0, 9.0, len(frame))
    weight[[7, 30, 33, 60, 70, 80]] = np.nan
    frame["weight"] = weight
    frame["y"] += (frame["ward"] == "north") - 0.05 * (frame["weight"].fillna(70.0) - 70.0)


def numbers(columns: tuple[str, ...] = COLUMNS, target: str = "y") -> Schema:
    """What columns hold that are all numbers."""
    return Schema(target, tuple(Column(name, "number") for name in columns))


def opening(schema: Schema | None = None, /, **changes: Any) -> Open:
    """A fit to join, of all columns that are numbers by default."""
    schema = schema or numbers()
    names = tuple(column.name for column in schema.columns)
    given: dict[str, Any] = {
        "fit": FIT, "target": schema.target, "columns": names, "sites": SITES, "fingerprints": (),
        "schema": write_schema(schema), "missing": "refuse", "na": (),
    }  # fmt: skip
    return Open(**(given | changes))


def in_process(
    tables: dict[str, Path],
    join: Open | None = None,
    kits: Mapping[str, Path] = MappingProxyType({}),
) -> InProcess:
    """The same sites in this process, which draw their splits with the same secrets as doors do.

    Kits have the cuts of the data files' rows, if others have fitted before.
    """
    rare = Policy().rare
    sites = []
    for name, path in tables.items():
        records = TableRecords(path, KEY)
        site = records.site(name, join or opening(), rare)
        if name in kits:
            recall_cut(site, Lifetime.of(open_audit(kits[name]), records.fingerprint))
        sites.append(site)
    return InProcess(sites)


def run(*arguments: object) -> int:
    """The command's exit code."""
    return main([str(a) for a in arguments])


def fit_files(tables: dict[str, Path], out: Path, *options: object) -> Path:
    """The model that the files give without a network."""
    files = [tables[site] for site in SITES]
    common = ["--target", "y", "--drop", "note", "--no-compare", "--out", out]
    assert run("fit", *files, *common, *options) == 0
    return out


def fit_alike(
    tables: dict[str, Path],
    out: Path,
    *options: object,
    compare: bool = False,
    federation: Any = None,
) -> Path:
    """The same of files whose rows are split, and whose levels are pooled, as sites do."""
    from fedlasso.deploy.run import repeat_fit

    plain = fit_files(tables, out.with_name(f"{out.name}-plain"), *options)
    document = read_document(plain / "model.json")
    kits = {} if federation is None else {name: federation.kit(name) for name in tables}
    write_model(out, repeat_fit(document, tables, dict.fromkeys(tables, KEY), compare, kits))
    return out


def share_key(federation: Any) -> None:
    """Give the sites of a federation the secret that files are split by here."""
    for site in federation.project.sites:
        write_atomically(federation.kit(site) / "books" / "key", KEY, private=True)


def same_files(one: Path, other: Path) -> bool:
    """Whether two model folders hold the same model, byte for byte."""
    return all(_content(one / name) == _content(other / name) for name in MODEL)


def _content(file: Path) -> bytes:
    """The bytes of a file; of a card those before the hashes of files, which a network has not."""
    return file.read_bytes().partition(b"<h2>Versions and data</h2>")[0]


def open_to_others(folder: Path) -> list[str]:
    """What somebody else could read, write or enter, by its own mode alone."""
    paths = [folder, *folder.rglob("*")]
    return [str(path) for path in paths if path.lstat().st_mode & 0o077]
