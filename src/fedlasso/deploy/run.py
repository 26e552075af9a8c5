"""A fit over the network from its settings to its model, that can be stopped and gone on with."""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from fedlasso import __version__
from fedlasso.deploy.link import Network, Opening, connect
from fedlasso.deploy.nvflare.console import Console
from fedlasso.errors import FedLassoError, Interrupted
from fedlasso.federation import Federation, Journal, Ledger, Reply, Request, decode
from fedlasso.federation.journal import read_replies
from fedlasso.files import write_atomically
from fedlasso.governance.door import SummariseAudit

R = TypeVar("R", bound=Reply)
T = TypeVar("T")
OnFailure = Literal["stop", "retry", "wait"]
RETRIES, DAY = 3, 86400.0
RECEIPTS = "receipts.txt"


@dataclass(frozen=True)
class Plan:
    """All that a fit depends on but the records; kept with the model, so that it can be resumed.

    Attributes
    ----------
    project : folder of the project
    opening : what the sites join
    settings : what to fit, as plain values
    sites : who takes part; empty means everybody
    timeout : seconds that a site may take for one answer
    compare : whether the fit is compared with others afterwards, which costs messages
    """

    project: str
    opening: Opening
    settings: dict[str, Any]
    sites: tuple[str, ...] = ()
    timeout: float = 300.0
    compare: bool = False
    version: str = __version__


@dataclass
class Event:
    """One question answered: what the command line shows."""

    number: int
    question: str
    kind: str
    upload: int
    seconds: float


@dataclass
class Times:
    """Where the seconds of a fit went."""

    start: float = 0.0
    fit: float = 0.0
    attempts: int = 0
    failures: list[str] = field(default_factory=list)


Listen = Callable[[Event], None]
Say = Callable[[str], None]
Fitting = Callable[[Federation], T]


class _Watched:
    """A federation that tells somebody about every question."""

    def __init__(self, inner: Journal, listen: Listen) -> None:
        self._inner, self._listen = inner, listen
        self._number = self._upload = 0
        self.sites, self.columns = inner.sites, inner.columns

    def ask(self, request: Request[R]) -> tuple[R, ...]:
        ledger, began = Ledger(self._inner), time.perf_counter()
        replies = ledger.ask(request)
        self._number += 1
        self._upload += ledger.costs.total().upload
        seconds = time.perf_counter() - began
        name = type(request).__name__
        self._listen(Event(self._number, name, request.kind, self._upload, seconds))
        return replies


def begin_plan(out: Path, plan: Plan) -> Plan:
    """Give a fit its identity and write its plan down, before the first question."""
    # A fit that has asked nothing yet may be begun anew.
    if any((out / "journal").glob("*.entry")) or (out / "model.json").exists():
        raise FedLassoError(
            f"{out} holds a fit; go on with it by `fedlasso federation resume {out}`, or choose "
            "another folder"
        )
    plan = replace(plan, opening=replace(plan.opening, fit=secrets.token_hex(16)))
    _write_plan(out, plan)
    (out / RECEIPTS).unlink(missing_ok=True)
    return plan


def _write_plan(out: Path, plan: Plan) -> None:
    write_atomically(out / "plan.json", json.dumps(asdict(plan), indent=1).encode())


def read_plan(out: Path) -> Plan:
    """The plan of an interrupted fit."""
    try:
        given = json.loads((out / "plan.json").read_bytes())
        lists = {name: tuple(given["opening"][name]) for name in ("columns", "drop")}
        opening = Opening(**{**given["opening"], **lists})
        plan = Plan(**{**given, "opening": opening, "sites": tuple(given["sites"])})
    except (OSError, ValueError, TypeError, KeyError):
        raise FedLassoError(f"{out} holds no fit over the network; see `federation fit`") from None
    if plan.version != __version__:
        raise FedLassoError(
            f"{out} was begun by fedlasso {plan.version}, this is {__version__}; use the same"
        )
    return plan


def run_plan(
    out: Path, plan: Plan, fitting: Fitting[T], listen: Listen, *, on_failure: OnFailure = "stop",
    start: float = 60.0, say: Say = lambda line: None,
) -> tuple[T, Times]:  # fmt: skip
    """Fit or go on; with ``retry`` or ``wait`` the sites may come back meanwhile.

    `fitting` is run again from its beginning after an interruption; what it has asked before is
    answered from the journal, so it must depend on the plan and the replies alone.

    Every question's replies are on disk before the next is asked. All sites answer or the fit
    stands still: it is never continued with the survivors. `say` is told of every interruption
    that the fit outlives, and of clocks that are off.
    """
    times = Times()
    patience = DAY if on_failure == "wait" else start
    vain = 0
    while True:
        times.attempts += 1
        before = _answered(out)
        try:
            return _attempt(out, plan, fitting, listen, times, say, patience), times
        except Interrupted as error:
            times.failures.append(str(error))
            # Whoever goes on and is interrupted again has not failed again.
            vain = vain + 1 if _answered(out) == before else 1
            if on_failure == "stop" or (on_failure == "retry" and vain > RETRIES):
                raise Interrupted(
                    f"{error} (`fedlasso federation resume {out}` goes on from there)"
                ) from None
            again = "waiting" if on_failure == "wait" else f"{vain} of {RETRIES}"
            say(f"{error} (trying again, {again})")
            plan = read_plan(out)
            _wait_for_server(Path(plan.project), patience)


def _answered(out: Path) -> int:
    return sum(1 for _ in (out / "journal").glob("*.entry"))


def _wait_for_server(project: Path, patience: float) -> None:
    """A while for a server that restarts."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        with suppress(Interrupted), Console(project):
            return
        time.sleep(1.0)


def _attempt(
    out: Path, plan: Plan, fitting: Fitting[T], listen: Listen, times: Times, say: Say,
    patience: float,
) -> T:  # fmt: skip
    began = time.perf_counter()
    with connect(Path(plan.project), plan.sites, timeout=plan.timeout, start=patience) as network:
        network.open(plan.opening)
        for site, off in network.odd_clocks().items():
            say(f"site {site!r}: {off}; set it right (the fit goes on)")
        if plan.opening.fingerprints is None:
            # From here on the fit is bound to these data and these columns.
            prints = {i.site: i.fingerprint for i in network.introductions}
            opening = replace(plan.opening, columns=network.columns, fingerprints=prints)
            _write_plan(out, replace(plan, opening=opening, sites=network.sites))
        opened = time.perf_counter()
        times.start += opened - began
        journal = Journal(network, out / "journal")
        network.receipts = out / RECEIPTS
        result = fitting(_Watched(journal, listen))
        network.receipts = None
        audits = reconcile(network, plan.opening.fit, out)
        times.fit += time.perf_counter() - opened
        write_atomically(out / "audit.json", json.dumps(audits, indent=1).encode())
    return result


def reconcile(network: Network, fit: str, out: Path) -> Mapping[str, Any]:
    """Compare the sites' audits with what arrived; a reply that no audit knows is an error.

    Receipts hold every reply that came over the line, also those of rounds that failed, but no
    refusals; the journal holds those that the fit used.
    """
    used = Counter[str]()
    arrived = {name: Counter[str]() for name in network.sites}
    for replies in read_replies(out / "journal"):
        used.update(reply.site for reply in map(decode, replies) if isinstance(reply, Reply))
    for line in (out / RECEIPTS).read_text().splitlines():
        site, _, digest = line.partition(" ")
        arrived[site][digest] += 1
    audits: dict[str, Any] = {}
    for summary in network.ask(SummariseAudit(fit)):
        sent, here = Counter(summary.hashes), arrived[summary.site]
        if unknown := here - sent:
            raise FedLassoError(
                f"site {summary.site!r}: {unknown.total()} replies arrived that its audit does not "
                "know; do not use this fit before this is explained"
            )
        audits[summary.site] = {
            "used": used[summary.site], "arrived": here.total(), "sent": sent.total(),
            "head": summary.head, "clock_ahead": round(network.ahead[summary.site]),
        }  # fmt: skip
    return audits
