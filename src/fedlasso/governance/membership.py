"""The sites that a data file takes part with: one set, until the operator accepts another.

A total over four sites minus a total over three is the fourth site's own sum. So the first masked
fit pins the set, by names and by keys. The audit is the only record of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fedlasso.errors import FedLassoError
from fedlasso.governance.audit import Audit, Entry

# The question of an entry that the operator has added by accepting a set of sites.
ACCEPTED = "AcceptMembers"
OPENED = "Open"
# Fingerprints of the sites' keys by name.
Members = Mapping[str, str]


@dataclass(frozen=True)
class MembershipStatus:
    """The sites pinned for the data file in use, and the last others that were refused, if any."""

    pinned: Members
    since: str
    asked: Entry | None


def pinned_members(audit: Audit, data: str) -> Members:
    """Return the sites that a data file takes part with; empty before the first fit.

    A file that took part in no fit inherits the sites of the file before it, which mostly has the
    same patients.
    """
    last: Members = {}
    own: Members = {}
    for entry in audit.entries():
        if _pins(entry):
            last = entry.sites
            own = entry.sites if entry.data == data else own
    return own or last


def _pins(entry: Entry) -> bool:
    # Sites of clear sums have not signed, and their numbers can be read one by one anyway.
    named = entry.question in (OPENED, ACCEPTED) and entry.verdict == "sent"
    return named and bool(entry.sites) and all(entry.sites.values())


def describe_change(pinned: Members, members: Members, site: str) -> str:
    """Return who is new, missing or has another key; empty if the sites are the same."""
    new = sorted(members.keys() - pinned.keys())
    missing = sorted(pinned.keys() - members.keys())
    # A site's own key is its own affair.
    both = sorted((pinned.keys() & members.keys()) - {site})
    changed = [name for name in both if pinned[name] != members[name]]
    parts = [f"new: {', '.join(new)}"] if new else []
    parts += [f"missing: {', '.join(missing)}"] if missing else []
    parts += [f"with another key: {', '.join(changed)}"] if changed else []
    return "; ".join(parts)


def check_members(audit: Audit, data: str, members: Members, site: str) -> None:
    """Refuse a fit with other sites than the data file takes part with."""
    pinned = pinned_members(audit, data)
    change = describe_change(pinned, members, site) if pinned else ""
    if change:
        listed = f"this data file takes part with {', '.join(sorted(pinned))} only"
        remedy = "its operator can accept these sites with `fedlasso site members KIT --accept`"
        raise FedLassoError(f"{listed}, and the fit has other sites ({change}); {remedy}")


def read_waiting(audit: Audit, site: str) -> MembershipStatus:
    """Return the sites of the data file in the last opening, and others waiting for a yes."""
    asked: Entry | None = None
    since = ""
    data = ""
    for entry in audit.entries():
        if _pins(entry):
            asked = None
            since = entry.time
            data = entry.data
        elif entry.question == OPENED and entry.verdict == "refused" and entry.sites:
            asked = entry
            data = entry.data
    pinned = pinned_members(audit, data)
    if asked and not describe_change(pinned, asked.sites, site):
        asked = None
    return MembershipStatus(pinned, since, asked)


def accept_members(audit: Audit, asked: Entry) -> None:
    """Pin the sites of a refused opening."""
    sites = dict(asked.sites)
    audit.write(Entry(asked.fit, ACCEPTED, "sent", about=asked.about, data=asked.data, sites=sites))


def describe_disclosure(pinned: Members, members: Members) -> str:
    """Return what totals over both sets of sites disclose together."""
    others = sorted(pinned.keys() ^ members.keys())
    if not others:
        return "Accept only if that site itself has read its new key to you by telephone."
    difference = f"the sums of {others[0]} alone" if len(others) == 1 else "sums over fewer sites"
    return (
        "Totals of fits with the earlier sites minus totals of fits with these give the "
        f"coordinator {difference}, as if they had not been masked: {', '.join(others)}. "
        "Accept only if these sites agree."
    )
