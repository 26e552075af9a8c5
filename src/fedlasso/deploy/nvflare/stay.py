"""Server and sites that stay: engines kept alive, what leaves shown, approvals asked for."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import time
from itertools import islice
from pathlib import Path

from fedlasso.deploy.nvflare.engine import Engine, check_certificate, check_server, kill_family
from fedlasso.deploy.nvflare.kit import Kit, open_audit
from fedlasso.deploy.nvflare.project import read_project, settle_server
from fedlasso.errors import FedLassoError
from fedlasso.governance import Desk, Policy


def serve(project_folder: Path) -> None:
    """Run the server of a project until interrupted."""
    project = read_project(project_folder)
    folder = project_folder / "server"
    kit = settle_server(folder)
    check_certificate(folder, kit)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", project.port))
        except OSError as error:
            raise FedLassoError(f"port {project.port} is in use: {error.strerror}") from None
    engine = Engine(folder, kit)
    try:
        engine.wait()
        print(f"Serving {project.name!r} at {kit.host}:{kit.port}; Ctrl-C stops", flush=True)
        engine.process.wait()
        raise FedLassoError(f"the server ended; its log is {engine.log}")
    finally:
        kill_family(engine.process)


def take_part(folder: Path, kit: Kit, policy: Policy) -> None:
    """Run the site's engine until interrupted; if the engine ends, start it again."""
    desk = Desk(folder / "pending") if policy.approval else None
    with (folder / "lock").open("w") as file:
        # Two engines of one kit would answer in one name.
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FedLassoError(f"{folder} is in use by another `fedlasso site start`") from None
        engine = Engine(folder, kit)
        try:
            # Only at the start is somebody here to mend what is wrong.
            engine.wait()
            while True:
                if engine.ready:
                    print(f"Connected to {kit.host}:{kit.port}; Ctrl-C leaves", flush=True)
                    _watch(folder, engine, desk)
                print("The connection was lost; trying again", flush=True)
                kill_family(engine.process)
                _wait_for_server(folder, kit)
                engine = Engine(folder, kit)
                with contextlib.suppress(FedLassoError):
                    engine.wait()
        finally:
            kill_family(engine.process)


def _watch(folder: Path, engine: Engine, desk: Desk | None) -> None:
    """Show what leaves, line by line, until the engine ends."""
    audit = open_audit(folder)
    seen = audit.head
    shown = sum(1 for _ in audit.entries())
    while engine.process.poll() is None:
        if desk is not None:
            desk.serve(input)
        if audit.head != seen:
            seen = audit.head
            for entry in islice(audit.entries(), shown, None):
                shown += 1
                what = f"{entry.payload} bytes" if entry.verdict == "sent" else entry.why
                print(f"{entry.time} {entry.verdict} {entry.question}: {what}", flush=True)
        time.sleep(0.5)


def _wait_for_server(folder: Path, kit: Kit) -> None:
    while True:
        try:
            return check_server(folder, kit)
        except FedLassoError:
            time.sleep(1.0)
