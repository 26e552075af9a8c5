"""A network without an engine: doors in this process behind the coordinator's end of the line."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from nets import KEY

from fedlasso import __version__
from fedlasso.deploy.network import Answer, Network
from fedlasso.deploy.records import TableRecords
from fedlasso.errors import Interrupted
from fedlasso.governance import Audit, Door, Policy


def make_door(path: Path, name: str, policy: Policy | None = None, version: str = "") -> Door:
    """The door of one site, whose books are beside its file."""
    books = Audit(path.parent / "books" / f"{name}.jsonl")
    memory = path.parent / "memory" / name
    records = TableRecords(path, KEY)
    return Door(name, records, policy or Policy(), books, memory, version or __version__)


def make_doors(tables: Mapping[str, Path], policy: Policy | None = None) -> dict[str, Door]:
    """The doors of all sites."""
    return {name: make_door(path, name, policy) for name, path in tables.items()}


class DoorLine:
    """A line to doors in this process, which is cut after so many questions."""

    def __init__(self, doors: Mapping[str, Door], questions: int | None = None) -> None:
        self.doors = doors
        self.left = questions

    def exchange(self, sites: Sequence[str], question: bytes, seconds: float) -> list[Answer]:
        if self.left is not None:
            if self.left == 0:
                raise Interrupted("site 'b' did not answer")
            self.left -= 1
        return [Answer(n, "reply", self.doors[n].answer_bytes(question)) for n in sites]


def join_doors(doors: Mapping[str, Door]) -> Network:
    """A network of these doors."""
    return Network(DoorLine(doors), list(doors), 1.0)


class Project:
    """Sites that a plan can reach, and whose connections break off as told beforehand.

    Attributes
    ----------
    cuts : after how many questions each connection is cut, in turn; those of joining count
    patience : seconds that each connection would have waited for sites and for the server
    """

    def __init__(self, tables: Mapping[str, Path], policy: Policy | None = None) -> None:
        self.doors = make_doors(tables, policy)
        self.cuts: list[int] = []
        self.patience: list[tuple[float, float]] = []

    @contextmanager
    def connect(
        self, folder: Path, sites: Sequence[str], *, timeout: float, start: float, restart: float
    ) -> Iterator[Network]:
        self.patience.append((start, restart))
        line = DoorLine(self.doors, self.cuts.pop(0) if self.cuts else None)
        yield Network(line, list(self.doors), timeout)
