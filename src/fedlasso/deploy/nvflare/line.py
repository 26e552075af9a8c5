"""The line to a job that was submitted to the server: it carries bytes to the sites and back."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

from fedlasso.deploy.network import Answer, Network
from fedlasso.deploy.nvflare.console import Console
from fedlasso.deploy.nvflare.member import ENGINE, MEMBER, RELAY
from fedlasso.errors import Interrupted

PULSE = 5.0
LAUNCH = 120.0


class JobLine:
    """A line that the relay in the server's job holds at its other end.

    Parameters
    ----------
    connection : the socket to the relay
    console : tells who is still there
    """

    def __init__(self, connection: Connection, console: Console) -> None:
        self._connection = connection
        self._console = console

    def exchange(
        self, sites: Sequence[str], question: bytes, seconds: float, echo: bool = False
    ) -> list[Answer]:
        """Ask these sites; with `echo` they only send the question back, for comparison."""
        head = {"to": list(sites), "timeout": seconds, "echo": echo}
        try:
            self._connection.send_bytes(json.dumps(head).encode())
            self._connection.send_bytes(question)
            self._await(sites, seconds)
            kinds = json.loads(self._connection.recv_bytes())
            return [Answer(site, kind, self._connection.recv_bytes()) for site, kind in kinds]
        except (EOFError, OSError):
            raise Interrupted(
                "the run was broken off: the server or a site stopped; see "
                "`fedlasso federation status`, and bring it back"
            ) from None

    def _await(self, sites: Sequence[str], seconds: float) -> None:
        """Wait for the relay, which keeps the time, and look meanwhile who is still there."""
        end = time.monotonic() + seconds + 30
        while not self._connection.poll(PULSE):
            gone = set(sites) - set(self._console.connected())
            if gone:
                raise Interrupted(f"site {min(gone)!r} is gone; bring it back")
            if time.monotonic() > end:
                raise Interrupted("the server does not answer; restart it")


@contextmanager
def connect(
    folder: Path,
    sites: Sequence[str] = (),
    *,
    timeout: float = 300.0,
    start: float = 60.0,
    restart: float = 0.0,
) -> Iterator[Network]:
    """Start a job for these sites (all by default) and hold the line to it.

    Parameters
    ----------
    folder : the project
    sites : who takes part
    timeout : seconds that a site may take for one answer
    start : seconds that sites may take to be there
    restart : seconds that the server may take to be there
    """
    with ExitStack() as stack:
        console = _reach(folder, restart, stack)
        end = time.monotonic() + start
        connection = None
        while connection is None:
            names = console.wait_for_sites(sites, end - time.monotonic())
            connection = _launch(console, names, min(start, LAUNCH))
        stack.enter_context(connection)
        yield Network(JobLine(connection, console), names, timeout)


def _reach(folder: Path, seconds: float, stack: ExitStack) -> Console:
    """Let the coordinator in, as soon as the server is there."""
    end = time.monotonic() + seconds
    while True:
        try:
            return stack.enter_context(Console(folder))
        except Interrupted:
            if time.monotonic() >= end:
                raise
            time.sleep(1.0)


def _launch(console: Console, names: Sequence[str], seconds: float) -> Connection | None:
    """Return a job's line, or none if a site goes away before the job has started."""
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
    """Write three JSON files and no code: every class comes from the installed package."""
    plain = {"format_version": 2, "task_result_filters": [], "task_data_filters": []}
    controller, executor = ENGINE
    server = plain | {
        "workflows": [{"id": "controller", "path": controller,
                       "args": {"server_obj_id": "relay", "collab_obj_ids": []}}],
        "components": [{"id": "relay", "path": RELAY, "args": {"address": address}}],
    }  # fmt: skip
    client = plain | {
        "executors": [{"tasks": ["*"], "executor": {
            "id": "executor", "path": executor,
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
