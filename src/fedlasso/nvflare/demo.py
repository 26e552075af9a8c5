"""Server and three hospitals on this machine: the diabetes data, fitted over mutual TLS."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sklearn.datasets import load_diabetes

from fedlasso.federation import InProcess, Journal
from fedlasso.fit import fit
from fedlasso.nvflare.kit import site_audit
from fedlasso.nvflare.link import Opening
from fedlasso.nvflare.local import LocalFederation
from fedlasso.nvflare.records import TableRecords
from fedlasso.nvflare.run import Plan, begin_plan, read_plan, run_plan
from fedlasso.nvflare.tell import tell

HOSPITALS = ("east", "north", "west")


def write_hospitals(folder: Path) -> dict[str, Path]:
    """The diabetes data as three files, the response centred."""
    frame = load_diabetes(as_frame=True).frame
    frame["target"] -= frame["target"].mean()
    paths = {name: folder / f"{name}.csv" for name in HOSPITALS}
    for k, path in enumerate(paths.values()):
        frame.iloc[k::3].to_csv(path, index=False)
    return paths


def run_demo(keep: Path | None, listen: Callable[[Any], None]) -> int:
    """Fit, show, compare with the same fit in one process, clean up."""
    began = time.monotonic()
    with ExitStack() as stack:
        base = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fedlasso-")))
        base.mkdir(parents=True, exist_ok=True)
        tables = write_hospitals(base)
        print(f"Three hospitals in {base}; kits, server and sites on this machine, mutual TLS")
        local = stack.enter_context(LocalFederation(base / "project", tables))
        print(f"Server and {len(tables)} sites are up after {time.monotonic() - began:.0f} s")
        out = base / "model"
        settings = {"goal": "prediction", "uploads": 100}
        plan = begin_plan(out, Plan(str(local.folder), Opening("", "target"), settings))
        result, times = run_plan(out, plan, listen)
        print(tell(out, result, times))
        opening = read_plan(out).opening
        here = [
            TableRecords(path).site(
                name, opening.columns, opening.target, opening.validation, opening.seed
            )
            for name, path in tables.items()
        ]
        alone = fit(Journal(InProcess(here), base / "alone"), **settings)  # type: ignore[arg-type]
        same = alone.coefficients.tobytes() == result.coefficients.tobytes()
        same &= alone.costs.entries == result.costs.entries
        print(f"The same fit in one process: {'the same bits and bytes' if same else 'DIFFERS'}")
        print("What has left the hospital 'north', by its own audit (`fedlasso site audit`):")
        entries = list(site_audit(local.kit("north")).entries())
        for e in entries[:4]:
            print(f"  {e.number:3d} {e.time} {e.question:16s} {e.payload:6d} bytes {e.sha256[:16]}")
        print(f"  ... {len(entries)} lines, chain unbroken")
    print(f"All stopped and cleaned up after {time.monotonic() - began:.0f} s")
    return 0 if same else 1
