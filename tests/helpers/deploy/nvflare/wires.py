"""A wire between a site and the server that can be cut, go silent, and be restored."""

import contextlib
import socket
import threading
from dataclasses import replace
from pathlib import Path

from fedlasso.deploy.kit import read_kit, seal_kit
from fedlasso.deploy.nvflare.local import reserve_port


class Wire:
    """Forwards a port of its own on loopback to the server's.

    Parameters
    ----------
    target : the server's port
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._reserved = reserve_port()
        self.port = self._reserved.getsockname()[1]
        self._flowing = threading.Event()
        self._ends: list[socket.socket] = []
        self._listener: socket.socket | None = None
        self.restore()

    def restore(self) -> None:
        """Let everything through; what waited on a silent wire arrives now."""
        if self._listener is None:
            self._listener = socket.create_server(("127.0.0.1", self.port))
            threading.Thread(target=self._accept, args=[self._listener], daemon=True).start()
        self._flowing.set()

    def cut(self) -> None:
        """Break every connection and refuse new ones."""
        if self._listener is not None:
            _close(self._listener)
        self._listener = None
        while self._ends:
            _close(self._ends.pop())
        self._flowing.set()

    def close(self) -> None:
        """Cut it for good."""
        self.cut()
        self._reserved.close()

    def silence(self) -> None:
        """Let nothing through, and tell nobody."""
        self._flowing.clear()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                _close(near)
                continue
            self._ends += [near, far]
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=ends, daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self._flowing.wait()
                target.sendall(data)
            self._flowing.wait()
        _close(target)


def _close(end: socket.socket) -> None:
    # Closing alone would not wake a thread that waits at the socket.
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


def reroute(kit: Path, port: int) -> None:
    """Have a site connect to another port, as if its kit had been made so."""
    seal_kit(kit, replace(read_kit(kit), port=port))
