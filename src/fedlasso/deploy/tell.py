"""What a finished fit over a network is told as: its model, its messages and its seconds."""

from __future__ import annotations

from pathlib import Path

from fedlasso.deploy.run import Finished
from fedlasso.models import describe_model


def tell_fit(out: Path, finished: Finished) -> str:
    """Say what was fitted and where it is."""
    return (
        f"{describe_model(finished.document)}\n{tell_books(finished)}\n"
        f"The model is in {out}; open {out / 'card.html'}"
    )


def tell_books(finished: Finished) -> str:
    """Ledger, audits and seconds, in a few lines."""
    lines = []
    for site in finished.document.sites:
        books = finished.books[site.name]
        again = books.sent - books.used
        more = f", {again} of them sent again or lost on the way" if again else ""
        lines.append(
            f"  {site.name}: {site.messages} replies, {sum(site.sent.values())} bytes up, "
            f"{sum(site.received.values())} down; its audit has the same hashes, {books.sent} "
            f"sent{more}"
        )
    times = finished.times
    lines.append(
        f"Engine start {times.start:.1f} s, fit {times.fit:.1f} s"
        + (f", {times.attempts} attempts" if times.attempts > 1 else "")
    )
    return "\n".join(lines)
