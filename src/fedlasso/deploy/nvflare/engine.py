"""The engine's processes: a server or a site as a child of this one, stopped with it."""

import contextlib
import ctypes
import json
import os
import pwd
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from fedlasso.deploy.kit import Kit
from fedlasso.deploy.nvflare.engine_settings import LOG
from fedlasso.errors import FedLassoError, Interrupted

# Seconds that an engine may take to be ready.
START = 120.0
PROGRAM = "fedlasso.deploy.nvflare.program"


class Engine:
    """The engine of the server or of a site, which works in a folder of its own in the kit.

    Its processes run as `user`, if it is another than who runs this.
    """

    def __init__(self, folder: Path, kit: Kit, user: pwd.struct_passwd | None = None) -> None:
        if kit.role == "server":
            settings = ["fed_server.json", "--set"]
            self._word = "Server started"
            self._failure = "the server did not start"
        else:
            settings = ["fed_client.json", "--set", f"uid={kit.name}", "heart_beat_interval=4"]
            self._word = "Successfully registered client"
            self._failure = "the server did not let this site in"
        self.folder = folder.resolve() / "engine"
        self._make_folder(folder, kit)
        self._ready = False
        self._log = self.folder / LOG
        self._printed = folder / "engine.log"
        options = ["secure_train=true", "org=fedlasso", "config_folder="]
        command = [sys.executable, "-P", "-m", PROGRAM, kit.role]
        command += ["-m", str(self.folder), "-s", *settings, *options]
        if user is not None:
            # Nothing that the user has slipped in is followed elsewhere.
            for path in (*self.folder.rglob("*"), self.folder):
                os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
        with self._printed.open("wb") as printed:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                env=os.environ | {"HOME": str(self.folder)},
                umask=0o077,
                start_new_session=True,
                preexec_fn=_die_with_parent,
                **_become(user),
            )

    def _make_folder(self, folder: Path, kit: Kit) -> None:
        """Make the engine's folder anew: jobs of earlier runs are over, their log is kept."""
        if _is_plain(self.folder / LOG):
            (self.folder / LOG).replace(folder / "engine-before.log")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(mode=0o700)
        for name in ("startup", "local"):
            shutil.copytree(folder / name, self.folder / name)
        (self.folder / "transfer").mkdir(mode=0o700)
        if kit.role == "server":
            path = self.folder / "local" / "resources.json"
            resources = json.loads(path.read_bytes())
            storage = resources["snapshot_persistor"]["args"]["storage"]["args"]
            storage["root_dir"] = str(self.folder / "work" / "snapshots")
            components = {c["id"]: c for c in resources["components"]}
            components["job_manager"]["args"]["uri_root"] = str(self.folder / "work" / "jobs")
            path.write_text(json.dumps(resources))

    @property
    def ready(self) -> bool:
        """Whether the server serves, or has let this site in."""
        if not self._ready and _is_plain(self._log):
            self._ready = self._word in self._log.read_text(errors="replace")
        return self._ready

    @property
    def log(self) -> Path:
        """The engine's log, or what it has printed if it did not come so far."""
        return self._log if _is_plain(self._log) else self._printed

    def wait(self) -> None:
        """Wait until it is ready; an engine that ends meanwhile is an error."""
        end = time.monotonic() + START
        while not self.ready:
            if self.process.poll() is not None:
                raise FedLassoError(f"{self._failure}: the engine ended; its log is {self.log}")
            if time.monotonic() > end:
                late = f"{self._failure} within {START:.0f} s"
                raise FedLassoError(f"{late}; the engine's log: {self.log}")
            time.sleep(0.1)


def _is_plain(path: Path) -> bool:
    """Whether a file is one: another user, who owns the folder, may have put anything there."""
    return path.is_file() and not path.is_symlink()


def find_user(name: str, folder: Path) -> pwd.struct_passwd:
    """Return the user that an engine shall run as, who must be able to reach its folder."""
    if os.getuid() != 0:
        raise FedLassoError("--engine-user takes root: only root can run the engine as another")
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise FedLassoError(f"--engine-user: no user is called {name!r} here") from None
    if user.pw_uid == 0:
        raise FedLassoError("--engine-user: choose a user who can read nothing, not root")
    # Names in the kit stay hidden; what is in it keeps its own modes.
    folder.chmod(0o711)
    script = f"import os, {PROGRAM}; os.stat({str(folder.resolve() / 'kit.json')!r})"
    command = [sys.executable, "-P", "-c", script]
    try:
        subprocess.run(command, cwd="/", check=True, capture_output=True, **_become(user))
    except (OSError, subprocess.CalledProcessError):
        cannot = f"cannot reach {folder.resolve()}, or cannot run {sys.executable} with fedlasso"
        remedy = "put both where every folder above may be entered (chmod o+x)"
        raise FedLassoError(f"--engine-user: {name!r} {cannot}; {remedy}") from None
    return user


def _become(user: pwd.struct_passwd | None) -> dict[str, Any]:
    """How a process is started as a user; as who runs this, without one."""
    if user is None:
        return {}
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def find_family(process: subprocess.Popen[bytes]) -> list[Any]:
    """Return a process and its descendants, which may run in sessions of their own."""
    try:
        parent = psutil.Process(process.pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def kill_family(process: subprocess.Popen[bytes]) -> None:
    """End a process and its descendants at once: nothing is lost by it."""
    for member in find_family(process):
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    process.wait()


def _die_with_parent() -> None:
    # Whoever kills this command kills the engine: it never stays behind without an owner.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def check_server(folder: Path, kit: Kit) -> None:
    """Is the server there, and is it the one this kit belongs to?"""
    address = f"{kit.host}:{kit.port}"
    where = f"the server at {address}"
    startup = folder / "startup"
    context = ssl.create_default_context(cafile=str(startup / "rootCA.pem"))
    context.load_cert_chain(startup / "client.crt", startup / "client.key")
    # With this version the server has judged our certificate when the handshake is over.
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    try:
        with socket.create_connection((kit.host, kit.port), timeout=10) as plain:
            context.wrap_socket(plain, server_hostname=kit.host).close()
    except socket.gaierror:
        remedy = "ask your network, or add it to /etc/hosts"
        raise Interrupted(f"the name {kit.host} cannot be resolved; {remedy}") from None
    except ssl.SSLCertVerificationError as error:
        # X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED
        if error.verify_code in (9, 10):
            clock = f"is the clock here right? It says {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
            raise FedLassoError(f"{where}: {error.verify_message}; {clock}") from None
        other = f"{where} is not of project {kit.project!r} ({error.verify_message})"
        raise FedLassoError(f"{other}; use the kit of its project") from None
    except (ssl.SSLEOFError, ConnectionResetError):
        why = "it is not ready yet, or this certificate was revoked or replaced"
        raise Interrupted(f"{where} hung up on {kit.name!r}: {why}; ask the coordinator") from None
    except ssl.SSLError as error:
        raise FedLassoError(f"no secure connection to {address}: {error.reason}") from None
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise Interrupted(f"no server at {address}: {why}; is it started?") from None
