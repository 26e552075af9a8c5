"""``fedlasso federation``: set up, serve, fit and resume across the network."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fedlasso.cli.common import add_action, need_engine, stop_on_term
from fedlasso.cli.fit import add_settings, describe_model, read_settings, say_constant
from fedlasso.cli.progress import say
from fedlasso.errors import FedLassoError, Interrupted
from fedlasso.federation import Federation
from fedlasso.models import (
    Model,
    Settings,
    Source,
    card,
    examine,
    fit_model,
    open_sites,
    tell,
    write_model,
)
from fedlasso.tables import Column, Schema


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
    add_settings(fit)
    fit.add_argument("--columns", type=_names, default=(), help="predictors, comma-separated")
    fit.add_argument("--drop", type=_names, default=(), help="columns to leave out")
    fit.add_argument(
        "--compare", action="store_true",
        help="add the card's comparisons and subsamples, which cost messages of their own",
    )  # fmt: skip
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
    from fedlasso.deploy.nvflare.project import create_project

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
    from fedlasso.deploy.nvflare.engine import Engine, check_certificate, check_port_free, listens
    from fedlasso.deploy.nvflare.project import read_project, settle_server

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
    from fedlasso.deploy.link import connect
    from fedlasso.deploy.nvflare.console import Console

    with Console(options.project) as console:
        project, seen = console.project, console.connected()
    there = [site for site in project.sites if site in seen]
    facts, clocks = {}, {}
    if there and not options.quick:
        with connect(options.project, there) as network:
            network.introduce()
            facts, clocks = {i.site: i for i in network.introductions}, network.odd_clocks()
    print(f"Server {project.host}:{project.port}, {len(there)} of {len(project.sites)} sites")
    print(f"{'site':16s} {'last seen':>10s} {'version':>8s} {'rows':>8s} {'columns':>8s}")
    for site in project.sites:
        ago = f"{max(time.time() - seen[site], 0):.0f} s ago" if site in seen else "not here"
        line = f"{site:16s} {ago:>10s}"
        if site in facts:
            fact = facts[site]
            line += f" {fact.version:>8s} {fact.rows:8d} {len(fact.columns):8d}"
        if site in clocks:
            line += f"   {clocks[site]}"
        print(line)
    return 0 if len(there) == len(project.sites) else 1


def fit_command(options: argparse.Namespace) -> int:
    """A new fit."""
    need_engine()
    from fedlasso.deploy.link import Opening
    from fedlasso.deploy.nvflare.project import read_project
    from fedlasso.deploy.run import Plan, begin_plan

    read_project(options.project)
    if options.columns and options.drop:
        raise FedLassoError("give --columns or --drop, not both")
    settings = read_settings(options)
    settings.check()
    opening = Opening("", options.target, options.columns, options.drop)
    plan = Plan(
        str(options.project.resolve()), opening, asdict(settings), options.sites, options.timeout,
        options.compare,
    )  # fmt: skip
    return _run(options, begin_plan(options.out, plan))


def resume_command(options: argparse.Namespace) -> int:
    """The same fit, from where it stopped."""
    need_engine()
    from fedlasso.deploy.run import read_plan

    return _run(options, read_plan(options.out))


def _run(options: argparse.Namespace, plan: Any) -> int:
    stop_on_term()
    try:
        fit_across(options.out, plan, options.on_failure, options.start)
    except KeyboardInterrupt:
        print(
            f"\nfedlasso: stopped; `fedlasso federation resume {options.out}` goes on from here",
            file=sys.stderr,
        )
        return 130
    return 0


def fit_across(out: Path, plan: Any, on_failure: Any = "stop", start: float = 60.0) -> None:
    """Carry out a plan, write the model as `fedlasso fit` does, and say what it is."""
    from fedlasso.deploy.run import run_plan
    from fedlasso.deploy.tell import tell_books

    (model, told), times = run_plan(
        out, plan, fitting(plan), show_progress(), on_failure=on_failure, start=start, say=say
    )
    write_model(out, model, told, card(told))
    say_constant(model)
    describe_model(told)
    print(tell_books(out, model.costs, times))
    print(f"The model is in {out}; open {out / 'card.html'}")


def fitting(plan: Any) -> Callable[[Federation], tuple[Model, dict[str, Any]]]:
    """What a plan asks of a federation: the model, and the model as plain values."""

    def fit(federation: Federation) -> tuple[Model, dict[str, Any]]:
        model = fit_model(federation, Settings(**plan.settings))
        # Sites refuse other columns when they join, so these are all numbers.
        columns = tuple(Column(name, "number") for name in federation.columns)
        told = tell(model, Schema(plan.opening.target, columns))
        if plan.compare:
            try:
                told |= examine(federation, model)
            except Interrupted:
                raise
            except FedLassoError as error:
                # The model stands, whatever a site's policy says to the questions of its card.
                told["not_compared"] = str(error)
        return model, told

    return fit


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
    from fedlasso.deploy.link import Opening
    from fedlasso.deploy.nvflare.demo import run_demo
    from fedlasso.deploy.run import Plan, begin_plan

    settings = Settings(goal="prediction")

    def across(project: Path, target: str, out: Path) -> None:
        plan = Plan(str(project), Opening("", target), asdict(settings))
        fit_across(out, begin_plan(out, plan))

    def here(files: Mapping[str, Path], target: str, out: Path) -> None:
        sites, schema = open_sites(Source(tuple(map(str, files.values())), target))
        model = fit_model(sites, settings)
        told = tell(model, schema)
        write_model(out, model, told, card(told))

    return run_demo(options.keep, across, here)
