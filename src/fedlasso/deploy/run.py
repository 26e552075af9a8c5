"""A fit over a network from its plan to its model: stopped, gone on with, its books compared."""

import json
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from fedlasso import __version__, models
from fedlasso.atomic_files import make_private, write_atomically
from fedlasso.deploy.network import Network
from fedlasso.deploy.reconcile import JOURNAL, RECEIPTS, Books, compare_books
from fedlasso.deploy.schemas import make_opening
from fedlasso.deploy.site_data import TableRecords
from fedlasso.errors import FedLassoError, Interrupted
from fedlasso.federation import InProcess, Journal, Ledger, Listen
from fedlasso.federation.ledger import Notify
from fedlasso.governance import Policy
from fedlasso.models import FitPlan, ModelDocument, NetworkSource

# Reaches the sites of a project by some engine: `nvflare.line.connect` is one.
Connect = Callable[..., AbstractContextManager[Network]]
RETRIES = 3
DAY = 86400.0


@dataclass
class Timeline:
    """Where the seconds of a fit went."""

    start: float = 0.0
    fit: float = 0.0
    attempts: int = 0


@dataclass(frozen=True)
class Finished:
    """A fit that came to its end: the model, both ends' books compared, and the time it took."""

    document: ModelDocument
    books: Mapping[str, Books]
    times: Timeline


def begin_plan(out: Path, plan: FitPlan[NetworkSource]) -> None:
    """Give a fit its identity and write its plan down, before the first question."""
    # A fit that has asked nothing yet may be begun anew.
    if _answered(out) or (out / "model.json").exists():
        resume = f"go on with it by `fedlasso federation resume {out}`"
        raise FedLassoError(f"{out} holds a fit; {resume}, or choose another folder")
    # What the sites answer is kept there, so it is for nobody else.
    make_private(out)
    source = replace(plan.source, fit=secrets.token_hex(16))
    models.write_plan(out, replace(plan, source=source))
    (out / RECEIPTS).unlink(missing_ok=True)


def run_plan(
    out: Path,
    connect: Connect,
    *,
    listen: Listen | None = None,
    on_failure: Literal["stop", "retry", "wait"] = "stop",
    start: float = 60.0,
    notify: Notify = lambda line: None,
) -> Finished:
    """Fit what a folder's plan says, or go on with it, and write the model into the folder.

    The fit is run again from its beginning after an interruption; what it has asked before is
    answered from the journal. Every question's replies are on disk before the next is asked. All
    sites answer or the fit stands still: it is never continued with the survivors.

    Parameters
    ----------
    out : folder of the plan, and of the model
    connect : reaches the sites of a project: given its folder, the names of the sites, and the
        seconds `timeout` for one answer, `start` for sites and `restart` for the server to be there
    listen : who is told of every question
    on_failure : whether sites and server may come back meanwhile: stop, retry or wait a day
    start : seconds that sites may take to be there
    say : is told of every interruption that the fit outlives, and of clocks that are off
    """
    times = Timeline()
    patience = DAY if on_failure == "wait" else start
    vain = 0
    while True:
        before = _answered(out)
        times.attempts += 1
        reach = partial(connect, start=patience, restart=patience if times.attempts > 1 else 0.0)
        try:
            finished = _attempt(out, reach, times, listen, notify)
        except Interrupted as error:
            # Whoever goes on and is interrupted again has not failed again.
            vain = vain + 1 if _answered(out) == before else 1
            if on_failure == "stop" or (on_failure == "retry" and vain > RETRIES):
                resume = f"`fedlasso federation resume {out}`"
                raise Interrupted(f"{error} ({resume} goes on from there)") from None
            again = "waiting" if on_failure == "wait" else f"{vain} of {RETRIES}"
            notify(f"{error} (trying again, {again})")
        else:
            books = {site: asdict(entry) for site, entry in finished.books.items()}
            told = json.dumps(books, indent=1).encode()
            write_atomically(out / "audit.json", told, private=True)
            models.write_model(out, finished.document)
            return finished


def _answered(out: Path) -> int:
    return sum(1 for _ in (out / JOURNAL).glob("*.entry"))


def _attempt(
    out: Path, reach: Connect, times: Timeline, listen: Listen | None, notify: Notify
) -> Finished:
    plan = models.read_plan(out, NetworkSource)
    source = plan.source
    began = time.perf_counter()
    with reach(Path(source.project), source.sites, timeout=source.timeout) as network:
        # From here on the fit is bound to these data, these columns and what they hold.
        source = network.open(source, plan.settings)
        # What the journal has is used only if the sites know it, and if their audits are whole.
        books, source = _compare(network, out, plan, source)
        for site, off in network.odd_clocks().items():
            notify(f"site {site!r}: {off}; set it right (the fit goes on)")
        for site, version in network.other_versions().items():
            notify(f"notice: site {site!r} runs fedlasso {version}, the coordinator {__version__}")
        for name in network.left_out:
            notify(f"notice: column {name!r} only numbers the rows; it is left out")
        opened = time.perf_counter()
        times.start += opened - began
        network.receipts = out / RECEIPTS
        federation = Ledger(Journal(network, out / JOURNAL), listen)
        schema, missing = source.schema, source.missing
        assert schema is not None
        # The model stands, whatever a site's policy says to the questions of its card.
        document = models.make_model(
            federation, plan.settings, schema, missing=missing, compare=plan.compare, tolerant=True
        )
        network.receipts = None
        books, _ = _compare(network, out, plan, source)
        times.fit += time.perf_counter() - opened
    return Finished(document, books, times)


def _compare(
    network: Network, out: Path, plan: FitPlan[NetworkSource], source: NetworkSource
) -> tuple[dict[str, Books], NetworkSource]:
    """Compare the books, and write down in the plan how the sites' audits end now."""
    books = compare_books(network, source.fit, out, source.audits)
    audits = {site: (entry.lines, entry.head) for site, entry in books.items()}
    source = replace(source, audits=audits)
    models.write_plan(out, replace(plan, source=source))
    return books, source


def repeat_fit(
    document: ModelDocument,
    tables: Mapping[str, Path],
    keys: Mapping[str, bytes],
    compare: bool = False,
) -> ModelDocument:
    """Make a network's model once more in this process, where rows are split as the sites do.

    `tables` and `keys` are the data file and the secret of each site.
    """
    schema, settings, missing = document.schema, document.settings, document.missing
    join = make_opening("0" * 8, schema, settings, missing)
    sites = InProcess(
        [
            TableRecords(path, keys[name], name).site(name, join, Policy().rare)
            for name, path in tables.items()
        ]
    )
    return models.make_model(
        sites, settings, schema, missing=missing, compare=compare, tolerant=True
    )


def tell_fit(out: Path, finished: Finished) -> str:
    """Say what was fitted and where it is: the model, its messages, the audits and the seconds."""
    lines = [models.describe_model(finished.document)]
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
    attempts = f", {times.attempts} attempts" if times.attempts > 1 else ""
    lines.append(f"Engine start {times.start:.1f} s, fit {times.fit:.1f} s{attempts}")
    lines.append(f"The model is in {out}; open {out / 'card.html'}")
    return "\n".join(lines)
