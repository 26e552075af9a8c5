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
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from fedlasso.deploy.nvflare.kit import Kit
from fedlasso.errors import FedLassoError, Interrupted

# Seconds that an engine may take to be ready.
START = 120.0


class Engine:
    """The engine of the server or of a site, started from the folder of its kit."""

    def __init__(self, folder: Path, kit: Kit) -> None:
        if kit.role == "server":
            part = "server"
            settings = []
            self._word = "Server started"
            self._failure = "the server did not start"
        else:
            part = "client"
            settings = [f"uid={kit.name}", "heart_beat_interval=4"]
            self._word = "Successfully registered client"
            self._failure = "the server did not let this site in"
        command = [
            sys.executable,
            "-u",
            "-m",
            f"nvflare.private.fed.app.{part}.{part}_train",
            "-m",
            str(folder.resolve()),
            "-s",
            f"fed_{part}.json",
            "--set",
            "secure_train=true",
            "org=fedlasso",
            "config_folder=",
            *settings,
        ]
        # Jobs of earlier runs are over; what must last is with the model or in the books.
        for old in [folder / "work", *folder.glob("????????-????-????-????-????????????")]:
            shutil.rmtree(old, ignore_errors=True)
        (folder / "transfer").mkdir(exist_ok=True)
        self.log = folder / "engine.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )

    @property
    def ready(self) -> bool:
        """Whether the server serves, or has let this site in."""
        return self._word in self.log.read_text(errors="replace")

    def wait(self) -> None:
        """Wait until it is ready; an engine that ends meanwhile is an error."""
        end = time.monotonic() + START
        while not self.ready:
            if self.process.poll() is not None:
                raise FedLassoError(f"{self._failure}: the engine ended; its log is {self.log}")
            if time.monotonic() > end:
                raise FedLassoError(
                    f"{self._failure} within {START:.0f} s; the engine's log: {self.log}"
                )
            time.sleep(0.1)


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


def check_certificate(folder: Path, kit: Kit) -> None:
    """Refuse a certificate that is not valid now, before the engine mumbles about it."""
    from cryptography import x509

    now = datetime.now(UTC)
    for name in ("server.crt" if kit.role == "server" else "client.crt", "rootCA.pem"):
        certificate = x509.load_pem_x509_certificate((folder / "startup" / name).read_bytes())
        what = f"the certificate {name} of {kit.name!r}"
        if now < (begins := certificate.not_valid_before_utc):
            raise FedLassoError(
                f"{what} is not valid before {begins:%Y-%m-%d %H:%M} UTC; is the clock here right? "
                f"It says {now:%Y-%m-%d %H:%M}"
            )
        if now > (ends := certificate.not_valid_after_utc):
            raise FedLassoError(
                f"{what} expired on {ends:%Y-%m-%d}; ask the coordinator for a new kit, or set the "
                f"clock here: it says {now:%Y-%m-%d %H:%M}"
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
        # X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED
        if error.verify_code in (9, 10):
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
