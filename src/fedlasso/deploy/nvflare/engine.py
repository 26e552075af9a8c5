"""The engine's processes: of a server or a site, as children that stop with this process."""

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
from fedlasso.deploy.nvflare.job import IN_FORCE, NOT_RESTRICTED
from fedlasso.deploy.nvflare.project import LOG, write_settings
from fedlasso.errors import FedLassoError, Interrupted

# Seconds for an engine to be ready.
READY_TIMEOUT = 120.0
PROGRAM = "fedlasso.deploy.nvflare.program"


class Engine:
    """The engine of a server or a site, run in its own folder of the kit, as `user` if given."""

    def __init__(self, folder: Path, kit: Kit, user: pwd.struct_passwd | None = None) -> None:
        if kit.role == "server":
            settings = ["fed_server.json", "--set"]
            self._sign = "Server started"
            self._failure = "the server did not start"
        else:
            settings = ["fed_client.json", "--set", f"uid={kit.name}", "heart_beat_interval=4"]
            self._sign = "Successfully registered client"
            self._failure = "the server did not admit this site"
        self._site = kit.role == "site"
        self.folder = folder.resolve() / "engine"
        self._make_folder(folder, kit)
        self._ready = False
        self._log = self.folder / LOG
        self._printed = folder / "engine.log"
        options = ["secure_train=true", "org=fedlasso", "config_folder="]
        command = [sys.executable, "-P", "-m", PROGRAM, kit.role]
        command += ["-m", str(self.folder), "-s", *settings, *options]
        if user is not None:
            # Symbolic links that the user may have put there are not followed.
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
                **_as_user(user),
            )

    def _make_folder(self, folder: Path, kit: Kit) -> None:
        """Make the engine's folder anew, and keep the log of the run before."""
        if _is_plain(self.folder / LOG):
            (self.folder / LOG).replace(folder / "engine-before.log")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(mode=0o700)
        if self._site:
            # The engine's settings name classes that run here, so a kit's own are not used.
            write_settings(self.folder, kit)
            for name in (kit.certificate, kit.key, "startup/rootCA.pem"):
                shutil.copy(folder / name, self.folder / name)
        else:
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
        """Whether the server is running, or has admitted this site."""
        if not self._ready and _is_plain(self._log):
            self._ready = self._sign in self._log.read_text(errors="replace")
            if self._ready and self._site:
                self._check_restricted()
        return self._ready

    def _check_restricted(self) -> None:
        """Stop an engine that was admitted although no message has passed the restrictions."""
        if IN_FORCE not in self._log.read_text(errors="replace"):
            kill_tree(self.process)
            found = "the installed nvflare does not pass messages through the restrictions"
            raise FedLassoError(f"{found}; install the version that this fedlasso requires")

    @property
    def log(self) -> Path:
        """The engine's log, or what it printed before it had one."""
        return self._log if _is_plain(self._log) else self._printed

    def wait(self) -> None:
        """Wait until the engine is ready; if it ends before, raise an error."""
        end = time.monotonic() + READY_TIMEOUT
        while not self.ready:
            if self.process.poll() == NOT_RESTRICTED:
                raise FedLassoError(self._printed.read_text().strip().rpartition("\n")[2])
            if self.process.poll() is not None:
                raise FedLassoError(f"{self._failure}; see the engine's log {self.log}")
            if time.monotonic() > end:
                raise FedLassoError(f"{self._failure} in time; see the engine's log {self.log}")
            time.sleep(0.1)


def _is_plain(path: Path) -> bool:
    """Whether a path is a regular file: another user may own the folder."""
    return path.is_file() and not path.is_symlink()


def find_user(name: str, folder: Path) -> pwd.struct_passwd:
    """Return the user for the engine, who must be able to enter its folder."""
    if os.getuid() != 0:
        raise FedLassoError("--engine-user needs root, to run the engine as another user")
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise FedLassoError(f"--engine-user: no user is called {name!r}") from None
    if user.pw_uid == 0:
        raise FedLassoError("--engine-user: choose a user without access, not root")
    # The folder can be entered but not listed; its contents keep their modes.
    folder.chmod(0o711)
    script = f"import os, {PROGRAM}; os.stat({str(folder.resolve() / 'kit.json')!r})"
    command = [sys.executable, "-P", "-c", script]
    try:
        subprocess.run(command, cwd="/", check=True, capture_output=True, **_as_user(user))
    except (OSError, subprocess.CalledProcessError):
        cannot = f"cannot enter {folder.resolve()}, or cannot run {sys.executable} with fedlasso"
        remedy = "allow entering all folders above both (chmod o+x)"
        raise FedLassoError(f"--engine-user: {name!r} {cannot}; {remedy}") from None
    return user


def _as_user(user: pwd.struct_passwd | None) -> dict[str, Any]:
    if user is None:
        return {}
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def process_tree(process: subprocess.Popen[bytes]) -> list[Any]:
    """Return a process and its descendants, also those in sessions of their own."""
    try:
        parent = psutil.Process(process.pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    for member in process_tree(process):
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    process.wait()


def _die_with_parent() -> None:
    # If this command is killed, the kernel kills the engine too.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def check_server(folder: Path, kit: Kit) -> None:
    """Check that the server answers, and is the one of this kit's project."""
    address = f"{kit.host}:{kit.port}"
    where = f"the server at {address}"
    startup = folder / "startup"
    context = ssl.create_default_context(cafile=str(startup / "rootCA.pem"))
    context.load_cert_chain(startup / "client.crt", startup / "client.key")
    # With TLS 1.2 the server has verified our certificate when the handshake ends.
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    try:
        with socket.create_connection((kit.host, kit.port), timeout=10) as plain:
            context.wrap_socket(plain, server_hostname=kit.host).close()
    except socket.gaierror:
        raise Interrupted(f"the name {kit.host} cannot be resolved; check DNS or hosts") from None
    except ssl.SSLCertVerificationError as error:
        # X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED
        if error.verify_code in (9, 10):
            check = f"check the clock here, which shows {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
            raise FedLassoError(f"{where}: {error.verify_message}; {check}") from None
        other = f"{where} belongs to another project than {kit.project!r}"
        raise FedLassoError(f"{other} ({error.verify_message}); use its kit") from None
    except (ssl.SSLEOFError, ConnectionResetError):
        why = "it is not ready yet, or this certificate was revoked or replaced"
        raise Interrupted(f"{where} rejected {kit.name!r}: {why}; ask the coordinator") from None
    except ssl.SSLError as error:
        raise FedLassoError(f"no secure connection to {address}: {error.reason}") from None
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise Interrupted(f"no server at {address}: {why}; start it") from None
