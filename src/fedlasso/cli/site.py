"""``fedlasso site``: take part in a federation, on your own terms."""

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

from fedlasso.cli.common import add_action, add_group, stop_on_term
from fedlasso.errors import FedLassoError


def add(commands: Any) -> None:
    """Add the command group."""
    actions = add_group(commands, "site", "take part in a federation with your own records")
    add_one = partial(add_action, actions, extra="nvflare")
    request = add_one(request_command, "north/")
    accept = add_one(accept_command, "north/ north.crt")
    check = add_one(check_command, "north/ records.csv --policy policy.toml")
    start = add_one(start_command, "north/ records.csv --policy policy.toml")
    status = add_one(status_command, "north/")
    audit = add_one(audit_command, "north/")
    clean = add_one(clean_command, "north/ --older-than 90")
    unit = add_one(unit_command, "north/ records.csv --policy policy.toml")
    report = add_one(report_command, "north/ --out what-left.html")
    for parser in (request, accept, check, start, status, audit, report, clean, unit):
        parser.add_argument("kit", type=Path, metavar="KIT", help="the folder you were sent")
    accept.add_argument("certificate", type=Path, metavar="FILE", help="what you were sent back")
    compared = "do not ask: the keys of the other sites were compared before"
    accept.add_argument("--yes", action="store_true", help=compared)
    for parser in (check, start, unit):
        parser.add_argument("data", type=Path, metavar="DATA", help="a table, one row per record")
    for parser in (check, start, audit, report, unit):
        parser.add_argument("--policy", type=Path, help="TOML file with your rules")
    who = "run the engine as this user, who can read neither data nor books (as root only)"
    for parser in (start, unit):
        parser.add_argument("--engine-user", metavar="NAME", help=who)
    report.add_argument("--out", type=Path, help="where to write; what-left.html in the kit")
    audit.add_argument("--fit", help="one fit only: the first characters of its identity")
    days = "days that a fit must have rested; default: 30"
    clean.add_argument("--older-than", type=float, default=30.0, metavar="DAYS", help=days)
    unit.add_argument("--out", type=Path, help="folder for the files; default: here")


def request_command(options: argparse.Namespace) -> None:
    """Make your key, and write the request to have it signed.

    The private key never leaves the kit. Asked again, the same key is to be signed anew.
    """
    from fedlasso.deploy.kit import read_kit, request

    name = read_kit(options.kit).name
    asked, fingerprint = request(options.kit)
    print(f"Send {asked} to the coordinator; it holds nothing secret")
    print(f"Key of {name!r}, to be compared by telephone:\n  {fingerprint}")
    print(f"Next, when you get {name}.crt: fedlasso site accept {options.kit} {name}.crt")


def accept_command(options: argparse.Namespace) -> None:
    """Put the signed certificate into your kit, and the keys of the other sites.

    Each key that is new here is shown, and you are asked whether that site itself has read it to
    you: you take part with no other sites. When a site joins later, accept the new file.
    """
    from fedlasso.deploy.kit import accept

    agree = _show_key if options.yes else _ask_about_key
    ends, peers = accept(options.kit, options.certificate, agree)
    print(f"The certificate is in place; it ends on {ends}")
    print(f"Takes part with {', '.join(peers) or 'no other site yet'}")
    print(f"Next: fedlasso site start {options.kit} DATA")
    print("If it is running: start it again for a new certificate, not for keys of other sites")


def _show_key(name: str, fingerprint: str, changed: bool) -> bool:
    """Show the key of another site."""
    print(f"{'ANOTHER key than before' if changed else 'Key'} of {name!r}:\n  {fingerprint}")
    return True


def _ask_about_key(name: str, fingerprint: str, changed: bool) -> bool:
    """Show the key of another site, and ask whether it is right."""
    _show_key(name, fingerprint, changed)
    try:
        word = input(f"Has {name!r} itself read it to you just so, by telephone? [y]es, [n]o: ")
    except EOFError:
        nobody = "nobody is here to say whether the keys are right"
        raise FedLassoError(f"{nobody}; --yes says that they were compared") from None
    return word.strip().lower() in ("y", "yes")


def check_command(options: argparse.Namespace) -> None:
    """Say what would be answered and what refused; nothing is connected."""
    from fedlasso.deploy.kit import PEERS, check_certificate, read_kit
    from fedlasso.deploy.site_data import TableRecords
    from fedlasso.federation.messages import questions
    from fedlasso.governance import read_policy
    from fedlasso.governance.identity import read_peers

    kit = read_kit(options.kit)
    check_certificate(options.kit, kit)
    policy = read_policy(options.policy)
    records = TableRecords(options.data)
    shown = [c for c in records.columns if policy.shows(c)]
    print(f"Site {kit.name!r} of project {kit.project!r}, server {kit.host}:{kit.port}")
    peers = read_peers(options.kit / PEERS)
    print(f"Takes part with {', '.join(sorted(peers)) or 'no other site yet'}")
    print(f"{records.rows} rows, {len(records.columns)} columns, {len(shown)} of them shown")
    for column, remark in records.remarks(shown, policy.min_level_rows):
        print(f"  column {column!r} {remark}")
    few = records.rows < policy.min_rows
    if few:
        print(f"fewer than {policy.min_rows} rows: every question would be refused")
    answered = [name for name in questions() if not few and policy.answers(name)]
    refused = [name for name in questions() if name not in answered]
    print(f"Would be answered: {', '.join(answered) or 'nothing'}")
    print(f"Would be refused:  {', '.join(refused) or 'nothing'}")
    print("Rules:\n" + "\n".join(f"  {rule} = {value}" for rule, value in vars(policy).items()))


def start_command(options: argparse.Namespace) -> None:
    """Answer what the policy allows until Ctrl-C; waits for the server, and for its return."""
    from fedlasso.deploy.kit import check_certificate, make_places, read_kit
    from fedlasso.deploy.nvflare.engine import find_user
    from fedlasso.deploy.nvflare.stay import LateKeeper, take_part

    kit = read_kit(options.kit)
    user = find_user(options.engine_user, options.kit) if options.engine_user else None
    warnings = check_certificate(options.kit, kit)
    keeper = LateKeeper(options.kit, options.data, options.policy)
    print(f"Site {kit.name!r}: {keeper.look()}", flush=True)
    for warning in warnings:
        print(f"Warning: {warning}", flush=True)
    make_places(options.kit)
    stop_on_term()
    began = time.monotonic()
    try:
        take_part(options.kit, kit, keeper, user)
    except KeyboardInterrupt:
        print(f"\nSite {kit.name!r} has left after {time.monotonic() - began:.0f} s")


def status_command(options: argparse.Namespace) -> int:
    """Is the site well? The exit code is 0 if it is running, connected and in order, else 1."""
    from fedlasso.deploy.nvflare.upkeep import check_health

    well, ill = check_health(options.kit)
    for line in well:
        print(f"  well: {line}")
    for line in ill:
        print(f"PROBLEM: {line}")
    return 1 if ill else 0


def clean_command(options: argparse.Namespace) -> None:
    """Remove what old fits have left beside the books; the books stay."""
    from fedlasso.deploy.nvflare.upkeep import clean

    if options.older_than < 0:
        raise FedLassoError(f"--older-than is {options.older_than:g}; give days, 0 or more")
    count, freed = clean(options.kit, options.older_than)
    print(f"Removed the memory of {count} fits, {freed} bytes; the audit is as it was")


def unit_command(options: argparse.Namespace) -> None:
    """Write a systemd unit and a Containerfile that start this site with its machine."""
    from fedlasso.deploy.nvflare.upkeep import write_units

    out = options.out or Path()
    for path in write_units(options.kit, options.data, options.policy, options.engine_user, out):
        print(f"{path}  (its first lines say how to use it)")


def audit_command(options: argparse.Namespace) -> None:
    """What has left, when, how much, for which fit, and what is used up."""
    from fedlasso.deploy.kit import open_audit, read_kit
    from fedlasso.governance import read_policy
    from fedlasso.governance.audit_report import (
        budget_usage,
        chain_status,
        check_ledgers,
        entry_text,
    )

    kit = read_kit(options.kit)
    audit = open_audit(options.kit)
    entries = list(audit.entries())
    chosen = [e for e in entries if e.fit.startswith(options.fit or "")]
    if options.fit and not chosen:
        raise FedLassoError(f"nothing in the audit is of a fit {options.fit!r}")
    for entry in chosen:
        print(entry_text(entry))
    for data, words, used, limit in budget_usage(audit, read_policy(options.policy)):
        of = "" if limit is None else f" of {limit:.0f}"
        print(f"Data file {data}: {used:.1f}{of} {words}")
    sent = [e for e in chosen if e.verdict == "sent"]
    fits = {e.fit for e in chosen if e.fit}
    whole, chain = chain_status(audit)
    left = f"{len(sent)} replies and {sum(e.payload for e in sent)} bytes of numbers have left"
    refused = f"{len(chosen) - len(sent)} refused"
    print(f"Site {kit.name!r}: {left} for {len(fits)} fits, {refused}; {chain}")
    if not whole:
        raise FedLassoError(chain)
    if wrong := check_ledgers(audit):
        raise FedLassoError(wrong)


def report_command(options: argparse.Namespace) -> None:
    """Write one page, "What left my site", for whoever answers for the records."""
    from fedlasso.atomic_files import write_atomically
    from fedlasso.deploy.kit import open_audit, read_kit
    from fedlasso.governance import read_policy
    from fedlasso.governance.audit_report import write_audit_page

    kit = read_kit(options.kit)
    out = options.out or options.kit / "what-left.html"
    page = write_audit_page(
        kit.name, kit.project, open_audit(options.kit), read_policy(options.policy)
    )
    write_atomically(out, page.encode())
    print(f"What left site {kit.name!r} is told in {out}")
