"""A private socket in a site's kit: the engine's job passes bytes over it to the site's process.

Only bytes cross; records, policy, audit and ledger stay with the process that listens. This file
imports nothing of ours, so that the engine's job stays small and starts fast.
"""

import contextlib
import functools
import os
import selectors
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

# The folder and the socket in a kit.
ADDRESS = ("door", "socket")
# Seconds for the other end to send what it has begun, or to read its reply.
SOCKET_TIMEOUT = 60.0
_LENGTH = struct.Struct("!Q")
AnswerBytes = Callable[[bytes], bytes]


@contextlib.contextmanager
def _address(folder: Path) -> Iterator[str]:
    """The socket's address: on Linux short for any path, as addresses have about 100 characters."""
    place = folder / ADDRESS[0]
    if not Path("/proc/self/fd").exists():
        yield str(place / ADDRESS[1])
        return
    # O_PATH needs permission to enter the folder, not to list it.
    descriptor = os.open(place, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{ADDRESS[1]}"
    finally:
        os.close(descriptor)


def send(line: socket.socket, data: bytes) -> None:
    """Send bytes, preceded by their length."""
    line.sendall(_LENGTH.pack(len(data)))
    line.sendall(data)


def receive(line: socket.socket, limit: int | None = None) -> bytes:
    """Receive what `send` sent, at most `limit` + 1 bytes of it: one more shows that it is long."""
    (length,) = _LENGTH.unpack(_take(line, _LENGTH.size))
    kept = length if limit is None else min(length, limit + 1)
    data = _take(line, kept)
    left = length - kept
    while left:
        left -= len(_take(line, min(left, 1 << 20)))
    return data


def _take(line: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        part = line.recv(min(length - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def open_socket(folder: Path) -> socket.socket:
    """Connect to the process that listens in this kit."""
    line = socket.socket(socket.AF_UNIX)
    with _address(folder) as address:
        line.connect(address)
    return line


class JobHandler(Protocol):
    """Answers the engine's jobs; of a question `limit` bytes are read."""

    limit: int

    def open_job(self) -> AnswerBytes:
        """Return the function that answers a new job's questions; it never raises."""


MakeHandler = Callable[[], JobHandler]


class Bridge:
    """Listens in a site's kit for the engine's jobs, and answers one question at a time.

    `make` is called at the first job. Only processes of `users` may connect. The socket belongs to
    `owner`, if given.
    """

    def __init__(
        self, folder: Path, make: MakeHandler, users: set[int], owner: int | None = None
    ) -> None:
        self._handler = functools.cache(make)
        self._users = users
        place = folder / ADDRESS[0]
        place.mkdir(mode=0o700, exist_ok=True)
        # Another owner of the socket may enter the folder, and change nothing in it.
        place.chmod(0o700 if owner is None else 0o711)
        self._path = place / ADDRESS[1]
        self._path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        try:
            with _address(folder) as address:
                self._listener.bind(address)
        finally:
            os.umask(before)
        if owner is not None:
            os.chown(self._path, owner, -1, follow_symlinks=False)
        self._listener.listen()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)

    def close(self) -> None:
        """Close all connections, and remove the socket."""
        for key in list(self._selector.get_map().values()):
            self._drop(key.fileobj)  # type: ignore[arg-type]
        self._selector.close()
        self._path.unlink(missing_ok=True)

    def serve(self, seconds: float) -> None:
        """Answer the questions that arrive within some seconds."""
        for key, _ in self._selector.select(seconds):
            line = key.fileobj
            assert isinstance(line, socket.socket)
            if line is self._listener:
                self._accept()
                continue
            try:
                question = receive(line, self._handler().limit)
                send(line, key.data(question))
            except (EOFError, OSError):
                # The job has ended, or was killed during a question.
                self._drop(line)

    def _accept(self) -> None:
        line, _ = self._listener.accept()
        line.settimeout(SOCKET_TIMEOUT)
        if peer_user(line) in self._users:
            self._selector.register(line, selectors.EVENT_READ, self._handler().open_job())
        else:
            line.close()

    def _drop(self, line: socket.socket) -> None:
        self._selector.unregister(line)
        line.close()


def peer_user(line: socket.socket) -> int:
    """Return the user id of the process at the other end, as the kernel reports it."""
    if not hasattr(socket, "SO_PEERCRED"):
        # Elsewhere only the modes of folder and socket keep others out.
        return os.getuid()
    credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])
