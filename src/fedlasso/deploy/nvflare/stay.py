"""Server and sites that stay: engines kept alive, what leaves shown, approvals asked for."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path

from fedlasso.deploy.nvflare.engine import (
    Engine,
    check_certificate,
    check_port_free,
    check_server,
    listens,
)
from fedlasso.deploy.nvflare.kit import Kit, open_audit
from fedlasso.deploy.nvflare.project import read_project, settle_server
from fedlasso.errors import FedLassoError
from fedlasso.governance import Desk, Policy

CONNECT = 120.0


def serve(project_folder: Path) -> None:
    """Run the server of a project until interrupted."""
    project = read_project(project_folder)
    folder = project_folder / "server"
    kit = settle_server(folder)
    check_certificate(folder, kit)
    check_port_free(project.port)
    engine = Engine(folder, kit)
    try:
        engine.wait(lambda: listens("127.0.0.1", project.port), 60, "the server did not start")
        where = f"{project.host}:{project.port}"
        print(f"Serving {project.name!r} at {where}; Ctrl-C stops", flush=True)
        engine.process.wait()
        raise FedLassoError(f"the server ended; its log is {folder / 'engine.log'}")
    finally:
        engine.stop()


def take_part(folder: Path, kit: Kit, policy: Policy) -> None:
    """Run the site's engine until interrupted; if the engine ends, start it again."""
    desk = Desk(folder / "pending")
    with _claimed(folder):
        engine = Engine(folder, kit)
        try:
            # Only at the start is somebody here to mend what is wrong.
            engine.wait_registered(CONNECT)
            while True:
                if engine.registered:
                    print(f"Connected to {kit.host}:{kit.port}; Ctrl-C leaves", flush=True)
                    _watch(folder, engine, desk if policy.approval else None)
                print("The connection was lost; trying again", flush=True)
                engine.stop()
                _wait_for_server(folder, kit)
                engine = Engine(folder, kit)
                with contextlib.suppress(FedLassoError):
                    engine.wait_registered(CONNECT)
        finally:
            engine.stop()


def _watch(folder: Path, engine: Engine, desk: Desk | None) -> None:
    """Show what leaves, line by line, until the engine ends."""
    audit = open_audit(folder)
    shown = sum(1 for _ in audit.entries())
    seen = _size(audit.path)
    while engine.process.poll() is None:
        if desk is not None:
            desk.serve(input)
        if _size(audit.path) != seen:
            seen = _size(audit.path)
            for entry in list(audit.entries())[shown:]:
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


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0


@contextlib.contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """Let only one engine run per kit: two would answer in one name."""
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FedLassoError(f"{folder} is in use by another `fedlasso site start`") from None
        yield
