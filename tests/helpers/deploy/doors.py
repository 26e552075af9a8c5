"""A network without an engine: doors in this process behind the coordinator's end of the line."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from helpers.governance.authority import Authority
from helpers.nets import COLUMNS, KEY

from fedlasso import FedLassoError, __version__
from fedlasso.deploy.network import Answer, Network
from fedlasso.deploy.site_data import TableRecords
from fedlasso.errors import Interrupted
from fedlasso.federation import decode, encode
from fedlasso.federation.codec import is_batch, pack, unpack
from fedlasso.federation.fixed_point import UNBOUNDED, Words, _round, from_words, grid_of
from fedlasso.federation.magnitudes import Bound, Magnitudes
from fedlasso.federation.messages import layout
from fedlasso.governance import Audit, Door, Policy
from fedlasso.governance.identity import Identity
from fedlasso.sites.views import Standardise


def make_door(
    path: Path,
    name: str,
    policy: Policy | None = None,
    version: str = "",
    identity: Identity | None = None,
) -> Door:
    """The door of one site, whose books are beside its file."""
    books = Audit(path.parent / "books" / f"{name}.jsonl")
    memory = path.parent / "memory" / name
    records = TableRecords(path, KEY)
    given = (name, records, policy or Policy(), books, memory, version or __version__)
    return Door(*given, identity=identity)


def make_doors(
    tables: Mapping[str, Path], policy: Policy | None = None, authority: Authority | None = None
) -> dict[str, Door]:
    """The doors of all sites; with an authority they have accepted each other's keys."""
    own = authority.acquaint(tables) if authority else {}
    return {
        name: make_door(path, name, policy, identity=own.get(name)) for name, path in tables.items()
    }


# What becomes on the way of site b's reply to a question of some name: a reply, or bytes.
Tampering = Mapping[str, Callable[[Any], Any]]


def read_clear(request: Any, reply: Any, grid: Magnitudes | None) -> Any:
    """A reply as numbers, if it came as words that are not masked."""
    if not isinstance(reply, Words) or grid is None:
        return reply
    return replace(from_words(reply, request, grid), site=reply.site)


def write_wrong(request: Any, reply: Any, grid: Magnitudes | None) -> bytes:
    """The bytes of a reply that was tampered with, as words if such were asked for."""
    if isinstance(reply, bytes):
        return reply
    if not request.reach or grid is None or isinstance(reply, Words):
        return encode(reply)
    words = []
    for name, kind in layout(type(reply)):
        value = getattr(reply, name)
        if kind not in ("array", "optional array", "float", "int") or value is None:
            continue
        value = np.asarray(value, np.float64)
        bound = request.bounds(grid).get(name, Bound(grid.reach + UNBOUNDED))
        powers = np.asarray(bound.exponent)
        if powers.ndim == 1 and value.ndim:
            powers = np.resize(powers, value.shape[0])
        try:
            words.append(_round(value, Bound(powers, bound.words, bound.coarse)))
        except FedLassoError:
            words.append(np.full(value.size * bound.words, 2**63 - 1, np.uint64))
    of = type(reply).__name__
    notes = {"steps": reply.steps, "operations": reply.operations}
    return encode(Words(np.concatenate(words), of, site=reply.site, **notes))


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
        self.tampered: list[bytes] = []
        self._views: dict[str, Magnitudes] = {}

    def exchange(self, sites: Sequence[str], question: bytes, seconds: float) -> list[Answer]:
        if self.left is not None:
            if self.left == 0:
                raise Interrupted("site 'b' did not answer")
            self.left -= 1
        replies = {name: self.doors[name].answer_bytes(question) for name in sites}
        if "b" in replies:
            pairs = zip(parts_of(question), parts_of(replies["b"]), strict=False)
            parts = [self._tamper(decode(asked), reply) for asked, reply in pairs]
            replies["b"] = pack(parts) if is_batch(replies["b"]) else parts[0]
        return [Answer(name, "reply", data) for name, data in replies.items()]

    def _tamper(self, request: Any, reply: bytes) -> bytes:
        if isinstance(request, Standardise):
            self._views[request.name] = request.magnitudes
        change = self.tampering.get(type(request).__name__)
        if change is None:
            return reply
        grid = grid_of(request, self._views.get(request.on), len(COLUMNS))
        changed = change(read_clear(request, decode(reply), grid))
        self.tampered.append(write_wrong(request, changed, grid))
        return self.tampered[-1]


def parts_of(data: bytes) -> list[bytes]:
    """The messages of a batch, or the one message."""
    return unpack(data) if is_batch(data) else [data]


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
    tampered : the bytes that those became
    """

    def __init__(
        self,
        tables: Mapping[str, Path],
        policy: Policy | None = None,
        authority: Authority | None = None,
    ) -> None:
        self.doors = make_doors(tables, policy, authority)
        self.cuts: list[int] = []
        self.patience: list[tuple[float, float]] = []
        self.tampering: Tampering = {}
        self.tampered: list[bytes] = []

    @contextmanager
    def connect(
        self, folder: Path, sites: Sequence[str], *, timeout: float, start: float, restart: float
    ) -> Iterator[Network]:
        self.patience.append((start, restart))
        line = DoorLine(self.doors, self.cuts.pop(0) if self.cuts else None, self.tampering)
        line.tampered = self.tampered
        yield Network(line, list(sites or self.doors), timeout)
