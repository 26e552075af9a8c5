"""What a site's door is asked and says itself, before and beside the questions of a fit."""

from dataclasses import field

from fedlasso.families import DEFAULT
from fedlasso.federation import Reply, Request
from fedlasso.federation.messages import R


class Introduction(Reply):
    """Version, columns shown, the data file's fingerprint and rows, and seconds since 1970, UTC.

    `sums` says whether the site's sums leave masked or clear, and `protocol` which one is spoken
    here. An introduction has these fields in every protocol, so that all understand who differs.
    """

    version: str
    columns: tuple[str, ...]
    fingerprint: str
    rows: int
    clock: float
    sums: str
    protocol: str = ""


class Introduce(Request[Introduction]):
    """Who are you, and which columns do you have?"""


class AboutOutcome(Request[R]):
    """A question about a fit, which says what is to be explained by the names of its columns.

    `target` is the response, of survival times how long each lasted; the others are empty where a
    fit has none. `family` says what kind of response it is.
    """

    fit: str
    target: str
    family: str = field(default=DEFAULT, kw_only=True)
    event: str = field(default="", kw_only=True)
    offset: str = field(default="", kw_only=True)
    weights: str = field(default="", kw_only=True)

    @property
    def outcome(self) -> tuple[str, ...]:
        """The columns that are no predictors."""
        return tuple(filter(None, (self.target, self.event, self.offset, self.weights)))


class Described(Reply):
    """What the columns hold, as the JSON of a schema: kinds, and levels with enough rows.

    `row_numbers` are the columns among them that only number the rows.
    """

    schema: str
    row_numbers: tuple[str, ...]


class DescribeColumns(AboutOutcome[Described]):
    """What do these columns hold: numbers, text at which levels, or nothing?

    A level is told when at least `min_level` rows have it, or as many as the site's policy asks
    for; texts in `na` count as missing. `fit` is the fit that is going to be opened.
    """

    columns: tuple[str, ...]
    na: tuple[str, ...]
    min_level: int


class Others(Reply):
    """Text columns that have rows at other levels than those that were named."""

    columns: tuple[str, ...]


class FindOthers(AboutOutcome[Others]):
    """Which text columns have rows at none of these levels? `schema` is the JSON of them."""

    columns: tuple[str, ...]
    schema: str
    na: tuple[str, ...]


class Opened(Reply):
    """The site has joined the fit."""


class Open(AboutOutcome[Opened]):
    """Join a fit: predictors in this order, this response.

    `fingerprints` lists ``site:fingerprint`` of the data that the fit began with. `schema` is the
    JSON of what the sites have agreed that the columns hold, and `missing` says whether values may
    be missing: ``refuse`` or ``mean``. `offers` are the keys that all sites have drawn for the
    masks of this session, as the JSON of an `Offer` each; without any, sums are clear. `ties`,
    `intercept` and `effects` are as in the settings of the fit.
    """

    columns: tuple[str, ...]
    sites: tuple[str, ...]
    fingerprints: tuple[str, ...]
    schema: str
    missing: str
    na: tuple[str, ...]
    session: str = ""
    offers: tuple[str, ...] = ()
    ties: str = field(default="efron", kw_only=True)
    intercept: bool = field(default=True, kw_only=True)
    effects: bool = field(default=False, kw_only=True)


# What is asked about some columns of a fit.
AboutColumns = DescribeColumns | FindOthers | Open


class AuditSummary(Reply):
    """Hashes of the replies that left for a fit and of what was asked, and where the audit ends.

    `lost` are those of the given heads that the audit does not have any more.
    """

    hashes: tuple[str, ...]
    asked: tuple[str, ...]
    lines: int
    head: str
    lost: tuple[str, ...]


class SummariseAudit(Request[AuditSummary]):
    """What has left for this fit, by your own books, and do they go on from where they ended?

    `heads` lists ``site:lines:head`` of the sites' audits when they were last asked.
    """

    fit: str
    heads: tuple[str, ...] = ()


class Refusal(Reply):
    """Why the site does not answer, in its own words; `code` is a `RefusalCode`, if it has one."""

    text: str
    code: str = ""
