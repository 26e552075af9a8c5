"""Questions to a site's door itself, and its replies."""

from dataclasses import field

from fedlasso.families import DEFAULT
from fedlasso.federation import Reply, Request
from fedlasso.federation.messages import R


class Introduction(Reply):
    """Version, columns shown, the data file's fingerprint and rows, and seconds since 1970, UTC.

    `sums` is whether the site's sums leave masked or clear. These fields are the same in every
    protocol, so that any coordinator can report a site with another one.
    """

    version: str
    columns: tuple[str, ...]
    fingerprint: str
    rows: int
    clock: float
    sums: str
    protocol: str = ""


class Introduce(Request[Introduction]):
    """The site's version, columns and number of rows."""


class AboutOutcome(Request[R]):
    """A question about a fit, with the names of its columns that are no predictors.

    `target` is the response, or the duration of a survival time; `event`, `offset`, `weights` and
    `cluster` are empty if the fit has none. `family` is the kind of response.
    """

    fit: str
    target: str
    family: str = field(default=DEFAULT, kw_only=True)
    event: str = field(default="", kw_only=True)
    offset: str = field(default="", kw_only=True)
    weights: str = field(default="", kw_only=True)
    cluster: str = field(default="", kw_only=True)

    @property
    def outcome(self) -> tuple[str, ...]:
        """The columns that are no predictors."""
        return tuple(
            filter(None, (self.target, self.event, self.offset, self.weights, self.cluster))
        )


class Described(Reply):
    """Column types and levels as a JSON schema, and the columns that only number the rows."""

    schema: str
    row_numbers: tuple[str, ...]


class DescribeColumns(AboutOutcome[Described]):
    """The types of columns: numbers, text with its levels, or empty.

    A level is disclosed if at least `min_level` rows have it, or more if the site's policy requires
    it; texts in `na` count as missing. `fit` is the fit to be opened.
    """

    columns: tuple[str, ...]
    na: tuple[str, ...]
    min_level: int


class Others(Reply):
    columns: tuple[str, ...]


class FindOthers(AboutOutcome[Others]):
    """Text columns with rows at none of the levels in `schema`, which is JSON."""

    columns: tuple[str, ...]
    schema: str
    na: tuple[str, ...]


class Opened(Reply):
    """The site has joined the fit; splits of its rows are unions of so many parts."""

    atoms: int = 0


class Open(AboutOutcome[Opened]):
    """Join a fit with these predictors, in this order, and this response.

    `fingerprints` lists ``site:fingerprint`` of the data that the fit began with. `schema` is the
    JSON of the column types that the sites agreed on, and `missing` is the treatment of missing
    values: ``refuse`` or ``mean``. `offers` are all sites' keys for the masks of this session, each
    the JSON of an `Offer`; without any, sums are clear. `ties`, `intercept` and `effects` are
    settings of the fit.
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


# Questions about the columns of a fit.
AboutColumns = DescribeColumns | FindOthers | Open


class AuditSummary(Reply):
    """Hashes of a fit's replies and questions, the audit's end, and given heads that it lacks."""

    hashes: tuple[str, ...]
    asked: tuple[str, ...]
    lines: int
    head: str
    lost: tuple[str, ...]


class SummariseAudit(Request[AuditSummary]):
    """What left for a fit; `heads` lists ``site:lines:head`` of the audits at the last summary."""

    fit: str
    heads: tuple[str, ...] = ()


class Refusal(Reply):
    """Why the site does not answer; `code` is a `RefusalCode`, if it has one."""

    text: str
    code: str = ""
