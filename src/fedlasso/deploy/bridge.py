"""A private socket in a site's kit: the engine's job hands bytes over it to the site's own process.

Only bytes cross: the records, the policy and the books stay with the process that listens. This
file imports nothing of ours, so that the engine's job stays small and starts fast.
"""

import contextlib
import os
import selectors
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

# The folder and the socket in a kit.
ADDRESS = ("door", "socket")
# Seconds for the other end to send what it has begun, or to take what it has asked for.
PATIENCE = 60.0
_LENGTH = struct.Struct("!Q")
AnswerBytes = Callable[[bytes], bytes]


@contextlib.contextmanager
def _address(folder: Path) -> Iterator[str]:
    """The socket's address, however long the path: an address has about 100 characters."""
    place = folder / ADDRESS[0]
    if not Path("/proc/self/fd").exists():
        yield str(place / ADDRESS[1])
        return
    # To pass through a folder one need not be able to list it.
    descriptor = os.open(place, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{ADDRESS[1]}"
    finally:
        os.close(descriptor)


def send(line: socket.socket, data: bytes) -> None:
    """Send some bytes with their length before them."""
    line.sendall(_LENGTH.pack(len(data)))
    line.sendall(data)


def receive(line: socket.socket, limit: int | None = None) -> bytes:
    """Receive what `send` sent; of more than `limit` bytes one more is kept, to show it."""
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


def ask(folder: Path) -> socket.socket:
    """Connect to the process that listens in this kit."""
    line = socket.socket(socket.AF_UNIX)
    with _address(folder) as address:
        line.connect(address)
    return line


class Keeper(Protocol):
    """Who answers."""

    @property
    def limit(self) -> int:
        """How many bytes of a question are read."""

    def greet(self) -> AnswerBytes:
        """Return who answers another job that has come; it never raises."""


class Bridge:
    """Listens in a site's kit for the engine's jobs, and answers one question at a time.

    Processes of `users` may ask; the socket is the `owner`'s, if it is another than who runs this.
    """

    def __init__(
        self, folder: Path, keeper: Keeper, users: set[int], owner: int | None = None
    ) -> None:
        self._keeper = keeper
        self._users = users
        place = folder / ADDRESS[0]
        place.mkdir(mode=0o700, exist_ok=True)
        # Another owner of the socket may pass through the folder, and change nothing in it.
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
        """Hang up on everybody."""
        for key in list(self._selector.get_map().values()):
            self._drop(key.fileobj)  # type: ignore[arg-type]
        self._selector.close()
        self._path.unlink(missing_ok=True)

    def serve(self, seconds: float) -> None:
        """Answer who asks within some seconds."""
        for key, _ in self._selector.select(seconds):
            line = key.fileobj
            assert isinstance(line, socket.socket)
            if line is self._listener:
                self._accept()
                continue
            try:
                question = receive(line, self._keeper.limit)
                send(line, key.data(question))
            except (EOFError, OSError):
                # A job that has ended, or that was killed while it asked.
                self._drop(line)

    def _accept(self) -> None:
        line, _ = self._listener.accept()
        line.settimeout(PATIENCE)
        if peer_user(line) in self._users:
            self._selector.register(line, selectors.EVENT_READ, self._keeper.greet())
        else:
            line.close()

    def _drop(self, line: socket.socket) -> None:
        self._selector.unregister(line)
        line.close()


def peer_user(line: socket.socket) -> int:
    """Return the number of the user whose process holds the other end, as the kernel says."""
    if not hasattr(socket, "SO_PEERCRED"):
        # Elsewhere the folder's and the socket's modes alone keep others out.
        return os.getuid()
    told = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", told)[1])
