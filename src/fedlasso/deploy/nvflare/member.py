"""What the engine runs for us: the relay in the server's job, the member in a site's job.

The engine finds these classes in the installed package, so no code ever travels.
"""

from __future__ import annotations

import json
import time
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

from nvflare.collab import collab


class Relay:
    """The server's part of a job: waits at the coordinator's socket for what to ask."""

    def __init__(self, address: str) -> None:
        self._address = address

    @collab.main  # type: ignore[untyped-decorator]
    def run(self) -> None:
        """Pass questions on until the coordinator hangs up."""
        with Client(self._address, family="AF_UNIX") as line:
            try:
                while True:
                    head = json.loads(line.recv_bytes())
                    answers = self._ask(head, line.recv_bytes())
                    kinds = [(site, kind) for site, kind, _ in answers]
                    line.send_bytes(json.dumps(kinds).encode())
                    for _, _, data in answers:
                        line.send_bytes(data)
            except EOFError:
                return

    def _ask(self, head: Any, data: bytes) -> list[tuple[str, str, bytes]]:
        began = time.monotonic()
        ask = collab.get_clients(head["to"])(timeout=head["timeout"])
        results = ask.echo(data) if head["echo"] else ask.answer(data)
        answers = [(site, "reply", reply) for site, reply in results]
        # A site that is gone fails at once; one that is slow or frozen fails when its time is up.
        late = time.monotonic() - began >= 0.9 * head["timeout"]
        answers += [(site, "late" if late else "lost", b"") for site in results.failures]
        return answers


class Member:
    """A site's part of a job: hands questions to the door of the kit that started the engine."""

    def __init__(self) -> None:
        self._door: Any = None

    @collab.publish  # type: ignore[untyped-decorator]
    def answer(self, data: bytes) -> bytes:
        """Answer or refuse; never raise, for the engine would send the text of an exception."""
        from fedlasso.deploy.nvflare.kit import open_door, refuse

        try:
            if self._door is None:
                self._door = open_door(Path(collab.workspace.get_root_dir()))
            return bytes(self._door.answer_bytes(bytes(data)))
        except Exception as error:
            return refuse(error)

    @collab.publish  # type: ignore[untyped-decorator]
    def echo(self, data: bytes) -> bytes:
        """Return the same bytes: what the engine alone takes for a round trip."""
        return data
