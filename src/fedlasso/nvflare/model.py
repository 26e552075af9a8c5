"""The model folder, until the shared writer of `fedlasso fit` takes over: one function."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from fedlasso import __version__
from fedlasso.federation import write_atomically
from fedlasso.fit import Fit


def write_model(out: Path, result: Fit, names: Sequence[str], target: str) -> None:
    """coefficients.csv and model.json, with what each site sent."""
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(["column", "coefficient"])
    table.writerows((n, repr(float(b))) for n, b in zip(names, result.coefficients, strict=True))
    write_atomically(out / "coefficients.csv", text.getvalue().encode())
    certificate = result.certificate
    model = {
        "schema": 0,
        "version": __version__,
        "target": target,
        "procedure": result.procedure.name,
        "penalty": result.problem.lam,
        "rounds": result.rounds,
        "status": result.status.name,
        "certificate": asdict(certificate) if certificate else None,
        "ledger": {
            site: {kind: asdict(result.costs.total(kind, site)) for kind in result.costs.kinds}
            for site in result.costs.sites
        },
    }
    write_atomically(out / "model.json", json.dumps(model, indent=1).encode())
