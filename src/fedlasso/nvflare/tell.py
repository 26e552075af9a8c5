"""What a finished fit over the network says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from fedlasso.fit import Fit
from fedlasso.nvflare.run import Times


def tell(out: Path, result: Fit, times: Times) -> str:
    """Model, certificate, ledger, audits and seconds, in a few lines."""
    active = int(np.count_nonzero(result.coefficients))
    lines = [f"{active} of {result.coefficients.size} coefficients are not zero; model in {out}"]
    if result.why:
        lines.append(result.why)
    if result.certificate is not None:
        lines.append(f"Certificate: {result.certificate}")
    lines.append(result.status.value)
    audits = json.loads((out / "audit.json").read_bytes())
    for site in result.costs.sites:
        cost, books = result.costs.total(site=site), audits[site]
        again = books["sent"] - books["used"]
        more = f", {again} of them sent again or lost on the way" if again else ""
        lines.append(
            f"  {site}: {cost.messages} replies, {cost.upload} bytes up, {cost.download} down; "
            f"its audit has the same hashes, {books['sent']} sent{more}"
        )
    lines.append(
        f"Engine start {times.start:.1f} s, fit {times.fit:.1f} s"
        + (f", {times.attempts} attempts" if times.attempts > 1 else "")
    )
    return "\n".join(lines)
