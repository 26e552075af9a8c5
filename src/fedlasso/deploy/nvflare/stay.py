"""A site that stays: its engine kept alive, what leaves shown, approvals asked for."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path

from fedlasso.deploy.nvflare.engine import Engine, check_server
from fedlasso.deploy.nvflare.kit import Kit, site_audit
from fedlasso.errors import FedLassoError
from fedlasso.governance import Desk, Policy

CONNECT = 120.0


def stay(folder: Path, kit: Kit, policy: Policy) -> None:
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
    audit = site_audit(folder)
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
    """One engine a kit: two would answer in one name."""
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FedLassoError(f"{folder} is in use by another `fedlasso site start`") from None
        yield
