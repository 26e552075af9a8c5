"""A federation across the network: `ask` goes through the engine to the sites' doors."""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any, TypeVar, cast

from fedlasso import __version__
from fedlasso.deploy.nvflare.console import Console
from fedlasso.deploy.nvflare.member import MEMBER, RELAY
from fedlasso.errors import FedLassoError, Interrupted
from fedlasso.federation import Message, Reply, Request, decode, encode
from fedlasso.federation.federation import asked, check_members, check_replies, name_site
from fedlasso.governance.door import Introduce, Introduction, Open, Refusal

R = TypeVar("R", bound=Reply)
PULSE, LAUNCH, NOTABLE = 5.0, 120.0, 60.0


@dataclass(frozen=True)
class Opening:
    """What the sites are asked to join.

    Attributes
    ----------
    fit : identity of the fit, hexadecimal
    target : name of the response
    columns : predictors; empty means every column that all sites show but the target
    drop : columns to leave out of those
    fingerprints : of each site's data, when the fit has begun before
    """

    fit: str
    target: str
    columns: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    fingerprints: Mapping[str, str] | None = None


class Network:
    """Sites across the network, once they have joined a fit.

    Parameters
    ----------
    line : connection to the relay in the server's job
    sites : names of the sites
    timeout : seconds that a site may take for one answer
    receipts : file that gets the hash of every reply as it arrives, whatever becomes of it
    """

    def __init__(
        self, line: Connection, sites: Sequence[str], timeout: float, receipts: Path | None = None
    ) -> None:
        self._line, self._timeout, self.receipts = line, timeout, receipts
        self.sites: tuple[str, ...] = tuple(sorted(sites))
        self.columns: tuple[str, ...] = ()
        self.present: Callable[[], Collection[str]] = lambda: self.sites
        self.introductions: tuple[Introduction, ...] = ()
        self.ahead: dict[str, float] = {}

    def ask(self, request: Request[R]) -> tuple[R, ...]:
        """Ask the sites at once; a site that does not answer in time is an error that names it."""
        names = asked(self.sites, request)
        answers = sorted(self._exchange(names, encode(request)))
        arrived = {site: _read(site, data) for site, kind, data in answers if kind == "reply"}
        if self.receipts is not None:
            with self.receipts.open("a") as file:
                for site, kind, data in answers:
                    # A refusal carries no numbers, and the site's audit has no hash of it.
                    if kind == "reply" and not isinstance(arrived[site], Refusal):
                        file.write(f"{site} {hashlib.sha256(data).hexdigest()}\n")
        replies = []
        for site, kind, _ in answers:
            if kind == "late":
                raise Interrupted(
                    f"site {site!r} did not answer within {self._timeout:.0f} s; bring it back, "
                    "or fit without it"
                )
            if kind == "lost":
                raise Interrupted(f"site {site!r} was lost; bring it back")
            reply = arrived[site]
            if isinstance(reply, Refusal):
                raise FedLassoError(name_site(site, reply.text))
            if not isinstance(reply, Reply) or reply.site != site:
                raise FedLassoError(f"site {site!r} answered in another's name")
            replies.append(cast(R, reply))
        return check_replies(names, replies)

    def echo(self, data: bytes) -> None:
        """One bare round trip of the engine, for comparison."""
        self._exchange(self.sites, data, echo=True)

    def _exchange(
        self, names: Sequence[str], data: bytes, echo: bool = False
    ) -> list[tuple[str, str, bytes]]:
        head = {"to": list(names), "timeout": self._timeout, "echo": echo}
        try:
            self._line.send_bytes(json.dumps(head).encode())
            self._line.send_bytes(data)
            self._await(names)
            kinds = json.loads(self._line.recv_bytes())
            return [(site, kind, self._line.recv_bytes()) for site, kind in kinds]
        except (EOFError, OSError):
            raise Interrupted(
                "the run was broken off: the server or a site stopped; see "
                "`fedlasso federation status`, and bring it back"
            ) from None

    def _await(self, names: Sequence[str]) -> None:
        """Wait for the relay, which keeps the time, and look meanwhile who is still there."""
        end = time.monotonic() + self._timeout + 30
        while not self._line.poll(PULSE):
            gone = set(names) - set(self.present())
            if gone:
                raise Interrupted(f"site {min(gone)!r} is gone; bring it back")
            if time.monotonic() > end:
                raise Interrupted("the server does not answer; restart it")

    def introduce(self) -> None:
        """Ask the sites who they are, and how far their clocks are ahead of the one here."""
        before = time.time()
        self.introductions = self.ask(Introduce())
        after = time.time()
        # A clock is off by what it lies outside the time of asking.
        self.ahead = {
            i.site: i.clock - min(max(i.clock, before), after) for i in self.introductions
        }

    def odd_clocks(self) -> dict[str, str]:
        """Sites whose clocks are notably off, and how, in words."""
        return {
            site: f"its clock is {timedelta(seconds=round(abs(off)))} "
            f"{'ahead of' if off > 0 else 'behind'} the one here"
            for site, off in self.ahead.items()
            if abs(off) > NOTABLE
        }

    def open(self, opening: Opening) -> None:
        """Let the sites introduce themselves, check that they fit together, and join the fit."""
        self.introduce()
        for site in self.introductions:
            if site.version != __version__:
                raise FedLassoError(
                    f"site {site.site!r} runs fedlasso {site.version}, the coordinator "
                    f"{__version__}; install the same version"
                )
        self.columns = self._columns(opening)
        began = opening.fingerprints or {i.site: i.fingerprint for i in self.introductions}
        prints = tuple(f"{site}:{value}" for site, value in began.items())
        self.ask(Open(opening.fit, opening.target, self.columns, self.sites, prints))

    def _columns(self, opening: Opening) -> tuple[str, ...]:
        """Predictors as the first site has them; an error lists those of some sites only."""
        for name in opening.drop:
            if not any(name in i.columns for i in self.introductions):
                raise FedLassoError(f"no site has a column {name!r} to drop")
        everyone = {i.site: set(i.columns).difference(opening.drop) for i in self.introductions}
        shared = set.intersection(*everyone.values())
        for name, shown in everyone.items():
            if opening.target not in shown:
                raise FedLassoError(f"site {name!r} has no column {opening.target!r}")
        if opening.columns:
            return opening.columns
        odd = {name: sorted(shown - shared) for name, shown in everyone.items()}
        if any(odd.values()):
            listed = "; ".join(f"{n!r} alone: {', '.join(c)}" for n, c in odd.items() if c)
            raise FedLassoError(
                f"the sites' columns differ, {listed}; choose with --columns those that all "
                "have, or --drop the others"
            )
        columns = tuple(
            c for c in self.introductions[0].columns if c in shared and c != opening.target
        )
        check_members([(name, columns) for name in self.sites])
        return columns


def _read(site: str, data: bytes) -> Message:
    try:
        return decode(data)
    except FedLassoError as error:
        raise FedLassoError(f"site {site!r}: {error}; is fedlasso the same there?") from None


@contextmanager
def connect(
    folder: Path, sites: Sequence[str] = (), *, timeout: float = 300.0, start: float = 60.0
) -> Iterator[Network]:
    """Start a job for these sites (all by default) and hold the line to it.

    Parameters
    ----------
    folder : the project
    sites : who takes part
    timeout : seconds that a site may take for one answer
    start : seconds that sites may take to be there
    """
    with Console(folder) as console:
        end, line = time.monotonic() + start, None
        while line is None:
            names = console.wait_for_sites(sites, end - time.monotonic())
            line = _launch(console, names, min(start, LAUNCH))
        with line:
            network = Network(line, names, timeout)
            network.present = console.connected
            yield network


def _launch(console: Console, names: Sequence[str], seconds: float) -> Connection | None:
    """A job's line, or none if a site goes away before the job has started."""
    with tempfile.TemporaryDirectory(prefix="fedlasso-") as scratch:
        address = str(Path(scratch) / "line")
        with Listener(address, family="AF_UNIX") as listener:
            job = console.submit(_write_job(Path(scratch) / "job", address, names))
            return _accept(listener, console, job, names, seconds)


def _accept(
    listener: Listener, console: Console, job: str, names: Sequence[str], seconds: float
) -> Connection | None:
    # Listener.accept has no timeout of its own.
    socket: Any = listener._listener._socket  # type: ignore[attr-defined]
    socket.settimeout(1.0)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(TimeoutError):
            return listener.accept()
        console.check(job)
        # A site that was killed counts as connected for a while; its job would start late or never.
        if not set(names) <= set(console.connected()):
            console.abort(job)
            return None
    raise Interrupted(f"the job did not start within {seconds:.0f} s; try again")


def _write_job(folder: Path, address: str, sites: Sequence[str]) -> Path:
    """Three JSON files and no code: every class comes from the installed package."""
    plain: dict[str, Any] = {
        "format_version": 2,
        "task_result_filters": [],
        "task_data_filters": [],
    }
    runtime = "nvflare.collab.runtime"
    server = plain | {
        "workflows": [{"id": "controller", "path": f"{runtime}.controller.CollabController",
                       "args": {"server_obj_id": "relay", "collab_obj_ids": []}}],
        "components": [{"id": "relay", "path": RELAY, "args": {"address": address}}],
    }  # fmt: skip
    client = plain | {
        "executors": [{"tasks": ["*"], "executor": {
            "id": "executor", "path": f"{runtime}.executor.CollabExecutor",
            "args": {"client_obj_id": "member", "collab_obj_ids": []}}}],
        "components": [{"id": "member", "path": MEMBER, "args": {}}],
    }  # fmt: skip
    meta = {
        "name": "fedlasso", "resource_spec": {}, "min_clients": len(sites),
        "mandatory_clients": list(sites), "deploy_map": {"app": ["server", *sites]},
    }  # fmt: skip
    config = folder / "app" / "config"
    config.mkdir(parents=True)
    for path, content in (
        (folder / "meta.json", meta),
        (config / "config_fed_server.json", server),
        (config / "config_fed_client.json", client),
    ):
        path.write_text(json.dumps(content))
    return folder


__all__ = ["Network", "Opening", "connect"]
