"""Server and sites as services: run them, check their health, clean up, start with the machine."""

import fcntl
import getpass
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib.resources import files
from pathlib import Path

from fedlasso import __version__
from fedlasso.atomic_files import write_atomically
from fedlasso.deploy.bridge import Bridge, JobHandler
from fedlasso.deploy.kit import Kit, check_certificate, read_kit
from fedlasso.deploy.nvflare.engine import Engine, check_server, kill_tree
from fedlasso.deploy.nvflare.project import read_project
from fedlasso.errors import FedLassoError, Interrupted

# Seconds of serving between two checks of the engine, and between two attempts to reach the server.
SERVE_INTERVAL = 0.5
RETRY_INTERVAL = 1.0
# Files of these processes are readable by their owner only.
UMASK = 0o077
# File of the last status line of a site.
STATE = "state.txt"
# Bytes that should be free for a site's audit and ledger.
MIN_FREE = 100_000_000


def read_summary(data: Path, policy: Path | None) -> str:
    """Return the number of rows and columns, read by another process to save memory here."""
    command = [sys.executable, "-P", "-m", "fedlasso.deploy.doorkeeper"]
    command += [str(path) for path in (data, policy) if path]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode:
        why = ended.stderr.strip().rpartition("\n")[2]
        raise FedLassoError(why or "the data are unreadable")
    return ended.stdout.strip()


@contextmanager
def lock_kit(folder: Path) -> Iterator[None]:
    """Reserve a kit for this process: two engines would answer under one name."""
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FedLassoError(f"{folder} is in use by another `fedlasso` command") from None
        yield


def run_server(project_folder: Path) -> None:
    """Run the server of a project until interrupted."""
    os.umask(UMASK)
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
        raise FedLassoError(f"the server ended; see its log {engine.log}")
    finally:
        kill_tree(engine.process)


def run_site(
    folder: Path, data: Path, policy: Path | None = None, user: pwd.struct_passwd | None = None
) -> None:
    """Answer questions until interrupted, and restart the engine, run as `user`, when it ends."""

    def make_doorkeeper() -> JobHandler:
        # Imported with the first job: a site that only waits needs little memory.
        from fedlasso.deploy.doorkeeper import Doorkeeper

        return Doorkeeper(folder, data, policy)

    os.umask(UMASK)
    kit = read_kit(folder)
    owner = user.pw_uid if user else None
    users = {os.getuid(), *([owner] if owner else [])}
    first = True
    with lock_kit(folder), closing(Bridge(folder, make_doorkeeper, users, owner)) as bridge:
        while True:
            # Errors end the command at its start only: later nobody may be there to fix them.
            _wait_for_server(folder, kit, Interrupted if first else FedLassoError)
            engine = Engine(folder, kit, user)
            try:
                with suppress(*([] if first else [FedLassoError])):
                    engine.wait()
                first = False
                if engine.ready:
                    _report(folder, f"Connected to {kit.host}:{kit.port}; Ctrl-C leaves")
                while engine.process.poll() is None:
                    bridge.serve(SERVE_INTERVAL)
            finally:
                kill_tree(engine.process)
            _report(folder, "The connection was lost; reconnecting")


def _wait_for_server(folder: Path, kit: Kit, passing: type[FedLassoError]) -> None:
    reported = False
    while True:
        try:
            return check_server(folder, kit)
        except passing as error:
            if not reported:
                _report(folder, f"Waiting: {error}")
            reported = True
            time.sleep(RETRY_INTERVAL)


def _report(folder: Path, text: str) -> None:
    """Print a status line, and keep it for `fedlasso site status`."""
    write_atomically(folder / STATE, text.encode(), private=True)
    print(text, flush=True)


def check_health(folder: Path) -> tuple[list[str], list[str]]:
    """Return what is in order at a site, and its problems."""
    kit = read_kit(folder)
    good = [f"site {kit.name!r} of project {kit.project!r}, server {kit.host}:{kit.port}"]
    try:
        problems = check_certificate(folder, kit)
        good += [] if problems else ["the certificate is valid"]
    except FedLassoError as error:
        problems = [str(error)]
    path = folder / STATE
    state = path.read_text() if path.exists() else "the site was never started"
    if not _is_running(folder):
        problems.append(f"the site is not running; start it: fedlasso site start {folder} DATA")
    elif state.startswith("Connected"):
        good.append(state.partition(";")[0])
    else:
        problems.append(state)
    free = shutil.disk_usage(folder).free
    room = good if free >= MIN_FREE else problems
    room.append(f"{free // 1_000_000} MB of disk space are free for audit and ledger")
    return good, problems


def _is_running(folder: Path) -> bool:
    try:
        with lock_kit(folder):
            return False
    except FedLassoError:
        return True


def clean(folder: Path, days: float) -> tuple[int, int]:
    """Remove the state of fits unused for some days; return the numbers of fits and bytes."""
    read_kit(folder)
    end = time.time() - days * 86400
    freed = []
    for fit in sorted(folder.glob("memory/*")):
        kept = [path for path in fit.rglob("*") if path.is_file()]
        if max([path.stat().st_mtime for path in (fit, *kept)]) < end:
            freed.append(sum(path.stat().st_size for path in kept))
            shutil.rmtree(fit)
    return len(freed), sum(freed)


def write_units(
    folder: Path, data: Path, policy: Path | None, user: str | None, out: Path
) -> list[Path]:
    """Write a systemd unit and a Containerfile that start a site, and return their paths."""
    kit = read_kit(folder)
    command = [sys.executable, "-m", "fedlasso", "site", "start"]
    command += [str(folder.resolve()), str(data.resolve())]
    command += ["--policy", str(policy.resolve())] if policy else []
    command += ["--engine-user", user] if user else []
    inside = ["fedlasso", "site", "start", "/kit", f"/data/{data.name}"]
    inside += ["--policy", f"/data/{policy.name}"] if policy else []
    # Root is needed only to become the engine's user and to give it its folder.
    rights = "CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER CAP_KILL CAP_SETGID CAP_SETUID" if user else ""
    values = {
        "name": kit.name,
        "project": kit.project,
        "command": " ".join(map(_quote, command)),
        "kit": _quote(str(folder.resolve())),
        "user": "root" if user else getpass.getuser(),
        "rights": rights,
        "version": __version__,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "start": ", ".join(f'"{word}"' for word in inside),
    }
    written = {"site.service": f"fedlasso-{kit.name}.service", "Containerfile": "Containerfile"}
    out.mkdir(parents=True, exist_ok=True)
    for template, name in written.items():
        text = (files("fedlasso.deploy.nvflare") / "units" / template).read_text()
        (out / name).write_text(text.format(**values))
    return [out / name for name in written.values()]


def _quote(word: str) -> str:
    """Quote a word for systemd."""
    if '"' in word or "\\" in word or "\n" in word:
        raise FedLassoError(f"{word}: a systemd unit takes no path with quotes or backslashes")
    word = word.replace("%", "%%").replace("$", "$$")
    return f'"{word}"' if " " in word else word
