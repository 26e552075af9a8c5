"""The cut of a data file into atoms, kept beside its ledger for the life of the file.

Before the atoms is a byte: whether rows looked repeated when the file was cut. Other columns of a
later fit do not change that.
"""

from pathlib import Path

import numpy as np

from fedlasso.atomic_files import write_atomically
from fedlasso.errors import FedLassoError
from fedlasso.governance.lifetime import Lifetime, short_hash
from fedlasso.sites import Site
from fedlasso.sites.repeats import MANY_REPEATED
from fedlasso.sites.rows import name_draw


def name_cut(site: Site, split: str) -> str:
    """Return the name of a cut: that of the clusters, which are never separated, and its hash."""
    if split and not site.draw.secret:
        # Every seed draws other rows.
        return name_draw(split)
    return f"atoms {_name_clusters(site)} #{short_hash(site.draw.finest.tobytes())}"


def recall_cut(site: Site, lifetime: Lifetime) -> None:
    """Let a site's rows be cut as they were before, if they were."""
    path = _path(site, lifetime)
    if path.exists():
        kept = np.frombuffer(path.read_bytes(), np.uint8).astype(np.int64)
        if kept.size != site.table.n + 1:
            raise FedLassoError("the cut of this data file is damaged; restore it")
        site.draw.repeated = float(kept[0])
        site.draw.pinned = kept[1:]
    elif lifetime.knows("splits", f"atoms {_name_clusters(site)} "):
        raise FedLassoError(
            "the cut of this data file is missing, but the ledger refers to it; restore it"
        )


def keep_cut(site: Site, lifetime: Lifetime) -> None:
    """Write down how a site's rows are cut, unless that is written."""
    path = _path(site, lifetime)
    if not path.exists():
        repeated = site.draw.repeated >= MANY_REPEATED
        atoms = site.draw.finest.astype(np.uint8)
        write_atomically(path, bytes([repeated]) + atoms.tobytes(), private=True)


def _path(site: Site, lifetime: Lifetime) -> Path:
    return lifetime.path.with_suffix(f".{_name_clusters(site)}.atoms")


def _name_clusters(site: Site) -> str:
    clusters = site.draw.clusters
    return "rows" if clusters is None else short_hash(clusters.tobytes())[:16]
