"""Server and three hospitals on this machine: the diabetes data, fitted over mutual TLS."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from sklearn.datasets import load_diabetes

from fedlasso.deploy.nvflare.kit import open_audit
from fedlasso.deploy.nvflare.line import connect
from fedlasso.deploy.nvflare.local import LocalFederation
from fedlasso.deploy.run import begin_plan, run_plan
from fedlasso.deploy.tell import tell_fit
from fedlasso.federation import Listen
from fedlasso.models import (
    FileSource,
    FitPlan,
    NetworkSource,
    Settings,
    make_model,
    open_sites,
    write_model,
)

HOSPITALS = ("east", "north", "west")
TARGET = "target"
SETTINGS = Settings(goal="prediction")
MODEL = ("coefficients.csv", "model.json", "card.html")


def write_hospitals(folder: Path) -> dict[str, Path]:
    """The diabetes data as three files."""
    frame = load_diabetes(as_frame=True).frame
    paths = {name: folder / f"{name}.csv" for name in HOSPITALS}
    for k, path in enumerate(paths.values()):
        frame.iloc[k::3].to_csv(path, index=False)
    return paths


def run_demo(keep: Path | None, listen: Listen) -> int:
    """Fit, show, compare with the same fit in one process, clean up.

    Parameters
    ----------
    keep : a folder that stays
    listen : who is told of every question
    """
    began = time.monotonic()
    with ExitStack() as stack:
        base = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fedlasso-")))
        base.mkdir(parents=True, exist_ok=True)
        tables = write_hospitals(base)
        print(f"Three hospitals in {base}; kits, server and sites on this machine, mutual TLS")
        local = stack.enter_context(LocalFederation(base / "project", tables))
        print(f"Server and {len(tables)} sites are up after {time.monotonic() - began:.0f} s")
        out = base / "model"
        begin_plan(out, FitPlan(SETTINGS, NetworkSource(str(local.folder), "", TARGET)))
        print(tell_fit(out, run_plan(out, connect, listen=listen)))
        alone = base / "alone"
        files = tuple(str(path) for path in tables.values())
        sites, schema = open_sites(FileSource(files, TARGET))
        write_model(alone, make_model(sites, SETTINGS, schema))
        same = all((out / n).read_bytes() == (alone / n).read_bytes() for n in MODEL)
        print(f"`fedlasso fit` on the three files: {'the same bytes' if same else 'DIFFERS'}")
        print("What has left the hospital 'north', by its own audit (`fedlasso site audit`):")
        entries = list(open_audit(local.kit("north")).entries())
        for e in entries[:4]:
            print(f"  {e.number:3d} {e.time} {e.question:16s} {e.payload:6d} bytes {e.sha256[:16]}")
        print(f"  ... {len(entries)} lines, chain unbroken")
        print(
            f"The model's card: {out / 'card.html'}"
            + ("" if keep else ", gone now; `--keep FOLDER` keeps it")
        )
    print(f"All stopped and cleaned up after {time.monotonic() - began:.0f} s")
    return 0 if same else 1
