"""A federation across a network: questions go over a line of bytes to the doors of the sites."""

import hashlib
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from fedlasso import __version__
from fedlasso.atomic_files import append_privately
from fedlasso.deploy.schemas import (
    agree_on_columns,
    leave_out,
    make_opening,
    name_outcome,
    names_in,
    read_schema,
    write_schema,
)
from fedlasso.errors import FedLassoError, Interrupted, RefusalCode, Refused
from fedlasso.federation import Federation, Reply, Request, encode
from fedlasso.federation.checking import (
    LONGEST_REFUSAL,
    MAX_ROWS,
    BadReply,
    check_reply,
    check_total,
    max_reply_bytes,
    printable,
    read_bounded,
)
from fedlasso.federation.codec import seal
from fedlasso.federation.federation import check_replies, name_site, recipients
from fedlasso.federation.fixed_point import grid_of
from fedlasso.federation.magnitudes import Magnitudes
from fedlasso.federation.messages import PROTOCOL
from fedlasso.fitting import Settings
from fedlasso.governance.door_messages import (
    DescribeColumns,
    FindOthers,
    Introduce,
    Introduction,
    Refusal,
)
from fedlasso.governance.masks import OfferKey, draw_session
from fedlasso.models import NetworkSource
from fedlasso.models.inputs import name_columns
from fedlasso.numerics import DEFAULT_LOSS
from fedlasso.sites.views import Standardise
from fedlasso.tables import Outcome, Schema

R = TypeVar("R", bound=Reply)


class Answer(NamedTuple):
    """What came back from one site: its reply, or word that it was late or lost."""

    site: str
    kind: Literal["reply", "late", "lost"]
    data: bytes


class Line(Protocol):
    """Carries bytes to the sites and back, by whatever engine."""

    def exchange(self, sites: Sequence[str], question: bytes, seconds: float) -> list[Answer]:
        """Ask these sites at once, and wait so long for each."""


class Network(Federation):
    """Sites across a network, which answer once they have joined a fit.

    Parameters
    ----------
    line : what carries the bytes
    sites : names of the sites
    timeout : seconds that a site may take for one answer

    Attributes
    ----------
    receipts : file that gets the hash of every proper reply as it arrives, whatever becomes of it
    introductions : what the sites said of themselves
    ahead : seconds that each site's clock is ahead of the one here
    left_out : columns that only number the rows at some site, so that no fit takes them
    masked : whether the words of single sites are masked, so that only totals mean anything
    """

    def __init__(self, line: Line, sites: Sequence[str], timeout: float) -> None:
        self.line = line
        self.timeout = timeout
        self.sites = tuple(sorted(sites))
        self.columns = ()
        self.loss = DEFAULT_LOSS
        self.receipts: Path | None = None
        self.introductions: tuple[Introduction, ...] = ()
        self.ahead: dict[str, float] = {}
        self.left_out: tuple[str, ...] = ()
        self.masked = False
        self._number = 0
        self._rows: dict[str, int] = {}
        # How large the numbers of the views are that sites were asked to keep.
        self._views: dict[str, Magnitudes] = {}

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        """Ask the sites at once; a site that does not answer in time is an error that names it."""
        names = recipients(self.sites, request)
        # A question that does not say what its replies look like is not even asked.
        max_reply_bytes(request, len(self.columns))
        if self.masked and request.reach:
            if set(names) != set(self.sites):
                own = f"{type(request).__name__} asks {', '.join(names)} for a sum of its own"
                remedy = "use a procedure that needs totals only"
                raise Refused(f"{own}, and the sites mask theirs; {remedy}", names)
            self._number += 1
            request = seal(request, number=self._number)
        answers = sorted(self.line.exchange(names, encode(request), self.timeout))
        replies: list[R] = []
        receipts = ""
        failed: list[FedLassoError] = []
        if isinstance(request, Standardise):
            self._views[request.name] = request.magnitudes.of_loss(self.loss)
        grid = grid_of(request, self._views.get(request.on), len(self.columns))
        for answer in answers:
            try:
                replies.append(self._receive(request, answer, None if self.masked else grid))
                receipts += f"{answer.site} {hashlib.sha256(answer.data).hexdigest()}\n"
            except FedLassoError as error:
                failed.append(error)
        if self.receipts is not None and receipts:
            append_privately(self.receipts, receipts)
        if failed:
            raise failed[0]
        whole = check_replies(names, replies)
        if self.masked and request.reach:
            check_total(request, whole, sum(self._rows.values()), grid)
        return whole

    def _receive(self, request: Request[R], answer: Answer, grid: Magnitudes | None) -> R:
        """Return the reply of one site, checked; anything else is an error that names it."""
        site, kind, data = answer
        if kind == "late":
            late = f"site {site!r} did not answer within {self.timeout:.0f} s"
            raise Interrupted(f"{late}; bring it back, or fit without it")
        if kind == "lost":
            raise Interrupted(f"site {site!r} was lost; bring it back")
        p = len(self.columns)
        message = read_bounded(request, site, data, p)
        # A refusal carries no numbers, and the site's audit has no hash of it.
        if isinstance(message, Refusal):
            text = name_site(site, printable(message.text)[:LONGEST_REFUSAL])
            raise Refused(text, (site,), RefusalCode.read(message.code))
        rows = self._rows.get(site, MAX_ROWS)
        return check_reply(request, site, data, message, p, rows, grid)

    def introduce(self) -> None:
        """Ask the sites who they are, and how far their clocks are ahead of the one here."""
        before = time.time()
        self.introductions = self.replies(Introduce())
        after = time.time()
        for i in self.introductions:
            if not 0 <= i.rows <= MAX_ROWS:
                raise BadReply(i.site, Introduce(), f"{i.rows} rows")
            self._rows[i.site] = i.rows
            # A clock is off by what it lies outside the time of asking.
            self.ahead[i.site] = i.clock - min(max(i.clock, before), after)

    def odd_clocks(self) -> dict[str, str]:
        """Return the sites whose clocks are off by more than a minute, and how, in words."""
        return {
            site: f"its clock is {timedelta(seconds=round(abs(off)))} "
            f"{'ahead of' if off > 0 else 'behind'} the one here"
            for site, off in self.ahead.items()
            if abs(off) > 60
        }

    def other_versions(self) -> dict[str, str]:
        """Return the sites that run another version than the coordinator, and which."""
        return {i.site: i.version for i in self.introductions if i.version != __version__}

    def open(self, source: NetworkSource, settings: Settings | None = None) -> NetworkSource:
        """Let the sites introduce themselves, check that they fit together, and join the fit.

        What is returned is the source bound to the columns, the sites and the data of now. Without
        settings it is a fit of least squares.
        """
        settings = settings or Settings()
        outcome = source.outcome(settings)
        self.introduce()
        _check_protocols(self.introductions)
        columns = _choose_columns(self.introductions, source, outcome)
        # A fit that goes on does so with what was agreed on when it began.
        schema = source.schema or self._agree(source, outcome, columns)
        began = source.fingerprints or {i.site: i.fingerprint for i in self.introductions}
        session: dict[str, Any] = {
            "sites": self.sites,
            "fingerprints": tuple(f"{site}:{value}" for site, value in began.items()),
        }
        # Sites draw keys for masks, unless all of them send their sums in the clear.
        self.masked = any(i.sums == "masked" for i in self.introductions)
        if self.masked:
            offer = OfferKey(source.fit, draw_session())
            offers = tuple(reply.offer for reply in self.replies(offer))
            session |= {"session": offer.session, "offers": offers}
        self.replies(make_opening(source.fit, schema, settings, source.missing, **session))
        self.loss = settings.loss
        self.columns = name_columns(schema.encoded, settings)
        source = replace(source, schema=schema, columns=names_in(schema))
        return replace(source, fingerprints=began, sites=self.sites)

    def _agree(self, source: NetworkSource, outcome: Outcome, columns: tuple[str, ...]) -> Schema:
        """Ask the sites what the columns hold, and then whether the agreed levels leave rows."""
        target, na, roles = outcome.target, source.na, name_outcome(outcome)
        asked = DescribeColumns(source.fit, target, columns, na, source.min_level, **roles)
        replies = self.replies(asked)
        told = {}
        for reply in replies:
            try:
                told[reply.site] = read_schema(reply.schema, outcome, columns, na)
                _check_levels(told[reply.site])
            except FedLassoError as error:
                raise FedLassoError(name_site(reply.site, str(error))) from None
        if not source.columns:
            # As with files, columns that only number the rows at some site are left out.
            self.left_out = tuple(sorted({name for r in replies for name in r.row_numbers}))
            told = leave_out(told, self.left_out)

        def find_others(schema: Schema) -> set[str]:
            text = write_schema(schema)
            asked = FindOthers(source.fit, target, names_in(schema), text, na, **roles)
            return {name for reply in self.replies(asked) for name in reply.columns}

        return agree_on_columns(told, source.min_level, find_others)


def _check_protocols(sites: Sequence[Introduction]) -> None:
    """Refuse sites that speak another protocol; versions alone may differ, site by site."""
    others = [
        f"site {i.site!r} runs fedlasso {i.version} (protocol {i.protocol or 'unknown'})"
        for i in sites
        if i.protocol != PROTOCOL
    ]
    if others:
        here = f"the coordinator {__version__} (protocol {PROTOCOL})"
        remedy = "install versions with the same protocol, best the same version everywhere"
        raise FedLassoError(f"{', '.join(others)}, {here}; {remedy}")


def _check_levels(schema: Schema) -> None:
    """Refuse levels that would steer a terminal when they are shown."""
    for column in schema.columns:
        if any(printable(level) != level for level in column.levels):
            where = f"a level of text column {column.name!r}"
            raise FedLassoError(f"{where} holds control characters; clean it there")


def _choose_columns(
    sites: Sequence[Introduction], source: NetworkSource, outcome: Outcome
) -> tuple[str, ...]:
    """Return the predictors as the first site has them; an error lists those of some sites only."""
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
    odd = {name: sorted(shown - shared) for name, shown in everyone.items()}
    if any(odd.values()):
        listed = "; ".join(f"{n!r} alone: {', '.join(c)}" for n, c in odd.items() if c)
        remedy = "choose with --columns those that all have, or --drop the others"
        raise FedLassoError(f"the sites' columns differ, {listed}; {remedy}")
    return tuple(c for c in sites[0].columns if c in shared and c not in outcome.names)
