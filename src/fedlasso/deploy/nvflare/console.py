"""The coordinator's session with the server: who is there, and jobs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedlasso.deploy.nvflare.engine import check_certificate, check_server
from fedlasso.deploy.nvflare.kit import read_kit
from fedlasso.deploy.nvflare.project import COORDINATOR, read_project
from fedlasso.deploy.nvflare.quiet import keep_quiet
from fedlasso.errors import FedLassoError, Interrupted


class Console:
    """A session as the project's coordinator.

    Parameters
    ----------
    folder : the project
    """

    def __init__(self, folder: Path) -> None:
        self.project = read_project(folder)
        self._kit = folder / "coordinator"
        kit = read_kit(self._kit, "coordinator")
        check_certificate(self._kit, kit)
        check_server(self._kit, kit)
        self._session: Any = None

    def __enter__(self) -> Console:
        from nvflare.fuel.flare_api.flare_api import new_secure_session

        try:
            with keep_quiet():
                self._session = new_secure_session(COORDINATOR, str(self._kit), timeout=20.0)
        except Exception as error:
            raise Interrupted(
                f"the server at {self.project.host}:{self.project.port} does not let the "
                f"coordinator in ({type(error).__name__}); is it fully started?"
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        with keep_quiet(), contextlib.suppress(Exception):
            self._session.close()

    def _call(self, name: str, *arguments: object) -> Any:
        try:
            with keep_quiet():
                return getattr(self._session, name)(*arguments)
        except Exception as error:
            raise Interrupted(
                f"the server does not answer ({type(error).__name__}); restart it"
            ) from None

    def connected(self) -> dict[str, float]:
        """Return the sites that are there, and when each was last heard of."""
        return {c.name: c.last_connect_time for c in self._call("get_connected_client_list")}

    def wait_for_sites(self, wanted: Sequence[str], seconds: float) -> tuple[str, ...]:
        """Wait until all of these sites are there, and return their names."""
        names = tuple(sorted(wanted or self.project.sites))
        for name in names:
            if name not in self.project.sites:
                raise FedLassoError(
                    f"no site is called {name!r}; the sites are {', '.join(self.project.sites)}"
                )
        end = time.monotonic() + seconds
        while missing := sorted(set(names) - set(self.connected())):
            if time.monotonic() > end:
                raise Interrupted(
                    f"not connected: {', '.join(missing)}; start them, or fit without them"
                )
            time.sleep(0.5)
        return names

    def submit(self, job: Path) -> str:
        """Submit a job folder."""
        return str(self._call("submit_job", str(job)))

    def abort(self, job: str) -> None:
        """Take a job back."""
        self._call("abort_job", job)

    def check(self, job: str) -> None:
        """Refuse to wait for a job that has ended."""
        status = str(self._call("get_job_status", job))
        if status.startswith(("FINISHED", "FAILED")):
            raise Interrupted(
                f"the engine ended the job ({status}): a site or the server stopped, or fedlasso "
                "is missing or differs there"
            )
