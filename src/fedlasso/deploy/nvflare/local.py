"""A whole federation on this machine, as real processes: for the demo, tests and benchmarks."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from fedlasso.deploy.nvflare.console import Console
from fedlasso.deploy.nvflare.engine import kill_family, listens
from fedlasso.deploy.nvflare.project import create_project, read_project
from fedlasso.errors import FedLassoError

# Seconds that a loaded machine may take to start somebody.
START = 300.0


def reserve_port(port: int = 0) -> socket.socket:
    """Keep a port, any by default, until the socket is closed: only our own server can listen."""
    kept = socket.socket()
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        kept.setsockopt(socket.SOL_SOCKET, option, 1)
    kept.bind(("", port))
    return kept


class LocalFederation:
    """A server and its sites, each started by its own ``fedlasso`` command.

    Parameters
    ----------
    folder : the project's folder, made if it is not there
    tables : data file of each site

    Attributes
    ----------
    environments : environment variables that a participant is started with besides
    processes : the commands that run, by participant
    """

    def __init__(self, folder: Path, tables: Mapping[str, Path]) -> None:
        self.folder = folder
        self._tables = tables
        # The port stays ours while the server is down.
        if folder.exists():
            self._reserved = reserve_port(read_project(folder).port)
        else:
            self._reserved = reserve_port()
            port = self._reserved.getsockname()[1]
            create_project(folder, f"localhost:{port}", list(tables))
        self.project = read_project(folder)
        self.environments: dict[str, dict[str, str]] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        try:
            self.start_server()
            for name in self.project.sites:
                self.start_site(name)
            self.wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._reserved.close()

    def kit(self, site: str) -> Path:
        """A site's kit."""
        return self.folder / "kits" / site

    def start_server(self) -> None:
        """Start the server, and wait until it listens."""
        process = self._start("server", "federation", "start-server", self.folder)
        end = time.monotonic() + START
        while not listens(self.project.host, self.project.port):
            if process.poll() is not None or time.monotonic() > end:
                raise FedLassoError(f"the server did not start: {self.said('server')}")
            time.sleep(0.1)

    def start_site(self, name: str) -> None:
        """Start a site; `wait` waits for it."""
        self._start(name, "site", "start", self.kit(name), self._tables[name])

    def wait(self, seconds: float = START) -> None:
        """Wait until every site is connected."""
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(FedLassoError), Console(self.folder) as console:
                # A while at a time, so that a site that has ended is noticed.
                console.wait_for_sites((), min(max(end - time.monotonic(), 0), 5.0))
                return
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise FedLassoError(f"{name} ended: {self.said(name)}")
            if time.monotonic() > end:
                raise FedLassoError("the sites are not connected")
            time.sleep(0.2)

    def kill(self, name: str) -> None:
        """End a participant at once, as a power cut would."""
        if name in self.processes:
            kill_family(self.processes.pop(name))

    def stop(self) -> None:
        """End everybody, sites first."""
        for name in [n for n in self.processes if n != "server"]:
            self.kill(name)
        self.kill("server")

    def said(self, name: str) -> str:
        """The last line that a participant's command printed."""
        lines = (self.folder / f"{name}.out").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def _start(self, name: str, *command: object) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.out").open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "fedlasso", *map(str, command)],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env=os.environ | {"PYTHONUNBUFFERED": "1"} | self.environments.get(name, {}),
            )  # fmt: skip
        self.processes[name] = process
        return process
