"""Sites from files, one file at a time and each record held once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from fedlasso.errors import FedLassoError
from fedlasso.federation import InProcess
from fedlasso.models.plan import FileSource
from fedlasso.sites import Memory, Site
from fedlasso.tables import File, Schema, agree, describe, encode_file, refuse_missing


def open_sites(
    source: FileSource, memory: Path | None = None, say: Callable[[str], None] = lambda text: None
) -> tuple[InProcess, Schema]:
    """Read every file into sites of a federation, and say how the columns were agreed on.

    Parameters
    ----------
    source : the files
    memory : a folder in which sites keep what must outlive the process
    say : called with one line per site
    """
    if source.site_column is not None and len(source.files) > 1:
        raise FedLassoError("--site-column tells the sites of one table apart; give one file")
    files = [
        File(Path(path), source.site_column, name)
        for path, name in zip(source.files, names_of(source.files), strict=True)
    ]
    for name in source.drop:
        if not any(name in file.names for file in files):
            raise FedLassoError(f"no file has a column {name!r} to drop")
    leave_out = [*source.drop, *filter(None, [source.site_column])]
    schema = agree([describe(file, source.target, leave_out) for file in files])
    sites: list[Site] = []
    gaps = []
    for i, file in enumerate(files):
        for part in encode_file(file, schema):
            gaps.append(part)
            # With values missing elsewhere there will be no fit, only the whole list of them.
            if source.missing == "mean" or not any(g.missing for g in gaps):
                folder = None if memory is None else memory / _safe(part.site)
                sites.append(
                    Site(
                        part.site,
                        part.X,
                        part.y,
                        columns=schema.encoded,
                        raw=True,
                        copy=False,
                        memory=Memory(folder),
                    )
                )
                say(f"read {part.site}: {len(part.y)} rows ({i + 1} of {len(files)} files)")
    if source.missing == "refuse":
        refuse_missing(gaps)
    return InProcess(sites), schema


def names_of(files: Sequence[str]) -> list[str]:
    """File names without their endings where those differ, else whole paths."""
    stems = [Path(file).stem for file in files]
    return stems if len(set(stems)) == len(stems) else [str(file) for file in files]


def _safe(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:16]
