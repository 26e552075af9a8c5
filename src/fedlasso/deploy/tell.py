"""What a finished fit over the network says of its messages."""

from __future__ import annotations

import json
from pathlib import Path

from fedlasso.deploy.run import Times
from fedlasso.federation import Costs


def tell_books(out: Path, costs: Costs, times: Times) -> str:
    """Ledger, audits and seconds, in a few lines."""
    lines = []
    audits = json.loads((out / "audit.json").read_bytes())
    for site in costs.sites:
        cost, books = costs.total(site=site), audits[site]
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
