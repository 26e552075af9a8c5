"""A federation across a network: a line of bytes carries questions to the sites' doors."""

import hashlib
import time
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

from msgspec.structs import replace

from fedlasso import __version__
from fedlasso.atomic_files import append_privately
from fedlasso.deploy import schemas
from fedlasso.errors import FedLassoError, Interrupted, RefusalCode, Refused
from fedlasso.federation import Federation, Reply, Request, checking, encode
from fedlasso.federation.checking import LONGEST_REFUSAL, MAX_ROWS, BadReply, printable
from fedlasso.federation.codec import MAX_PARTS, pack, seal
from fedlasso.federation.federation import check_replies, name_site, recipients
from fedlasso.federation.fixed_point import grid_of
from fedlasso.federation.magnitudes import Magnitudes
from fedlasso.federation.messages import PROTOCOL
from fedlasso.fitting import Settings
from fedlasso.governance.door_messages import (
    DescribeColumns,
    Described,
    FindOthers,
    Introduce,
    Introduction,
    Open,
    Opened,
    Refusal,
)
from fedlasso.governance.masks import OfferKey, draw_session
from fedlasso.governance.policy import Policy
from fedlasso.models import NetworkSource
from fedlasso.models.inputs import name_columns
from fedlasso.numerics import DEFAULT_LOSS
from fedlasso.sites.views import Standardise
from fedlasso.tables import Outcome, Schema

R = TypeVar("R", bound=Reply)
# Bytes of the questions in one exchange, as many as sites read by default.
MAX_BATCH = Policy().max_bytes


class Answer(NamedTuple):
    """A site's reply, or that it was late or lost."""

    site: str
    kind: Literal["reply", "late", "lost"]
    data: bytes


class Line(Protocol):
    """Carries bytes to the sites and back; each engine provides one."""

    def exchange(self, sites: Sequence[str], question: bytes, seconds: float) -> list[Answer]:
        """Send a question to all these sites, and wait so many seconds for each."""


@runtime_checkable
class BoundedLine(Line, Protocol):
    """A line that loads at most `limit` bytes of a reply, and one more if there are more."""

    limit: int | None


class Network(Federation):
    """Sites across a network, which answer after joining a fit; `timeout` is in seconds."""

    def __init__(self, line: Line, sites: Sequence[str], timeout: float) -> None:
        self.line = line
        self.timeout = timeout
        self.sites = tuple(sorted(sites))
        self.columns = ()
        self.loss = DEFAULT_LOSS
        # File for the hash of every valid reply on arrival.
        self.receipts: Path | None = None
        self.introductions: tuple[Introduction, ...] = ()
        # Seconds that each site's clock is ahead of the coordinator's.
        self.ahead: dict[str, float] = {}
        # Columns that identify the rows at some site, and which class of a text target is 1.
        self.left_out: tuple[str, ...] = ()
        self.classes_chosen = ""
        # Whether the sites mask their numbers, so that only totals can be read.
        self.masked = False
        self._number = 0
        self._rows: dict[str, int] = {}
        # The scales of the views that the sites keep.
        self._views: dict[str, Magnitudes] = {}

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        """Ask all sites at once; an error names the site that does not answer in time."""
        (replies,) = self.replies_together([request])
        return cast(tuple[R, ...], replies)

    def replies_together(self, requests: Sequence[Request[Any]]) -> tuple[tuple[Reply, ...], ...]:
        """Ask all sites at once, in one exchange unless the batch is larger than sites read."""
        numbered = [self._number_masked(request) for request in requests]
        exchanges = [self._exchange(*batch) for batch in self._batches(numbered)]
        return tuple(chain.from_iterable(exchanges))

    def _number_masked(self, request: Request[Any]) -> Request[Any]:
        """Return a question with its number, if the replies to it are masked."""
        # Refuse a question that does not declare the form of its replies.
        checking.max_reply_bytes(request, len(self.columns))
        names = recipients(self.sites, request)
        if not (self.masked and request.reach):
            return request
        if set(names) != set(self.sites):
            own = f"{type(request).__name__} needs the own sum of {', '.join(names)}"
            raise Refused(f"{own}, which is masked; use a procedure that needs totals", names)
        self._number += 1
        return seal(request, number=self._number)

    def _batches(
        self, requests: Sequence[Request[Any]]
    ) -> Iterator[tuple[tuple[str, ...], list[Request[Any]], list[bytes]]]:
        """Yield the recipients, questions and their bytes of each exchange."""
        for names, group in groupby(requests, partial(recipients, self.sites)):
            batch: list[Request[Any]] = []
            parts: list[bytes] = []
            for request in group:
                data = encode(request)
                size = len(pack([])) + sum(8 + len(part) for part in (*parts, data))
                if parts and (size > MAX_BATCH or len(parts) == MAX_PARTS):
                    yield names, batch, parts
                    batch, parts = [], []
                batch.append(request)
                parts.append(data)
            yield names, batch, parts

    def _exchange(
        self, names: Sequence[str], requests: Sequence[Request[Any]], parts: Sequence[bytes]
    ) -> list[tuple[Reply, ...]]:
        """Return the checked replies to the questions of one exchange."""
        question = pack(parts) if len(parts) > 1 else parts[0]
        if isinstance(self.line, BoundedLine):
            self.line.limit = checking.max_answer_bytes(requests, len(self.columns))
        answers = sorted(self.line.exchange(names, question, self.timeout))
        for request in requests:
            if isinstance(request, Standardise):
                self._views[request.name] = request.magnitudes.of_loss(self.loss)
        p = len(self.columns)
        grids = [grid_of(request, self._views.get(request.on), p) for request in requests]
        replies: list[list[Reply]] = [[] for _ in requests]
        receipts: list[str] = ["" for _ in requests]
        failed: list[FedLassoError] = []
        for answer in answers:
            try:
                for k, data in enumerate(self._divide(requests, answer)):
                    grid = None if self.masked else grids[k]
                    reply = self._receive(requests[k], answer._replace(data=data), grid)
                    replies[k].append(reply)
                    # The audit counts joining as no part of a fit.
                    if not isinstance(requests[k], Open):
                        receipts[k] += f"{answer.site} {hashlib.sha256(data).hexdigest()}\n"
            except FedLassoError as error:
                failed.append(error)
        whole = [] if failed else [check_replies(names, each) for each in replies]
        for k, each in enumerate(whole):
            try:
                if self.masked and requests[k].reach:
                    rows = sum(self._rows.values())
                    checking.check_total(requests[k], each, rows, grids[k])
            except FedLassoError as error:
                # The total is discarded, and so are the replies that it consists of.
                receipts[k] = ""
                failed.append(error)
        if self.receipts is not None and any(receipts):
            append_privately(self.receipts, "".join(receipts))
        if failed:
            raise failed[0]
        return whole

    def _divide(self, requests: Sequence[Request[Any]], answer: Answer) -> Iterator[bytes]:
        """Yield a site's reply to each question, or fewer if the last one is a refusal."""
        if len(requests) == 1 or answer.kind != "reply":
            yield answer.data
            return
        parts = checking.divide_bounded(requests, answer.site, answer.data, len(self.columns))
        yield from parts
        # A refusal, which ends a batch, was raised.
        if len(parts) < len(requests):
            what = f"{len(parts)} replies to {len(requests)} questions"
            raise BadReply(answer.site, requests[0], what)

    def _receive(self, request: Request[R], answer: Answer, grid: Magnitudes | None) -> R:
        """Return the checked reply of one site; an error names the site."""
        site, kind, data = answer
        if kind == "late":
            late = f"site {site!r} did not answer within {self.timeout:.0f} s"
            raise Interrupted(f"{late}; restart it, or fit without it")
        if kind == "lost":
            raise Interrupted(f"site {site!r} was lost; restart it")
        p = len(self.columns)
        message = checking.read_bounded(request, site, data, p)
        # A refusal carries no numbers, and the site's audit has no hash of it.
        if isinstance(message, Refusal):
            text = name_site(site, printable(message.text)[:LONGEST_REFUSAL])
            raise Refused(text, (site,), RefusalCode.read(message.code))
        rows = self._rows.get(site, MAX_ROWS)
        return checking.check_reply(request, site, data, message, p, rows, grid)

    def introduce(self) -> None:
        """Ask for each site's version, rows, columns and clock."""
        before = time.time()
        self._note_introductions(self.replies(Introduce()))
        after = time.time()
        for i in self.introductions:
            # Only a time outside the interval of asking shows that a clock is off.
            self.ahead[i.site] = i.clock - min(max(i.clock, before), after)

    def _note_introductions(self, introductions: tuple[Introduction, ...]) -> None:
        for i in introductions:
            if not 0 <= i.rows <= MAX_ROWS:
                raise BadReply(i.site, Introduce(), f"{i.rows} rows")
            self._rows[i.site] = i.rows
        self.introductions = introductions

    def odd_clocks(self) -> dict[str, str]:
        """Return the sites whose clocks are off by more than a minute, with a message for each."""
        return {
            site: f"its clock is {timedelta(seconds=round(abs(off)))} "
            f"{'ahead of' if off > 0 else 'behind'} the coordinator's"
            for site, off in self.ahead.items()
            if abs(off) > 60
        }

    def other_versions(self) -> dict[str, str]:
        """Return the sites whose version differs from the coordinator's, and that version."""
        return {i.site: i.version for i in self.introductions if i.version != __version__}

    def open(self, source: NetworkSource, settings: Settings | None = None) -> NetworkSource:
        """Check that the sites are compatible and let them join; return the completed source."""
        settings = settings or Settings()
        outcome = source.outcome(settings)
        self.introduce()
        _check_protocols(self.introductions)
        columns = _choose_columns(self.introductions, source, outcome)
        # A resumed fit uses the schema and the data it began with.
        named = settings.columns_by_name
        schema = source.schema or self._agree(source, outcome, columns, named)
        began = source.fingerprints or {i.site: i.fingerprint for i in self.introductions}
        fingerprints = tuple(f"{site}:{value}" for site, value in began.items())
        session: dict[str, Any] = {"sites": self.sites, "fingerprints": fingerprints}
        # Sites draw keys for masks, unless all send unmasked sums.
        self.masked = any(i.sums == "masked" for i in self.introductions)
        if self.masked:
            name, offers = self._draw_keys(source.fit)
            session |= {"session": name, "offers": offers}
        self._join(schemas.make_opening(source.fit, schema, settings, source.missing, **session))
        self.loss = settings.loss
        self.columns = name_columns(schema.encoded, settings)
        source = replace(source, schema=schema, columns=schemas.names_in(schema))
        return replace(source, fingerprints=began, sites=self.sites)

    def _draw_keys(self, fit: str) -> tuple[str, tuple[str, ...]]:
        """Return a new session for masks, and the sites' keys for it."""
        offer = OfferKey(fit, draw_session())
        return offer.session, tuple(reply.offer for reply in self.replies(offer))

    def _describe(self, request: DescribeColumns) -> tuple[Described, ...]:
        """Ask the sites what columns hold."""
        return self.replies(request)

    def _join(self, opening: Open) -> None:
        """Ask the sites to join a fit."""
        self.count_atoms(self.replies(opening))

    def count_atoms(self, opened: Sequence[Opened]) -> None:
        """Keep into how many parts the sites have cut their rows."""
        atoms = tuple(reply.atoms for reply in opened)
        self.atoms = atoms if all(atoms) else ()

    def _agree(
        self,
        source: NetworkSource,
        outcome: Outcome,
        columns: tuple[str, ...],
        named: Collection[str],
    ) -> Schema:
        """Ask the sites what the columns hold, then which have rows outside the agreed levels.

        Columns that identify the rows are left out, as from files, unless they are `named`.
        """
        target, na, roles = outcome.target, source.na, schemas.name_outcome(outcome)
        request = DescribeColumns(source.fit, target, columns, na, source.min_level, **roles)
        replies = self._describe(request)
        described = {}
        for reply in replies:
            try:
                schema = schemas.read_schema(reply.schema, outcome, columns, na)
                described[reply.site] = _check_levels(schema)
            except FedLassoError as error:
                raise FedLassoError(name_site(reply.site, str(error))) from None
        if not source.columns:
            found = {name for reply in replies for name in reply.row_numbers}
            self.left_out = tuple(sorted(found.difference(named)))
            described = schemas.leave_out(described, self.left_out)
        described, self.classes_chosen = schemas.agree_on_classes(described, source.positive)

        def find_others(schema: Schema) -> set[str]:
            names, text = schemas.names_in(schema), schemas.write_schema(schema)
            replies = self.replies(FindOthers(source.fit, target, names, text, na, **roles))
            return {name for reply in replies for name in reply.columns}

        return schemas.agree_on_columns(described, source.min_level, find_others)


def _check_protocols(sites: Sequence[Introduction]) -> None:
    """Refuse sites with another protocol; versions may differ."""
    others = [
        f"site {i.site!r} runs fedlasso {i.version} (protocol {i.protocol or 'unknown'})"
        for i in sites
        if i.protocol != PROTOCOL
    ]
    if others:
        here = f"the coordinator {__version__} (protocol {PROTOCOL})"
        raise FedLassoError(f"{', '.join(others)}, {here}; install versions with one protocol")


def _check_levels(schema: Schema) -> Schema:
    """Refuse levels with control characters, which a terminal would execute."""
    for column in schema.columns:
        if any(printable(level) != level for level in column.levels):
            raise FedLassoError(f"column {column.name!r}: remove control characters from levels")
    return schema


def _choose_columns(
    sites: Sequence[Introduction], source: NetworkSource, outcome: Outcome
) -> tuple[str, ...]:
    """Return the common predictors in the first site's order; refuse columns of some sites only."""
    for name in source.drop:
        if not any(name in i.columns for i in sites):
            raise FedLassoError(f"no site has a column {name!r} to drop")
    everyone = {i.site: set(i.columns).difference(source.drop) for i in sites}
    for name, shown in everyone.items():
        for own in outcome.names:
            if own not in shown:
                raise FedLassoError(f"site {name!r} has no column {own!r}")
    if source.columns:
        return source.columns
    shared = set.intersection(*everyone.values())
    # The columns that only some sites have, by these sites.
    odd: dict[str, list[str]] = {}
    for column in sorted(set().union(*everyone.values()) - shared):
        where = " and ".join(repr(name) for name, shown in everyone.items() if column in shown)
        odd.setdefault(where, []).append(column)
    if odd:
        listed = "; ".join(f"only at {where}: {', '.join(c)}" for where, c in odd.items())
        remedy = "correct the files, select common columns with --columns, or --drop the others"
        raise FedLassoError(f"the sites' columns differ, {listed}; {remedy}")
    return tuple(c for c in sites[0].columns if c in shared and c not in outcome.names)
