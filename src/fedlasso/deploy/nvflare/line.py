"""The coordinator's end: its session with the server, and the line to a job submitted there."""

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

from nvflare.fuel.flare_api.flare_api import new_secure_session

from fedlasso.deploy.kit import check_certificate, read_kit
from fedlasso.deploy.network import Answer, Network
from fedlasso.deploy.nvflare import project
from fedlasso.deploy.nvflare.engine import check_server
from fedlasso.deploy.nvflare.job import write_job
from fedlasso.errors import Interrupted

# Seconds between checks of the connected sites, for a job to start, and for the server to log the
# coordinator in.
SITES_INTERVAL = 5.0
LAUNCH_TIMEOUT = 120.0
LOGIN_TIMEOUT = 40.0


class Console(AbstractContextManager["Console"]):
    """The coordinator's session with the server of the project in a folder."""

    def __init__(self, folder: Path) -> None:
        self.project = project.read_project(folder)
        path = folder / "coordinator"
        kit = read_kit(path, "coordinator")
        self.warnings = [*check_certificate(path, kit), *project.warn(folder)]
        check_server(path, kit)
        end = time.monotonic() + LOGIN_TIMEOUT
        while True:
            try:
                with project.keep_quiet():
                    self._session = new_secure_session(project.COORDINATOR, str(path), timeout=20.0)
                return
            except Exception as error:
                # A server that listens may not be ready yet, or busy.
                if time.monotonic() > end:
                    why = f"rejects the coordinator ({type(error).__name__})"
                    raise Interrupted(f"the server {why}; wait until it is ready") from None
                time.sleep(0.5)

    def __exit__(self, *_: object) -> None:
        with project.keep_quiet(), suppress(Exception):
            self._session.close()

    def call(self, name: str, *arguments: object) -> Any:
        """Call a method of the engine's session."""
        try:
            with project.keep_quiet():
                return getattr(self._session, name)(*arguments)
        except Exception as error:
            kind = type(error).__name__
            raise Interrupted(f"the server does not answer ({kind}); restart it") from None

    def connected(self) -> dict[str, float]:
        """Return the connected sites, and when each was last seen."""
        return {c.name: c.last_connect_time for c in self.call("get_connected_client_list")}

    def wait_for_sites(self, wanted: Sequence[str], seconds: float) -> tuple[str, ...]:
        """Wait until these sites are connected (all by default), and return their names."""
        names = tuple(sorted(wanted or self.project.sites))
        for name in names:
            project.check_site(self.project, name)
        end = time.monotonic() + seconds
        while missing := sorted(set(names) - set(self.connected())):
            if time.monotonic() > end:
                listed = ", ".join(missing)
                raise Interrupted(f"not connected: {listed}; start them, or fit without them")
            time.sleep(0.5)
        return names


class JobLine:
    """A socket to the relay in the server's job."""

    def __init__(self, connection: Connection, console: Console) -> None:
        self._connection = connection
        self._console = console
        self.limit: int | None = None

    def exchange(
        self, sites: Sequence[str], question: bytes, seconds: float, echo: bool = False
    ) -> list[Answer]:
        """Send a question to these sites; with `echo` they only send it back, for benchmarks."""
        head = {"to": list(sites), "timeout": seconds, "echo": echo, "limit": self.limit}
        # One byte more shows that a reply is long.
        most = None if self.limit is None else self.limit + 1
        end = time.monotonic() + seconds + 30
        try:
            self._connection.send_bytes(json.dumps(head).encode())
            self._connection.send_bytes(question)
            # The relay enforces the timeout.
            while not self._connection.poll(SITES_INTERVAL):
                if gone := set(sites) - set(self._console.connected()):
                    raise Interrupted(f"site {min(gone)!r} is gone; restart it")
                if time.monotonic() > end:
                    raise Interrupted("the server does not answer; restart it")
            kinds = json.loads(self._connection.recv_bytes())
            return [Answer(site, kind, self._connection.recv_bytes(most)) for site, kind in kinds]
        except (EOFError, OSError):
            remedy = "`fedlasso federation status` shows which"
            raise Interrupted(f"the server or a site stopped; {remedy}") from None


@contextmanager
def connect(
    folder: Path,
    sites: Sequence[str] = (),
    *,
    timeout: float = 300.0,
    start: float = 60.0,
    restart: float = 0.0,
) -> Iterator[Network]:
    """Start a job for these sites of a project (all by default), and connect to it.

    Parameters are the seconds for one answer, for the sites and for the server to be ready.
    """
    with _reach(folder, restart) as console:
        end = time.monotonic() + start
        connection = None
        while connection is None:
            names = console.wait_for_sites(sites, end - time.monotonic())
            connection = _launch(console, names, min(start, LAUNCH_TIMEOUT))
        with connection:
            yield Network(JobLine(connection, console), names, timeout)


def _reach(folder: Path, seconds: float) -> Console:
    end = time.monotonic() + seconds
    while True:
        try:
            return Console(folder)
        except Interrupted:
            if time.monotonic() >= end:
                raise
            time.sleep(1.0)


def _launch(console: Console, names: Sequence[str], seconds: float) -> Connection | None:
    """Return a connection to a new job, or None if a site is lost before the job starts."""
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="fedlasso-") as scratch:
        address = str(Path(scratch) / "line")
        with Listener(address, family="AF_UNIX") as listener:
            # Listener.accept has no timeout.
            listener._listener._socket.settimeout(1.0)  # type: ignore[attr-defined]
            folder = Path(scratch) / "job"
            write_job(folder, address, names)
            job = console.call("submit_job", str(folder))
            while time.monotonic() < end:
                with suppress(TimeoutError):
                    return listener.accept()
                status = str(console.call("get_job_status", job))
                if status.startswith(("FINISHED", "FAILED")):
                    why = "a site or the server stopped, or its fedlasso is missing or differs"
                    raise Interrupted(f"the engine ended the job ({status}): {why}")
                # A killed site counts as connected for a while; its job would start late or never.
                if not set(names) <= set(console.connected()):
                    console.call("abort_job", job)
                    return None
    raise Interrupted(f"the job did not start within {seconds:.0f} s; fit again")
