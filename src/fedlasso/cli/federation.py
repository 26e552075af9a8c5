"""``fedlasso federation``: set up, serve, fit and resume across the network."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedlasso.cli.common import add_action, need_engine, stop_on_term
from fedlasso.errors import FedLassoError


def add(commands: Any) -> None:
    """Add the command group."""
    group = commands.add_parser("federation", help="fit across real sites over a network")
    actions = group.add_subparsers(dest="action", required=True, metavar="ACTION")
    init = add_action(
        actions, "init", init_command, "write one sealed kit per participant",
        "fedlasso federation init trial/ --server fed.example.org:8443 --site north --site south",
    )  # fmt: skip
    init.add_argument("--server", required=True, metavar="HOST:PORT", help="where it will listen")
    init.add_argument("--site", action="append", default=[], metavar="NAME", dest="sites")
    server = add_action(
        actions, "start-server", server_command, "run the server until Ctrl-C",
        "fedlasso federation start-server trial/",
    )  # fmt: skip
    status = add_action(
        actions, "status", status_command, "who is connected, versions, rows, columns",
        "fedlasso federation status trial/",
    )  # fmt: skip
    status.add_argument("--quick", action="store_true", help="only who is connected")
    fit = add_action(
        actions, "fit", fit_command, "fit one model across the sites",
        "fedlasso federation fit trial/ --target y --goal prediction --out model/",
    )  # fmt: skip
    for parser in (init, server, status, fit):
        parser.add_argument("project", type=Path, metavar="PROJECT")
    fit.add_argument("--target", required=True, help="column to predict")
    fit.add_argument("--goal", choices=["prediction", "selection", "objective"])
    fit.add_argument("--procedure", help="instead of a goal, e.g. CD, DA, Secant")
    fit.add_argument("--penalty", type=float, help="default: chosen on held-out rows")
    fit.add_argument("--uploads", type=int, default=100, help="vectors a site may send for a goal")
    fit.add_argument("--rounds", type=int, default=30)
    fit.add_argument("--epochs", type=int, default=1)
    fit.add_argument("--validation", type=float, default=0.2, help="share of rows held out")
    fit.add_argument("--seed", type=int, default=0, help="of the split")
    fit.add_argument("--columns", type=_names, default=(), help="predictors, comma-separated")
    fit.add_argument("--sites", type=_names, default=(), help="who takes part; default: all")
    fit.add_argument("--timeout", type=float, default=300.0, help="seconds for one answer")
    fit.add_argument("--out", type=Path, required=True, metavar="MODEL")
    resume = add_action(
        actions, "resume", resume_command, "go on with an interrupted fit",
        "fedlasso federation resume model/",
    )  # fmt: skip
    resume.add_argument("out", type=Path, metavar="MODEL")
    for parser in (fit, resume):
        parser.add_argument(
            "--on-failure", choices=["stop", "retry", "wait"], default="stop",
            help="when a site or the server goes away: stop (resumable), retry, or wait a day",
        )  # fmt: skip
        parser.add_argument(
            "--start", type=float, default=60.0, help="seconds for sites to be there"
        )
    demo = add_action(
        actions, "demo", demo_command, "server and three hospitals on this machine, in a minute",
        "fedlasso federation demo",
    )  # fmt: skip
    demo.add_argument("--keep", type=Path, help="keep everything in this new folder")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def init_command(options: argparse.Namespace) -> int:
    """Provision."""
    need_engine()
    from fedlasso.nvflare.project import create_project

    project = create_project(options.project, options.server, options.sites)
    print(f"Project {project.name!r}: server {project.host}:{project.port}")
    for site in project.sites:
        print(f"  {options.project / 'kits' / (site + '.zip')}  send it to {site} by a safe way")
    print(f"Next: fedlasso federation start-server {options.project}")
    print(f"Instructions: {options.project / 'INSTRUCTIONS.md'}, and one in every kit")
    return 0


def server_command(options: argparse.Namespace) -> int:
    """Serve."""
    need_engine()
    from fedlasso.nvflare.engine import Engine, check_certificate, check_port_free, listens
    from fedlasso.nvflare.project import read_project, settle_server

    project = read_project(options.project)
    folder = options.project / "server"
    kit = settle_server(folder)
    check_certificate(folder, kit)
    check_port_free(project.port)
    stop_on_term()
    engine = Engine(folder, kit)
    try:
        engine.wait(lambda: listens("127.0.0.1", project.port), 60, "the server did not start")
        print(
            f"Serving {project.name!r} at {project.host}:{project.port}; Ctrl-C stops", flush=True
        )
        engine.process.wait()
        raise FedLassoError(f"the server ended; its log is {folder / 'engine.log'}")
    except KeyboardInterrupt:
        print("\nThe server is stopped; interrupted fits can be resumed")
        return 0
    finally:
        engine.stop()


def status_command(options: argparse.Namespace) -> int:
    """Who is there."""
    need_engine()
    from fedlasso.federation.door import Introduce
    from fedlasso.nvflare.console import Console
    from fedlasso.nvflare.link import connect

    with Console(options.project) as console:
        project, seen = console.project, console.connected()
    there = [site for site in project.sites if site in seen]
    facts = {}
    if there and not options.quick:
        with connect(options.project, there) as network:
            facts = {i.site: i for i in network.ask(Introduce())}
    print(f"Server {project.host}:{project.port}, {len(there)} of {len(project.sites)} sites")
    print(f"{'site':16s} {'last seen':>10s} {'version':>8s} {'rows':>8s} {'columns':>8s}")
    for site in project.sites:
        ago = f"{max(time.time() - seen[site], 0):.0f} s ago" if site in seen else "not here"
        line = f"{site:16s} {ago:>10s}"
        if site in facts:
            fact = facts[site]
            line += f" {fact.version:>8s} {fact.rows:8d} {len(fact.columns):8d}"
        print(line)
    return 0 if len(there) == len(project.sites) else 1


def fit_command(options: argparse.Namespace) -> int:
    """A new fit."""
    need_engine()
    from fedlasso.nvflare.link import Opening
    from fedlasso.nvflare.project import read_project
    from fedlasso.nvflare.run import Plan, begin_plan

    read_project(options.project)
    if options.goal and options.procedure:
        raise FedLassoError("give a --goal or a --procedure, not both")
    if not 0 <= options.validation < 1:
        raise FedLassoError(f"--validation is {options.validation}; give a share below 1")
    settings: dict[str, Any] = {"lam": options.penalty, "rounds": options.rounds}
    if options.procedure:
        settings |= {"procedure": options.procedure, "epochs": options.epochs}
    else:
        settings |= {"goal": options.goal or "prediction", "uploads": options.uploads}
    opening = Opening("", options.target, options.columns, options.validation, options.seed)
    plan = Plan(
        str(options.project.resolve()), opening, settings, options.sites, options.timeout
    )  # fmt: skip
    return _run(options, begin_plan(options.out, plan))


def resume_command(options: argparse.Namespace) -> int:
    """The same fit, from where it stopped."""
    need_engine()
    from fedlasso.nvflare.run import read_plan

    return _run(options, read_plan(options.out))


def _run(options: argparse.Namespace, plan: Any) -> int:
    from fedlasso.nvflare.run import run_plan
    from fedlasso.nvflare.tell import tell

    stop_on_term()
    try:
        result, times = run_plan(
            options.out, plan, show_progress(), on_failure=options.on_failure, start=options.start
        )
    except KeyboardInterrupt:
        print(
            f"\nfedlasso: stopped; `fedlasso federation resume {options.out}` goes on from here",
            file=sys.stderr,
        )
        return 130
    print(tell(options.out, result, times))
    return 0


def show_progress() -> Callable[[Any], None]:
    """A line a question on stderr: what was asked, and what all sites have sent so far."""

    def listen(event: Any) -> None:
        print(
            f"{event.number:4d} {event.kind:12s} {event.question:18s} {event.seconds:6.2f} s   "
            f"{event.upload} bytes up so far",
            file=sys.stderr,
        )  # fmt: skip

    return listen


def demo_command(options: argparse.Namespace) -> int:
    """The whole thing on loopback."""
    need_engine()
    from fedlasso.nvflare.demo import run_demo

    return run_demo(options.keep, show_progress())
