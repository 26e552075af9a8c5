"""A federation of real processes on this machine, for the demo, tests and benchmarks."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from sklearn.datasets import load_diabetes

from fedlasso import models
from fedlasso.deploy.kit import accept, open_audit, read_secret, request
from fedlasso.deploy.nvflare.engine import kill_tree
from fedlasso.deploy.nvflare.line import Console, connect
from fedlasso.deploy.nvflare.project import create_project, read_project, sign_request
from fedlasso.deploy.run import begin_plan, describe_finished, repeat_fit, run_plan
from fedlasso.errors import FedLassoError
from fedlasso.federation import Listen
from fedlasso.fitting import Settings

# Seconds for a participant to start on a busy machine.
START = 300.0


def reserve_port(port: int = 0) -> socket.socket:
    """Reserve a port (any by default) for our own server until the socket is closed."""
    kept = socket.socket()
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        kept.setsockopt(socket.SOL_SOCKET, option, 1)
    kept.bind(("", port))
    return kept


def enrol(project: Path, kits: Mapping[str, Path]) -> None:
    """Unpack sites' kits, sign their keys, and let them accept each other's."""
    for site, kit in kits.items():
        shutil.unpack_archive(project / "kits" / f"{site}.zip", kit.parent)
        path, _ = request(kit)
        sign_request(project, path)
    for site, kit in kits.items():
        accept(kit, project / "kits" / f"{site}.crt", lambda *_: True)


class LocalFederation:
    """A server and its sites, each started by its own command; `tables` are the sites' data."""

    # Python's arguments before a participant's command.
    program: tuple[str, ...] = ("-m", "fedlasso")

    def __init__(
        self, folder: Path, tables: Mapping[str, Path], policy: Path | None = None
    ) -> None:
        self.folder = folder
        self._tables = tables
        self._policy = policy
        # The port stays reserved while the server is down.
        self._reserved = reserve_port(read_project(folder).port if folder.exists() else 0)
        if not folder.exists():
            port = self._reserved.getsockname()[1]
            create_project(folder, f"localhost:{port}", list(tables))
        self.project = read_project(folder)
        kits = {site: self.kit(site) for site in self.project.sites}
        enrol(folder, {site: kit for site, kit in kits.items() if not kit.exists()})
        # Additional environment variables, and running commands, by participant.
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
        for process in self.processes.values():
            kill_tree(process)
        self._reserved.close()

    def kit(self, site: str) -> Path:
        """Folder of a site's kit, outside the project's folder, which is the coordinator's."""
        return self.folder.with_name(f"{self.folder.name}-sites") / site

    def start_server(self) -> None:
        """Start the server, and wait until it is ready."""
        self._start("server", "federation", "start-server", self.folder)
        self._wait_for("server", "Serving")

    def start_site(self, name: str) -> None:
        """Start a site; `wait` waits for it."""
        rules = ("--policy", self._policy) if self._policy else ()
        self._start(name, "site", "start", self.kit(name), self._tables[name], *rules)

    def wait(self) -> None:
        """Wait until the sites are connected, and the server admits the coordinator."""
        for name in self.project.sites:
            self._wait_for(name, "Connected")
        with Console(self.folder) as console:
            console.wait_for_sites((), START)

    def kill(self, name: str) -> None:
        """Kill a participant, as a power cut would."""
        if name in self.processes:
            kill_tree(self.processes.pop(name))

    def _start(self, name: str, *command: object) -> None:
        with (self.folder / f"{name}.out").open("wb") as out:
            self.processes[name] = subprocess.Popen(
                [sys.executable, *self.program, *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=os.environ | {"PYTHONUNBUFFERED": "1"} | self.environments.get(name, {}),
            )

    def _wait_for(self, name: str, word: str) -> None:
        """Wait until a participant's command prints a word after its last loss of connection."""
        end = time.monotonic() + START
        while True:
            printed = (self.folder / f"{name}.out").read_text(errors="replace")
            if word in printed.rpartition("connection was lost")[2]:
                return
            if self.processes[name].poll() is not None or time.monotonic() > end:
                last = printed.strip().rpartition("\n")[2]
                raise FedLassoError(f"{name} did not start: {last}")
            time.sleep(0.1)


def run_demo(keep: Path | None, listen: Listen) -> int:
    """Fit the diabetes data of three hospitals over mutual TLS, then again in this process."""
    began = time.monotonic()
    with ExitStack() as stack:
        base = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fedlasso-")))
        base.mkdir(parents=True, exist_ok=True)
        tables = {name: base / f"{name}.csv" for name in ("east", "north", "west")}
        frame = load_diabetes(as_frame=True).frame
        for k, path in enumerate(tables.values()):
            frame.iloc[k::3].to_csv(path, index=False)
        print(f"Three hospitals in {base}: server and sites on this machine, with mutual TLS")
        local = stack.enter_context(LocalFederation(base / "project", tables))
        print(f"Server and {len(tables)} sites are ready after {time.monotonic() - began:.0f} s")
        out = base / "model"
        source = models.NetworkSource(str(local.folder), "", "target")
        begin_plan(out, models.FitPlan(Settings(), source))
        print(describe_finished(out, run_plan(out, connect, listen=listen)))
        alone = base / "alone"
        keys = {name: read_secret(local.kit(name)) for name in tables}
        document = models.read_document(out / "model.json")
        kits = {name: local.kit(name) for name in tables}
        models.write_model(alone, repeat_fit(document, tables, keys, kits=kits))
        written = ("coefficients.csv", "model.json", "card.html")
        same = all((out / n).read_bytes() == (alone / n).read_bytes() for n in written)
        outcome = "the same bytes" if same else "DIFFERS"
        print(f"The same fit in one process, without network and masks: {outcome}")
        print("What left the hospital 'north', by its audit (`fedlasso site audit`):")
        entries = list(open_audit(local.kit("north")).entries())
        for e in entries[:4]:
            print(f"  {e.number:3d} {e.time} {e.question:16s} {e.payload:6d} bytes {e.sha256[:16]}")
        print(f"  ... {len(entries)} lines, hash chain valid")
        gone = "" if keep else ", deleted now; `--keep FOLDER` keeps it"
        print(f"The model's card: {out / 'card.html'}{gone}")
    print(f"Stopped and cleaned up after {time.monotonic() - began:.0f} s")
    return 0 if same else 1
