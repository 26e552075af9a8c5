"""Server and sites that stay: engines kept alive, questions answered, approvals asked for."""

import contextlib
import fcntl
import os
import pwd
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from fedlasso.atomic_files import write_atomically
from fedlasso.deploy.bridge import AnswerBytes, Bridge, Keeper
from fedlasso.deploy.kit import Kit, check_certificate, read_kit
from fedlasso.deploy.nvflare.engine import Engine, check_server, kill_family
from fedlasso.deploy.nvflare.project import read_project
from fedlasso.errors import FedLassoError, Interrupted

# Seconds between two looks at the engine, and between two tries to reach the server.
LOOK = 0.5
AGAIN = 1.0
# What these processes write is for its owner only.
PRIVATE = 0o077
# The last word on how a site stands.
STATE = "state.txt"


class LateKeeper:
    """A doorkeeper who comes with the first job: until then a site only waits, and needs little."""

    def __init__(self, folder: Path, data: Path, policy: Path | None) -> None:
        self._given = (folder, data, policy)
        self._keeper: Keeper | None = None

    def look(self) -> str:
        """Say what there is to answer from; a process of its own reads it, and is gone again."""
        _, *given = self._given
        command = [sys.executable, "-P", "-m", "fedlasso.deploy.doorkeeper"]
        command += [str(path) for path in given if path]
        looked = subprocess.run(command, capture_output=True, text=True)
        if looked.returncode:
            why = looked.stderr.strip().rpartition("\n")[2]
            raise FedLassoError(why or "the data are unreadable")
        return looked.stdout.strip()

    @property
    def limit(self) -> int:
        """How many bytes of a question are read."""
        return self._keeper.limit if self._keeper else 0

    def greet(self) -> AnswerBytes:
        """Bring the doorkeeper, who greets."""
        if self._keeper is None:
            from fedlasso.deploy.doorkeeper import Doorkeeper

            self._keeper = Doorkeeper(*self._given)
        return self._keeper.greet()


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Keep a kit to this process: two engines of one kit would answer in one name."""
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FedLassoError(f"{folder} is in use by another `fedlasso` command") from None
        yield


def serve(project_folder: Path) -> None:
    """Run the server of a project until interrupted."""
    os.umask(PRIVATE)
    project = read_project(project_folder)
    folder = project_folder / "server"
    kit = read_kit(folder, "server")
    for warning in check_certificate(folder, kit):
        print(f"Warning: {warning}", flush=True)
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


def take_part(
    folder: Path, kit: Kit, keeper: Keeper, user: pwd.struct_passwd | None = None
) -> None:
    """Answer until interrupted; the engine is started as often as it ends.

    The records and the door stay in this process. The engine's processes, which may run as another
    user, hand over bytes.
    """
    os.umask(PRIVATE)
    owner = user.pw_uid if user else None
    users = {os.getuid(), *([owner] if owner else [])}
    first = True
    with lock(folder), contextlib.closing(Bridge(folder, keeper, users, owner)) as bridge:
        while True:
            # Only at the start is somebody here to mend what is wrong.
            _wait_for_server(folder, kit, Interrupted if first else FedLassoError)
            engine = Engine(folder, kit, user)
            try:
                with contextlib.suppress(*([] if first else [FedLassoError])):
                    engine.wait()
                first = False
                if engine.ready:
                    _note(folder, f"Connected to {kit.host}:{kit.port}; Ctrl-C leaves")
                while engine.process.poll() is None:
                    bridge.serve(LOOK)
            finally:
                kill_family(engine.process)
            _note(folder, "The connection was lost; trying again")


def _wait_for_server(folder: Path, kit: Kit, passing: type[FedLassoError]) -> None:
    """Wait for a server that is not there yet, and say so once."""
    told = False
    while True:
        try:
            return check_server(folder, kit)
        except passing as error:
            if not told:
                _note(folder, f"Waiting: {error}")
            told = True
            time.sleep(AGAIN)


def _note(folder: Path, text: str) -> None:
    """Keep how it stands for `fedlasso site status`, and say it."""
    write_atomically(folder / STATE, text.encode(), private=True)
    print(text, flush=True)
