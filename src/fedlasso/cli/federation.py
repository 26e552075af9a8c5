"""``fedlasso federation``: set up, serve, fit and resume across the network."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from fedlasso.cli.common import add_action, need_engine, stop_on_term
from fedlasso.cli.fit import add_settings, read_settings
from fedlasso.cli.progress import say
from fedlasso.errors import FedLassoError
from fedlasso.federation import Exchange
from fedlasso.models import FitPlan, NetworkSource, constant_notices


def add(commands: Any) -> None:
    """Add the command group."""
    group = commands.add_parser("federation", help="fit across real sites over a network")
    actions = group.add_subparsers(dest="action", required=True, metavar="ACTION")
    made = [
        add_action(actions, name, run, text, f"fedlasso federation {name}{example}")
        for name, run, text, example in (
            ("init", init_command, "write one sealed kit per participant",
             " trial/ --server fed.example.org:8443 --site north --site south"),
            ("start-server", server_command, "run the server until Ctrl-C", " trial/"),
            ("status", status_command, "who is connected, versions, rows, columns", " trial/"),
            ("fit", fit_command, "fit one model across the sites",
             " trial/ --target y --goal prediction --out model/"),
            ("resume", resume_command, "go on with an interrupted fit", " model/"),
            ("demo", demo_command, "server and three hospitals on this machine, in a minute", ""),
        )
    ]  # fmt: skip
    init, server, status, fit, resume, demo = made
    for parser in (init, server, status, fit):
        parser.add_argument("project", type=Path, metavar="PROJECT")
    init.add_argument("--server", required=True, metavar="HOST:PORT", help="where it will listen")
    init.add_argument("--site", action="append", default=[], metavar="NAME", dest="sites")
    status.add_argument("--quick", action="store_true", help="only who is connected")
    fit.add_argument("--target", required=True, help="column to predict")
    add_settings(fit)
    fit.add_argument("--columns", type=_names, default=(), help="predictors, comma-separated")
    fit.add_argument("--drop", type=_names, default=(), help="columns to leave out")
    more = "add the card's comparisons and subsamples, which cost messages of their own"
    fit.add_argument("--compare", action="store_true", help=more)
    fit.add_argument("--sites", type=_names, default=(), help="who takes part; default: all")
    fit.add_argument("--timeout", type=float, default=300.0, help="seconds for one answer")
    fit.add_argument("--out", type=Path, required=True, metavar="MODEL")
    resume.add_argument("out", type=Path, metavar="MODEL")
    when = "when a site or the server goes away: stop (resumable), retry, or wait a day"
    for parser in (fit, resume):
        parser.add_argument(
            "--on-failure", choices=["stop", "retry", "wait"], default="stop", help=when
        )
        parser.add_argument(
            "--start", type=float, default=60.0, help="seconds for sites to be there"
        )
    demo.add_argument("--keep", type=Path, help="keep everything in this new folder")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def init_command(options: argparse.Namespace) -> int:
    """Write one sealed kit per participant."""
    need_engine()
    from fedlasso.deploy.nvflare.project import create_project

    project = create_project(options.project, options.server, options.sites)
    print(f"Project {project.name!r}: server {project.host}:{project.port}")
    for site in project.sites:
        print(f"  {options.project / 'kits' / (site + '.zip')}  send it to {site} by a safe way")
    print(f"Next: fedlasso federation start-server {options.project}")
    print(f"Instructions: {options.project / 'INSTRUCTIONS.md'}, and one in every kit")
    return 0


def server_command(options: argparse.Namespace) -> int:
    """Run the server until interrupted."""
    need_engine()
    from fedlasso.deploy.nvflare.stay import serve

    stop_on_term()
    try:
        serve(options.project)
    except KeyboardInterrupt:
        print("\nThe server is stopped; interrupted fits can be resumed")
    return 0


def status_command(options: argparse.Namespace) -> int:
    """Print who is connected, and what each site says of itself."""
    need_engine()
    from fedlasso.deploy.nvflare.line import Console, connect

    with Console(options.project) as console:
        project = console.project
        seen = console.connected()
    there = [site for site in project.sites if site in seen]
    facts = dict.fromkeys(project.sites, "")
    if there and not options.quick:
        with connect(options.project, there) as network:
            network.introduce()
        for i in network.introductions:
            facts[i.site] = f" {i.version:>8s} {i.rows:8d} {len(i.columns):8d}"
        for site, clock in network.odd_clocks().items():
            facts[site] += f"   {clock}"
    print(f"Server {project.host}:{project.port}, {len(there)} of {len(project.sites)} sites")
    print(f"{'site':16s} {'last seen':>10s} {'version':>8s} {'rows':>8s} {'columns':>8s}")
    for site in project.sites:
        ago = f"{max(time.time() - seen[site], 0):.0f} s ago" if site in seen else "not here"
        print(f"{site:16s} {ago:>10s}{facts[site]}")
    return 0 if len(there) == len(project.sites) else 1


def fit_command(options: argparse.Namespace) -> int:
    """Write the plan of a new fit down, and carry it out."""
    need_engine()
    from fedlasso.deploy.nvflare.project import read_project
    from fedlasso.deploy.run import begin_plan

    read_project(options.project)
    if options.columns and options.drop:
        raise FedLassoError("give --columns or --drop, not both")
    settings = read_settings(options)
    settings.check()
    source = NetworkSource(
        project=str(options.project.resolve()),
        fit="",
        target=options.target,
        columns=options.columns,
        drop=options.drop,
        sites=options.sites,
        timeout=options.timeout,
    )
    begin_plan(options.out, FitPlan(settings, source, options.compare))
    return resume_command(options)


def resume_command(options: argparse.Namespace) -> int:
    """Carry out a plan from where it stopped, and say what the model is."""
    need_engine()
    from fedlasso.deploy.nvflare.line import connect
    from fedlasso.deploy.run import run_plan, tell_fit

    stop_on_term()
    try:
        finished = run_plan(
            options.out,
            connect,
            listen=show_progress,
            on_failure=options.on_failure,
            start=options.start,
            say=say,
        )
    except KeyboardInterrupt:
        print(
            f"\nfedlasso: stopped; `fedlasso federation resume {options.out}` goes on from here",
            file=sys.stderr,
        )
        return 130
    for notice in constant_notices(finished.document):
        say(notice)
    print(tell_fit(options.out, finished))
    return 0


def show_progress(exchange: Exchange) -> None:
    """Print one line per question on stderr: what was asked, and what all sites have sent."""
    asked = exchange.request
    print(
        f"{exchange.number:4d} {asked.kind:12s} {type(asked).__name__:18s} "
        f"{exchange.seconds:6.2f} s   {exchange.costs.total().upload} bytes up so far",
        file=sys.stderr,
    )


def demo_command(options: argparse.Namespace) -> int:
    """Run a server and three hospitals on this machine, and fit across them."""
    need_engine()
    from fedlasso.deploy.nvflare.local import run_demo

    return run_demo(options.keep, show_progress)
