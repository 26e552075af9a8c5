"""``fedlasso site``: take part in a federation, on your own terms."""

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

from fedlasso.cli.common import add_action, add_group, stop_on_term
from fedlasso.errors import FedLassoError


def add(commands: Any) -> None:
    actions = add_group(commands, "site", "take part in a federation with your own records")
    add_one = partial(add_action, actions, extra="nvflare")
    # These need no engine, so sites that take part by files have them too.
    add_light = partial(add_action, actions, extra="courier")
    request = add_light(request_command, "north/")
    accept = add_light(accept_command, "north/ north.crt")
    check = add_light(check_command, "north/ records.csv --policy policy.toml")
    start = add_one(start_command, "north/ records.csv --policy policy.toml")
    status = add_one(status_command, "north/")
    members = add_light(members_command, "north/ --accept")
    audit = add_light(audit_command, "north/")
    clean = add_one(clean_command, "north/ --older-than 90")
    unit = add_one(unit_command, "north/ records.csv --policy policy.toml")
    report = add_light(report_command, "north/ --out what-left.html")
    for parser in (request, accept, check, start, status, members, audit, report, clean, unit):
        parser.add_argument("kit", type=Path, metavar="KIT", help="folder of your kit")
    renewed = "renew your certificate, for the key that you made before"
    request.add_argument("--renew", action="store_true", help=renewed)
    accept.add_argument("certificate", type=Path, metavar="FILE", help="your certificate file")
    accept.add_argument("--yes", action="store_true", help="do not ask: the keys were compared")
    accepted = "take part with these sites from now on, instead of the earlier ones"
    members.add_argument("--accept", action="store_true", help=accepted)
    for parser in (check, start, unit):
        parser.add_argument("data", type=Path, metavar="DATA", help="table with a row per record")
    for parser in (check, start, audit, report, unit):
        parser.add_argument("--policy", type=Path, help="TOML file with your rules")
    user = "user without access to the data, for the engine's processes (root only)"
    for parser in (start, unit):
        parser.add_argument("--engine-user", metavar="NAME", help=user)
    report.add_argument("--out", type=Path, help="file to write; default: KIT/what-left.html")
    audit.add_argument("--fit", help="only one fit: the first characters of its identity")
    days = "minimum days since a fit was last active; default: 30"
    clean.add_argument("--older-than", type=float, default=30.0, metavar="DAYS", help=days)
    unit.add_argument("--out", type=Path, help="folder for the files; default: current folder")


def request_command(options: argparse.Namespace) -> None:
    """Make your key, and a request to have it signed.

    The private key never leaves the kit. With --renew the request is for the key you made before.
    """
    from fedlasso.deploy.kit import read_kit, request

    kit = read_kit(options.kit)
    name = kit.name
    path, fingerprint = request(options.kit, options.renew)
    print(f"Send {path} to the coordinator; it contains no secret")
    print(f"Key of {name!r}, to be compared by telephone:\n  {fingerprint}")
    group = "site" if kit.host else "courier"
    print(f"Next, when you receive {name}.crt: fedlasso {group} accept {options.kit} {name}.crt")


def accept_command(options: argparse.Namespace) -> None:
    """Install your signed certificate, and the keys of the other sites.

    Prints each new key, and asks whether that site itself has read it to you by telephone: you
    take part with no other sites. When a site joins later, accept the new file.
    """
    from fedlasso.deploy.kit import accept, read_kit

    agree = _show_key if options.yes else _confirm_key
    end, peers = accept(options.kit, options.certificate, agree)
    print(f"The certificate is installed; it expires on {end}")
    print(f"Takes part with {', '.join(peers) or 'no other site yet'}")
    _print_unexpected(options.kit)
    if not read_kit(options.kit).host:
        print(f"Next, with a question: fedlasso courier answer {options.kit} QUESTION.flq DATA")
        return
    print(f"Next: fedlasso site start {options.kit} DATA")
    print("A running site must be restarted for a new certificate, but not for new keys of others")


def _print_unexpected(kit: Path) -> None:
    from fedlasso.deploy.kit import find_unexpected, read_kit

    if odd := find_unexpected(kit, read_kit(kit).name):
        print(f"Not part of a kit, and not used: {', '.join(odd)}")


def _show_key(name: str, fingerprint: str, changed: bool) -> bool:
    print(f"{'CHANGED key' if changed else 'Key'} of {name!r}:\n  {fingerprint}")
    return True


def _confirm_key(name: str, fingerprint: str, changed: bool) -> bool:
    _show_key(name, fingerprint, changed)
    try:
        word = input(f"Has {name!r} itself read this key to you by telephone? [y]es, [n]o: ")
    except EOFError:
        raise FedLassoError("no terminal to confirm keys; use --yes if you compared them") from None
    return word.strip().lower() in ("y", "yes")


def check_command(options: argparse.Namespace) -> None:
    """Print what would be answered and what refused, without connecting."""
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
    _print_unexpected(options.kit)
    print(f"{records.rows} rows, {len(records.columns)} columns, {len(shown)} of them available")
    for column, remark in records.remarks(shown, policy.min_level_rows):
        print(f"  column {column!r} {remark}")
    few = records.rows < policy.min_rows
    if few:
        print(f"Fewer than {policy.min_rows} rows: every question is refused")
    answered = [name for name in questions() if not few and policy.answers(name)]
    refused = [name for name in questions() if name not in answered]
    print(f"Answered: {', '.join(answered) or 'nothing'}")
    print(f"Refused:  {', '.join(refused) or 'nothing'}")
    print("Policy:\n" + "\n".join(f"  {rule} = {value}" for rule, value in vars(policy).items()))


def start_command(options: argparse.Namespace) -> None:
    """Answer what the policy allows until Ctrl-C; reconnects after interruptions."""
    from fedlasso.deploy.kit import check_certificate, make_private_folders, read_kit
    from fedlasso.deploy.nvflare.engine import find_user
    from fedlasso.deploy.nvflare.service import read_summary, run_site

    kit = read_kit(options.kit)
    user = find_user(options.engine_user, options.kit) if options.engine_user else None
    warnings = check_certificate(options.kit, kit)
    print(f"Site {kit.name!r}: {read_summary(options.data, options.policy)}", flush=True)
    for warning in warnings:
        print(f"Warning: {warning}", flush=True)
    make_private_folders(options.kit)
    stop_on_term()
    start = time.monotonic()
    try:
        run_site(options.kit, options.data, options.policy, user)
    except KeyboardInterrupt:
        print(f"\nSite {kit.name!r} stopped after {time.monotonic() - start:.0f} s")


def status_command(options: argparse.Namespace) -> int:
    """Check the site's health; the exit code is 0 if it is connected and in order, else 1."""
    from fedlasso.deploy.nvflare.service import check_health

    good, problems = check_health(options.kit)
    for line in good:
        print(f"     OK: {line}")
    for line in problems:
        print(f"PROBLEM: {line}")
    return 1 if problems else 0


def members_command(options: argparse.Namespace) -> int:
    """Print the sites that your data take part with, or accept others that a fit has named.

    The first fit of a data file decides; a fit with other sites is refused until you accept them.
    """
    from fedlasso.deploy.kit import open_audit, read_kit
    from fedlasso.governance.membership import (
        accept_members,
        describe_change,
        describe_disclosure,
        read_waiting,
    )

    kit = read_kit(options.kit)
    audit = open_audit(options.kit)
    waiting = read_waiting(audit, kit.name)
    if not waiting.pinned:
        print("Takes part with no sites yet; the first fit decides")
        return 0
    print(f"Takes part since {waiting.since} with {', '.join(sorted(waiting.pinned))}:")
    for name, key in sorted(waiting.pinned.items()):
        print(f"  {name:16s} {format_key(key)}")
    asked = waiting.asked
    if asked is None:
        if options.accept:
            raise FedLassoError("no fit with other sites was refused; there is nothing to accept")
        print("No fit with other sites was refused since")
        return 0
    change = describe_change(waiting.pinned, asked.sites, kit.name)
    print(
        f"Refused on {asked.time}: fit {asked.fit} with {', '.join(sorted(asked.sites))} ({change})"
    )
    for name in sorted(asked.sites.keys() - waiting.pinned.keys()):
        print(f"  {name:16s} {format_key(asked.sites[name])}")
    print(describe_disclosure(waiting.pinned, asked.sites))
    if not options.accept:
        print(f"To accept: fedlasso site members {options.kit} --accept")
        return 1
    accept_members(audit, asked)
    print(f"Takes part with {', '.join(sorted(asked.sites))} from now on; the audit records it")
    return 0


def format_key(fingerprint: str) -> str:
    """Return the beginning of a key's fingerprint, in groups of four."""
    return " ".join(fingerprint[k : k + 4] for k in range(0, 32, 4))


def clean_command(options: argparse.Namespace) -> None:
    """Remove files of old fits; audit and ledger stay."""
    from fedlasso.deploy.nvflare.service import clean

    if options.older_than < 0:
        raise FedLassoError(f"--older-than is {options.older_than:g}; give days, 0 or more")
    count, freed = clean(options.kit, options.older_than)
    print(f"Removed files of {count} fits, {freed} bytes; audit and ledger are unchanged")


def unit_command(options: argparse.Namespace) -> None:
    """Write a systemd unit and a Containerfile that start this site with its machine."""
    from fedlasso.deploy.nvflare.service import write_units

    out = options.out or Path()
    for path in write_units(options.kit, options.data, options.policy, options.engine_user, out):
        print(f"{path}  (its first lines explain how to use it)")


def audit_command(options: argparse.Namespace) -> None:
    """Print what left, when, how much and for which fit, and the budgets used."""
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
    chosen = [e for e in audit.entries() if e.fit.startswith(options.fit or "")]
    if options.fit and not chosen:
        raise FedLassoError(f"the audit has no entries of a fit {options.fit!r}")
    for entry in chosen:
        print(entry_text(entry))
    for data, words, used, limit in budget_usage(audit, read_policy(options.policy)):
        print(f"Data file {data}: {used:.3g} of {limit:g} {words}")
    sent = [e for e in chosen if e.verdict == "sent"]
    fits = {e.fit for e in chosen if e.fit}
    whole, chain = chain_status(audit)
    left = f"{len(sent)} replies with {sum(e.payload for e in sent)} bytes of numbers sent"
    refused = f"{len(chosen) - len(sent)} refused"
    which = f"{len(fits)} fit{'s' * (len(fits) != 1)}"
    print(f"Site {kit.name!r}: {left} for {which}, {refused}; {chain}")
    if not whole:
        raise FedLassoError(chain)
    if wrong := check_ledgers(audit):
        raise FedLassoError(wrong)


def report_command(options: argparse.Namespace) -> None:
    """Write a page, "What left my site", for whoever is responsible for the records."""
    from fedlasso.atomic_files import write_atomically
    from fedlasso.deploy.kit import open_audit, read_kit
    from fedlasso.governance import read_policy
    from fedlasso.governance.audit_report import write_audit_page

    kit = read_kit(options.kit)
    out = options.out or options.kit / "what-left.html"
    page = write_audit_page(
        kit.name, kit.project, open_audit(options.kit), read_policy(options.policy)
    )
    write_atomically(out, page.encode(), private=True)
    print(f"What left site {kit.name!r}: {out}")
