"""What the engine runs for us: the relay in the server's job, the member in a site's job.

Both pass bytes on and know nothing of what they mean. The engine finds these classes in the
installed package, so no code ever travels.
"""

import json
import socket
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

from nvflare.collab import collab

from fedlasso.deploy import bridge


class Relay:
    """The server's part of a job: waits at the coordinator's socket for what to ask."""

    def __init__(self, address: str) -> None:
        self._address = address

    @collab.main  # type: ignore[untyped-decorator]
    def run(self) -> None:
        """Pass questions on until the coordinator hangs up."""
        with suppress(EOFError), Client(self._address, family="AF_UNIX") as line:
            while True:
                head = json.loads(line.recv_bytes())
                answers = self._ask(head, line.recv_bytes())
                kinds = [(site, kind) for site, kind, _ in answers]
                line.send_bytes(json.dumps(kinds).encode())
                for _, _, data in answers:
                    line.send_bytes(data)

    def _ask(self, head: Any, data: bytes) -> list[tuple[str, str, bytes]]:
        began = time.monotonic()
        ask = collab.get_clients(head["to"])(timeout=head["timeout"])
        results = ask.echo(data) if head["echo"] else ask.answer(data)
        answers = [(site, "reply", reply) for site, reply in results]
        # A site that is gone fails at once; one that is slow or frozen fails when its time is up.
        failed = "late" if time.monotonic() - began >= 0.9 * head["timeout"] else "lost"
        return [*answers, *((site, failed, b"") for site in results.failures)]


class EngineMember:
    """A site's part of a job: hands questions to the process that holds the records."""

    def __init__(self) -> None:
        self._line: socket.socket | None = None
        # The engine may ask again while an answer that came too late is still on its way.
        self._lock = threading.Lock()

    @collab.publish  # type: ignore[untyped-decorator]
    def answer(self, data: bytes) -> bytes:
        """Return what the site's own process says, a refusal too."""
        with self._lock:
            try:
                if self._line is None:
                    # The engine works in a folder of the kit.
                    self._line = bridge.ask(Path(collab.workspace.get_root_dir()).parent)
                bridge.send(self._line, data)
                return bridge.receive(self._line)
            except (EOFError, OSError):
                if self._line is not None:
                    self._line.close()
                self._line = None
                # The engine sends the text of an error, so it says nothing of here.
                raise RuntimeError("the site does not answer") from None

    @collab.publish  # type: ignore[untyped-decorator]
    def echo(self, data: bytes) -> bytes:
        """Return the same bytes: what the engine alone takes for a round trip."""
        return data
