"""A network fit from plan to model: interrupted, resumed, and reconciled with the sites."""

import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from msgspec.structs import replace

from fedlasso import __version__, models
from fedlasso.atomic_files import make_private, write_atomically
from fedlasso.deploy.kit import open_audit
from fedlasso.deploy.network import Network
from fedlasso.deploy.reconcile import JOURNAL, RECEIPTS, Reconciliation, reconcile
from fedlasso.deploy.schemas import make_opening
from fedlasso.deploy.site_data import TableRecords
from fedlasso.errors import FedLassoError, Interrupted
from fedlasso.federation import InProcess, Journal, Ledger, Listen
from fedlasso.federation.ledger import Notify
from fedlasso.governance import Policy
from fedlasso.governance.cuts import recall_cut
from fedlasso.governance.lifetime import Lifetime
from fedlasso.models import FitPlan, ModelDocument, NetworkSource
from fedlasso.tables.columns import identifier_notice

# Connects to the sites of a project; `nvflare.line.connect` is one.
Connect = Callable[..., AbstractContextManager[Network]]
RETRIES = 3
DAY = 86400.0
# Seconds between two attempts while a fit waits.
PAUSE = 1.0


@dataclass
class Timeline:
    """Seconds to connect and to fit, over all attempts."""

    start: float = 0.0
    fit: float = 0.0
    attempts: int = 0


@dataclass
class _Stuck:
    """A fit that waits for a site or the server: since when, and what it has last reported."""

    since: float = field(default_factory=lambda: time.monotonic())
    text: str = ""
    reported: float = 0.0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.since

    def report(self, text: str, notify: Notify) -> None:
        """Report why the fit waits: at once, then less and less often, and at least every hour."""
        waited = self.seconds
        if text == self.text and waited < min(2 * self.reported, self.reported + 3600) + 30:
            return
        self.text = text
        self.reported = waited
        so_far, whole = (timedelta(seconds=round(each)) for each in (waited, DAY))
        notify(f"{text} (waiting for {so_far}, at most {whole}; Ctrl-C stops, and can be resumed)")


@dataclass(frozen=True)
class Finished:
    """A finished fit: the model, the comparison with the sites' audits, and the time it took."""

    document: ModelDocument
    reconciled: Mapping[str, Reconciliation]
    times: Timeline


def begin_plan(out: Path, plan: FitPlan[NetworkSource]) -> None:
    """Draw a fit's identity and write its plan, before the first question."""
    # A fit without replies may be started again.
    if _answered(out) or (out / "model.json").exists():
        resume = f"`fedlasso federation resume {out}`"
        raise FedLassoError(f"{out} contains a fit; run {resume}, or choose another folder")
    # The folder will contain the sites' replies.
    make_private(out)
    source = replace(plan.source, fit=secrets.token_hex(16))
    models.write_plan(out, replace(plan, source=source))
    (out / RECEIPTS).unlink(missing_ok=True)


def plan_without(
    earlier: Path, project: Path, known: Sequence[str], left: Sequence[str]
) -> FitPlan[NetworkSource]:
    """Return the plan of an earlier fit as a new one, without sites that have `left`.

    It keeps settings and columns, and nothing that any site has answered.
    """
    plan = models.read_plan(earlier, NetworkSource)
    sites = tuple(site for site in plan.source.sites or known if site not in left)
    begun: dict[str, Any] = {"schema": None, "fingerprints": None, "audits": {}, "fit": ""}
    source = replace(plan.source, project=str(project.resolve()), sites=sites, **begun)
    return FitPlan(plan.settings, source, plan.compare, plan.about)


def run_plan(
    out: Path,
    connect: Connect,
    *,
    listen: Listen | None = None,
    on_failure: Literal["stop", "retry", "wait"] = "stop",
    start: float = 60.0,
    notify: Notify = lambda line: None,
) -> Finished:
    """Run or resume the fit planned in a folder, and write the model there.

    After an interruption the fit starts again, and the journal answers the questions asked before:
    replies are on disk before the next question. The fit never continues with only some sites.

    Parameters
    ----------
    out : folder of the plan, and of the model
    connect : connects to a project, given its folder, the names of the sites, and the seconds
        `timeout` for one answer, `start` for the sites and `restart` for the server to be ready
    listen : called with every question
    on_failure : what to do if a site or the server is lost: stop, retry, or wait a day, reporting
        what it waits for
    start : seconds for the sites to be ready
    notify : called with every interruption that the fit survives, and with notices
    """
    times = Timeline()
    failures = 0
    stuck = _Stuck()
    while True:
        before = _answered(out)
        times.attempts += 1
        reach = partial(connect, start=start, restart=start if times.attempts > 1 else 0.0)
        try:
            finished = _attempt(out, reach, times, listen, notify)
        except Interrupted as error:
            # Only failures without a new reply in between count.
            failures = failures + 1 if _answered(out) == before else 1
            stuck = stuck if _answered(out) == before else _Stuck()
            patient = on_failure == "wait" and stuck.seconds < DAY
            if not patient and (on_failure != "retry" or failures > RETRIES):
                remedy = f"`fedlasso federation resume {out}` continues"
                raise Interrupted(f"{error} ({remedy})") from None
            if patient:
                stuck.report(str(error), notify)
                time.sleep(PAUSE)
            else:
                notify(f"{error} (retrying, {failures} of {RETRIES})")
        else:
            write_finished(out, finished)
            return finished


def write_finished(out: Path, finished: Finished) -> None:
    """Write the model, and the comparison with the sites' audits."""
    audits = {site: asdict(entry) for site, entry in finished.reconciled.items()}
    data = json.dumps(audits, indent=1).encode()
    write_atomically(out / "audit.json", data, private=True)
    about = models.read_plan(out, NetworkSource).about
    models.write_model(out, finished.document, about)


def _answered(out: Path) -> int:
    return sum(1 for _ in (out / JOURNAL).glob("*.entry"))


def _attempt(
    out: Path, reach: Connect, times: Timeline, listen: Listen | None, notify: Notify
) -> Finished:
    plan = models.read_plan(out, NetworkSource)
    source = plan.source
    began = time.perf_counter()
    with reach(Path(source.project), source.sites, timeout=source.timeout) as network:
        # From here on the fit is bound to these data and columns.
        source = network.open(source, plan.settings)
        # The journal is used only if the sites' audits confirm it.
        _, source = _reconcile(network, out, plan, source)
        opened = time.perf_counter()
        times.start += opened - began
        document, reconciled = fit_opened(network, source, plan, out, listen, notify)
        times.fit += time.perf_counter() - opened
    return Finished(document, reconciled, times)


def fit_opened(
    network: Network,
    source: NetworkSource,
    plan: FitPlan[NetworkSource],
    out: Path,
    listen: Listen | None = None,
    notify: Notify = lambda line: None,
) -> tuple[ModelDocument, Mapping[str, Reconciliation]]:
    """Fit on sites that have joined, and compare with their audits at the end."""
    for site, off in network.odd_clocks().items():
        notify(f"site {site!r}: {off}; correct it (the fit continues)")
    for site, version in network.other_versions().items():
        notify(f"notice: site {site!r} runs fedlasso {version}, the coordinator {__version__}")
    for name in network.left_out:
        notify(identifier_notice(name))
    if network.classes_chosen:
        notify(network.classes_chosen)
    network.receipts = out / RECEIPTS
    federation = Ledger(Journal(network, out / JOURNAL), listen)
    schema, missing = source.schema, source.missing
    assert schema is not None
    # The model is valid even if a site refuses questions for its card.
    document = models.make_model(
        federation, plan.settings, schema, missing=missing, compare=plan.compare, tolerant=True
    )
    network.receipts = None
    reconciled, _ = _reconcile(network, out, plan, source)
    return document, reconciled


def _reconcile(
    network: Network, out: Path, plan: FitPlan[NetworkSource], source: NetworkSource
) -> tuple[dict[str, Reconciliation], NetworkSource]:
    """Compare with the sites' audits, and record in the plan where these end."""
    reconciled = reconcile(network, source.fit, out, source.audits)
    audits = {site: (entry.lines, entry.head) for site, entry in reconciled.items()}
    source = replace(source, audits=audits)
    models.write_plan(out, replace(plan, source=source))
    return reconciled, source


def repeat_fit(
    document: ModelDocument,
    tables: Mapping[str, Path],
    keys: Mapping[str, bytes],
    compare: bool = False,
    kits: Mapping[str, Path] = MappingProxyType({}),
) -> ModelDocument:
    """Repeat a network's fit in this process, with each site's data file and secret.

    The kits of sites have the cut of their rows, which is that of a data file's first fit.
    """
    schema, settings, missing = document.schema, document.settings, document.missing
    join = make_opening("0" * 8, schema, settings, missing, sites=tuple(tables))
    rare = Policy().rare
    records = {name: TableRecords(path, keys[name], name) for name, path in tables.items()}
    sites = [table.site(name, join, rare) for name, table in records.items()]
    for site in sites:
        if site.name in kits:
            fingerprint = records[site.name].fingerprint
            recall_cut(site, Lifetime.of(open_audit(kits[site.name]), fingerprint))
    return models.make_model(
        InProcess(sites), settings, schema, missing=missing, compare=compare, tolerant=True
    )


def describe_finished(out: Path, finished: Finished) -> str:
    """Return the text printed after a fit: model, traffic, audits, time and folder."""
    lines = [models.describe_model(finished.document)]
    for site in finished.document.sites:
        entry = finished.reconciled[site.name]
        again = entry.sent - entry.used
        more = f", {again} of them repeated or lost" if again else ""
        up, down = sum(site.sent.values()), sum(site.received.values())
        traffic = f"{site.messages} replies, {up} bytes up, {down} down"
        audit = f"its audit has the same hashes, {entry.sent} sent{more}"
        lines.append(f"  {site.name}: {traffic}; {audit}")
    times = finished.times
    if not times.attempts:
        # A fit by files has no duration of its own.
        return "\n".join([*lines, f"The model is in {out}; open {out / 'card.html'}"])
    attempts = f", {times.attempts} attempts" if times.attempts > 1 else ""
    lines.append(f"Engine start {times.start:.1f} s, fit {times.fit:.1f} s{attempts}")
    lines.append(f"The model is in {out}; open {out / 'card.html'}")
    return "\n".join(lines)
