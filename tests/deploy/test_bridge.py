"""The socket between the engine's job and the site's own process."""

import os
import pwd
import socket
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedlasso.deploy import bridge
from fedlasso.deploy.bridge import Bridge

LIMIT = 1000


class Parrot:
    """Answers with the number of the job and what it was asked."""

    def __init__(self) -> None:
        self.limit = LIMIT
        self.jobs = 0

    def open_job(self) -> bridge.AnswerBytes:
        self.jobs += 1
        job = str(self.jobs).encode()
        return lambda question: job + b":" + question


class Served:
    """A bridge that answers in a thread, as the site's process would."""

    def __init__(self, folder: Path, users: set[int]) -> None:
        self._bridge = Bridge(folder, Parrot, users)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while not self._over.is_set():
            self._bridge.serve(0.02)

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._bridge.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    # An address of a socket has about a hundred characters: a path may have more.
    deep = tmp_path / ("long" * 30)
    deep.mkdir()
    return deep


@pytest.fixture
def served(folder: Path) -> Iterator[Served]:
    bridged = Served(folder, {os.getuid()})
    yield bridged
    bridged.close()


def say(line: socket.socket, question: bytes) -> bytes:
    bridge.send(line, question)
    return bridge.receive(line)


def test_jobs_come_and_go_and_each_is_answered_as_itself(served: Served, folder: Path) -> None:
    with bridge.open_socket(folder) as old:
        assert say(old, b"x") == b"1:x"
        with bridge.open_socket(folder) as new:
            assert say(new, b"y") == b"2:y"
            # The old one is dying: it has begun a question, and is gone.
            old.sendall(b"\0\0\0")
            old.close()
            assert say(new, b"z") == b"2:z"
        with bridge.open_socket(folder) as third:
            assert say(third, b"") == b"3:"


def test_of_a_long_question_only_so_much_is_read_that_its_length_shows(
    served: Served, folder: Path
) -> None:
    with bridge.open_socket(folder) as line:
        assert len(say(line, bytes(5 << 20))) == len(b"1:") + LIMIT + 1
        assert say(line, b"again") == b"1:again"


def test_only_the_owner_can_reach_the_socket(served: Served, folder: Path) -> None:
    place = folder / "door"
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE((place / "socket").stat().st_mode) == 0o600


def ask_as(user: pwd.struct_passwd, folder: Path) -> str:
    """What another user's process is told."""
    reported, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
            with bridge.open_socket(folder) as line:
                os.write(tell, say(line, b"x"))
        except (EOFError, OSError) as error:
            os.write(tell, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.close(tell)
    os.waitpid(child, 0)
    with os.fdopen(reported) as said:
        return said.read()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user of the machine")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("known", [False, True])
def test_another_user_is_answered_only_if_he_is_known(known: bool) -> None:
    nobody = pwd.getpwnam("nobody")
    # Pytest's own folders are closed to others.
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base)
        folder.chmod(0o755)
        bridged = Served(folder, {os.getuid(), *([nobody.pw_uid] if known else [])})
        try:
            assert ask_as(nobody, folder) == "PermissionError"
            # Even where the modes let him in, the kernel says who he is.
            (folder / "door").chmod(0o755)
            (folder / "door" / "socket").chmod(0o666)
            hung_up = {"EOFError", "ConnectionResetError", "BrokenPipeError"}
            assert ask_as(nobody, folder) in ({"1:x"} if known else hung_up)
        finally:
            bridged.close()
