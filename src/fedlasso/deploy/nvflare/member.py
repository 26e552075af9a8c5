"""Our classes in the engine's jobs: the relay at the server, the member at a site.

Both pass bytes without decoding them. The installed package provides them; no code is sent.
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
    """The server's part of a job: forwards questions from the coordinator's socket."""

    def __init__(self, address: str) -> None:
        self._address = address

    @collab.main  # type: ignore[untyped-decorator]
    def run(self) -> None:
        """Forward questions until the coordinator disconnects."""
        with suppress(EOFError), Client(self._address, family="AF_UNIX") as line:
            while True:
                head = json.loads(line.recv_bytes())
                answers = self._ask(head, line.recv_bytes())
                kinds = [(site, kind) for site, kind, _ in answers]
                line.send_bytes(json.dumps(kinds).encode())
                # A longer reply is refused, so the rest of it need not be loaded.
                limit = head.get("limit")
                for _, _, data in answers:
                    line.send_bytes(data if limit is None else data[: limit + 1])

    def _ask(self, head: Any, data: bytes) -> list[tuple[str, str, bytes]]:
        began = time.monotonic()
        ask = collab.get_clients(head["to"])(timeout=head["timeout"])
        results = ask.echo(data) if head["echo"] else ask.answer(data)
        answers = [(site, "reply", reply) for site, reply in results]
        # A lost site fails at once, a slow or frozen one at the timeout.
        failed = "late" if time.monotonic() - began >= 0.9 * head["timeout"] else "lost"
        return [*answers, *((site, failed, b"") for site in results.failures)]


class EngineMember:
    """A site's part of a job: passes questions to the process that holds the records."""

    def __init__(self) -> None:
        self._line: socket.socket | None = None
        # The engine may ask again before a late answer has arrived.
        self._lock = threading.Lock()

    @collab.publish  # type: ignore[untyped-decorator]
    def answer(self, data: bytes) -> bytes:
        """Return the reply of the site's own process, which may be a refusal."""
        with self._lock:
            try:
                if self._line is None:
                    # The engine's workspace is a folder of the kit.
                    self._line = bridge.open_socket(Path(collab.workspace.get_root_dir()).parent)
                bridge.send(self._line, data)
                return bridge.receive(self._line)
            except (EOFError, OSError):
                if self._line is not None:
                    self._line.close()
                self._line = None
                # The engine sends the error's text to the server, so it gives no details.
                raise RuntimeError("the site does not answer") from None

    @collab.publish  # type: ignore[untyped-decorator]
    def echo(self, data: bytes) -> bytes:
        """Return the same bytes, to measure the engine's own round trip."""
        return data
