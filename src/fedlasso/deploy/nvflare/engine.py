"""The engine's processes: a server or a site as a child of this one, stopped with it."""

from __future__ import annotations

import contextlib
import ctypes
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from fedlasso.deploy.nvflare.kit import Kit
from fedlasso.errors import FedLassoError, Interrupted

LOG = "engine.log"
REGISTERED = "Successfully registered client"
# What OpenSSL calls them: X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED.
NOT_YET_VALID = 9
EXPIRED = 10


class Engine:
    """A running server or site.

    Parameters
    ----------
    folder : its kit
    kit : who it is
    """

    def __init__(self, folder: Path, kit: Kit) -> None:
        part = "server" if kit.role == "server" else "client"
        self._log = folder / LOG
        who = [] if kit.role == "server" else [f"uid={kit.name}"]
        command = [
            sys.executable, "-u", "-m", f"nvflare.private.fed.app.{part}.{part}_train",
            "-m", str(folder.resolve()), "-s", f"fed_{part}.json",
            "--set", "secure_train=true", "org=fedlasso", "config_folder=", *who,
        ]  # fmt: skip
        # Jobs of earlier runs are over; what must last is with the model or in the books.
        for old in [folder / "work", *folder.glob("????????-????-????-????-????????????")]:
            shutil.rmtree(old, ignore_errors=True)
        (folder / "transfer").mkdir(exist_ok=True)
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=_die_with_parent,
            )  # fmt: skip

    @property
    def registered(self) -> bool:
        """Whether the server has let this site in."""
        return REGISTERED in self._log.read_text(errors="replace")

    def wait_registered(self, seconds: float) -> None:
        """Wait until the server has let this site in."""
        self.wait(lambda: self.registered, seconds, "the server did not let this site in")

    def wait(self, ready: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait for a condition; an engine that ends meanwhile is an error."""
        end = time.monotonic() + seconds
        while not ready():
            if self.process.poll() is not None:
                raise FedLassoError(f"{what}: the engine ended; its log is {self._log}")
            if time.monotonic() > end:
                raise FedLassoError(f"{what} within {seconds:.0f} s; the engine's log: {self._log}")
            time.sleep(0.1)

    def stop(self) -> None:
        """End the engine and its jobs; nothing is lost by it, so nothing is waited for."""
        kill_family(self.process)


def find_family(process: subprocess.Popen[bytes]) -> list[Any]:
    """Return a process and its descendants, which may run in sessions of their own."""
    try:
        parent = psutil.Process(process.pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def kill_family(process: subprocess.Popen[bytes]) -> None:
    """End a process and its descendants at once."""
    for member in find_family(process):
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    process.wait()


def _die_with_parent() -> None:
    # Whoever kills this command kills the engine: it never stays behind without an owner.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def check_port_free(port: int) -> None:
    """Refuse to start a server on a port that is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            raise FedLassoError(f"port {port} is in use: {error.strerror}") from None


def listens(host: str, port: int) -> bool:
    """Whether somebody listens there."""
    try:
        with socket.create_connection((host, port), timeout=2):
            return True
    except OSError:
        return False


def check_certificate(folder: Path, kit: Kit) -> None:
    """Refuse a certificate that is not valid now, before the engine mumbles about it."""
    from cryptography import x509

    now = datetime.now(UTC)
    for name in (f"{'server' if kit.role == 'server' else 'client'}.crt", "rootCA.pem"):
        certificate = x509.load_pem_x509_certificate((folder / "startup" / name).read_bytes())
        begins = certificate.not_valid_before_utc
        ends = certificate.not_valid_after_utc
        if now < begins:
            raise FedLassoError(
                f"the certificate {name} of {kit.name!r} is not valid before "
                f"{begins:%Y-%m-%d %H:%M} UTC; is the clock here right? "
                f"It says {now:%Y-%m-%d %H:%M}"
            )
        if ends < now:
            raise FedLassoError(
                f"the certificate {name} of {kit.name!r} expired on {ends:%Y-%m-%d}; ask the "
                f"coordinator for a new kit, or set the clock here: it says {now:%Y-%m-%d %H:%M}"
            )


def check_server(folder: Path, kit: Kit) -> None:
    """Is the server there, and is it the one this kit belongs to?"""
    where = f"{kit.host}:{kit.port}"
    startup = folder / "startup"
    context = ssl.create_default_context(cafile=str(startup / "rootCA.pem"))
    context.load_cert_chain(startup / "client.crt", startup / "client.key")
    try:
        with socket.create_connection((kit.host, kit.port), timeout=10) as plain:
            context.wrap_socket(plain, server_hostname=kit.host).close()
    except socket.gaierror:
        raise FedLassoError(
            f"the name {kit.host} cannot be resolved; ask your network, or add it to /etc/hosts"
        ) from None
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in (NOT_YET_VALID, EXPIRED):
            raise FedLassoError(
                f"the server at {where}: {error.verify_message}; is the clock here right? "
                f"It says {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
            ) from None
        raise FedLassoError(
            f"the server at {where} is not of project {kit.project!r} ({error.verify_message}); "
            "use the kit of its project"
        ) from None
    except ssl.SSLError as error:
        raise FedLassoError(f"no secure connection to {where}: {error.reason}") from None
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise Interrupted(f"no server at {where}: {why}; is it started?") from None
