"""A network without an engine: doors in this process behind the coordinator's end of the line."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedlasso import __version__
from fedlasso.deploy.network import Answer, Network
from fedlasso.deploy.records import TableRecords
from fedlasso.errors import Interrupted
from fedlasso.federation import decode
from fedlasso.governance import Audit, Door, Policy


def make_door(path: Path, name: str, policy: Policy | None = None, version: str = "") -> Door:
    """The door of one site, whose books are beside its file."""
    books = Audit(path.parent / "books" / f"{name}.jsonl")
    memory = path.parent / "memory" / name
    records = TableRecords(path, b"key")
    return Door(name, records, policy or Policy(), books, memory, version or __version__)


def make_doors(tables: Mapping[str, Path], policy: Policy | None = None) -> dict[str, Door]:
    """The doors of all sites."""
    return {name: make_door(path, name, policy) for name, path in tables.items()}


# What becomes on the way of site b's reply to a question of some name.
Tampering = Mapping[str, Callable[[Any], bytes]]


class DoorLine:
    """A line to doors in this process, which is cut after so many questions."""

    def __init__(
        self,
        doors: Mapping[str, Door],
        questions: int | None = None,
        tampering: Tampering | None = None,
    ) -> None:
        self.doors = doors
        self.left = questions
        self.tampering = tampering or {}

    def exchange(self, sites: Sequence[str], question: bytes, seconds: float) -> list[Answer]:
        if self.left is not None:
            if self.left == 0:
                raise Interrupted("site 'b' did not answer")
            self.left -= 1
        replies = {name: self.doors[name].answer_bytes(question) for name in sites}
        change = self.tampering.get(type(decode(question)).__name__)
        if change is not None and "b" in replies:
            replies["b"] = change(decode(replies["b"]))
        return [Answer(name, "reply", data) for name, data in replies.items()]


def join_doors(doors: Mapping[str, Door]) -> Network:
    """A network of these doors."""
    return Network(DoorLine(doors), list(doors), 1.0)


class Project:
    """Sites that a plan can reach, and whose connections break off as told beforehand.

    Attributes
    ----------
    cuts : after how many questions each connection is cut, in turn; those of joining count
    patience : seconds that each connection would have waited for sites and for the server
    tampering : what becomes of site b's replies on the way
    """

    def __init__(self, tables: Mapping[str, Path], policy: Policy | None = None) -> None:
        self.doors = make_doors(tables, policy)
        self.cuts: list[int] = []
        self.patience: list[tuple[float, float]] = []
        self.tampering: Tampering = {}

    @contextmanager
    def connect(
        self, folder: Path, sites: Sequence[str], *, timeout: float, start: float, restart: float
    ) -> Iterator[Network]:
        self.patience.append((start, restart))
        line = DoorLine(self.doors, self.cuts.pop(0) if self.cuts else None, self.tampering)
        yield Network(line, list(self.doors), timeout)
