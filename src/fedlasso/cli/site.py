"""``fedlasso site``: take part in a federation, on your own terms."""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from fedlasso.cli.common import add_action, stop_on_term
from fedlasso.errors import FedLassoError
from fedlasso.federation.messages import questions


def add(commands: Any) -> None:
    """Add the command group."""
    site = commands.add_parser("site", help="take part in a federation with your own records")
    actions = site.add_subparsers(dest="action", required=True, metavar="ACTION")
    add_one = partial(add_action, actions, extra="nvflare")
    check = add_one(check_command, "north/ records.csv --policy policy.toml")
    start = add_one(start_command, "north/ records.csv --policy policy.toml")
    audit = add_one(audit_command, "north/")
    report = add_one(report_command, "north/ --out what-left.html")
    for parser in (check, start, audit, report):
        parser.add_argument("kit", type=Path, metavar="KIT", help="the folder you were sent")
    for parser in (check, start):
        parser.add_argument("data", type=Path, metavar="DATA", help="a table, one row per record")
    for parser in (check, start, audit, report):
        parser.add_argument("--policy", type=Path, help="TOML file with your rules")
    report.add_argument("--out", type=Path, help="where to write; what-left.html in the kit")
    audit.add_argument("--fit", help="one fit only: the first characters of its identity")


def check_command(options: argparse.Namespace) -> None:
    """Say what would be answered and what refused; nothing is connected."""
    from fedlasso.deploy.nvflare.engine import check_certificate
    from fedlasso.deploy.nvflare.kit import read_kit
    from fedlasso.deploy.records import TableRecords
    from fedlasso.governance import read_policy

    kit = read_kit(options.kit)
    check_certificate(options.kit, kit)
    policy = read_policy(options.policy)
    records = TableRecords(options.data)
    shown = [c for c in records.columns if policy.shows(c)]
    print(f"Site {kit.name!r} of project {kit.project!r}, server {kit.host}:{kit.port}")
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
    """Connect, and answer what the policy allows until Ctrl-C."""
    from fedlasso.deploy.nvflare.engine import check_certificate, check_server
    from fedlasso.deploy.nvflare.kit import configure_site, read_kit
    from fedlasso.deploy.nvflare.stay import take_part
    from fedlasso.deploy.records import TableRecords
    from fedlasso.governance import read_policy

    kit = read_kit(options.kit)
    policy = read_policy(options.policy)
    if policy.approval and not sys.stdin.isatty():
        raise FedLassoError("the policy asks for approval, and nobody is here to ask: no terminal")
    records = TableRecords(options.data)
    check_certificate(options.kit, kit)
    check_server(options.kit, kit)
    configure_site(options.kit, options.data, options.policy)
    print(f"Site {kit.name!r}: {records.rows} rows, {len(records.columns)} columns", flush=True)
    del records
    stop_on_term()
    began = time.monotonic()
    try:
        take_part(options.kit, kit, policy)
    except KeyboardInterrupt:
        print(f"\nSite {kit.name!r} has left after {time.monotonic() - began:.0f} s")


def audit_command(options: argparse.Namespace) -> None:
    """What has left, when, how much, for which fit, and what is used up."""
    from fedlasso.deploy.nvflare.kit import open_audit, read_kit
    from fedlasso.governance import read_policy
    from fedlasso.governance.telling import check_ledgers, tell_budgets, tell_chain, tell_entry

    kit = read_kit(options.kit)
    audit = open_audit(options.kit)
    entries = list(audit.entries())
    chosen = [e for e in entries if e.fit.startswith(options.fit or "")]
    if options.fit and not chosen:
        raise FedLassoError(f"nothing in the audit is of a fit {options.fit!r}")
    for entry in chosen:
        print(tell_entry(entry))
    for data, words, used, limit in tell_budgets(audit, read_policy(options.policy)):
        of = "" if limit is None else f" of {limit:.0f}"
        print(f"Data file {data}: {used:.1f}{of} {words}")
    sent = [e for e in chosen if e.verdict == "sent"]
    fits = {e.fit for e in chosen if e.fit}
    whole, chain = tell_chain(audit)
    print(
        f"Site {kit.name!r}: {len(sent)} replies and {sum(e.payload for e in sent)} bytes of "
        f"numbers have left for {len(fits)} fits, {len(chosen) - len(sent)} refused; {chain}"
    )
    if not whole:
        raise FedLassoError(chain)
    if wrong := check_ledgers(audit):
        raise FedLassoError(wrong)


def report_command(options: argparse.Namespace) -> None:
    """Write one page, "What left my site", for whoever answers for the records."""
    from fedlasso.deploy.nvflare.kit import open_audit, read_kit
    from fedlasso.files import write_atomically
    from fedlasso.governance import read_policy
    from fedlasso.governance.page import write_page

    kit = read_kit(options.kit)
    out = options.out or options.kit / "what-left.html"
    page = write_page(kit.name, kit.project, open_audit(options.kit), read_policy(options.policy))
    write_atomically(out, page.encode())
    print(f"What left site {kit.name!r} is told in {out}")
