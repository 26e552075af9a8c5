"""``fedlasso federation``: set up, serve, fit and resume across the network."""

import argparse
import errno
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fedlasso.atomic_files import CannotWrite
from fedlasso.cli import common
from fedlasso.cli.common import add_action, add_group, given_options, names, notify
from fedlasso.cli.options import add_outcome, add_reading, add_settings, read_settings
from fedlasso.errors import FedLassoError
from fedlasso.federation import Exchange
from fedlasso.models import FitPlan, NetworkSource


def add(commands: Any) -> None:
    """Add the command group."""
    actions = add_group(commands, "federation", "fit across real sites over a network")
    add_one = partial(add_action, actions, extra="nvflare")
    init = add_one(init_command, "trial/ --server fed.example.org:8443 --site north --site south")
    sign = add_one(sign_command, "trial/ north.csr south.csr")
    add_site = add_one(add_command, "trial/ --site east")
    revoke = add_one(revoke_command, "trial/ south")
    renew = add_one(renew_command, "trial/")
    server = add_one(start_server_command, "trial/")
    status = add_one(status_command, "trial/")
    fit = add_one(fit_command, "trial/ --target y --goal prediction --out model/")
    resume = add_one(resume_command, "model/")
    demo = add_one(demo_command)
    for parser in (init, sign, add_site, revoke, renew, server, status, fit):
        parser.add_argument("project", type=Path, metavar="PROJECT", help="its folder")
    init.add_argument("--server", required=True, metavar="HOST:PORT", help="where it will listen")
    each = "a site that will take part; once per site"
    for parser in (init, add_site):
        parser.add_argument(
            "--site", action="append", default=[], metavar="NAME", dest="sites", help=each
        )
    what = "the sites' requests, NAME.csr"
    sign.add_argument("requests", type=Path, nargs="+", metavar="FILE", help=what)
    other = "let this key take the place of another one, which is revoked"
    sign.add_argument("--replace", action="store_true", help=other)
    revoke.add_argument("site", metavar="NAME", help="the site")
    status.add_argument("--quick", action="store_true", help="only who is connected")
    fit.add_argument("--target", default="", metavar="COLUMN", help="what to predict")
    add_outcome(fit)
    add_settings(fit)
    fit.add_argument("--columns", type=names, default=(), help="predictors, comma-separated")
    add_reading(fit)
    more = "add the card's comparisons and subsamples, which cost messages of their own"
    fit.add_argument("--compare", action="store_true", help=more)
    fit.add_argument("--sites", type=names, default=(), help="who takes part; default: all")
    fit.add_argument("--timeout", type=float, default=300.0, help="seconds for one answer")
    folder = "a new folder for the model"
    fit.add_argument("--out", type=Path, required=True, metavar="MODEL", help=folder)
    begun = "the folder of the fit that was interrupted"
    resume.add_argument("out", type=Path, metavar="MODEL", help=begun)
    when = "when a site or the server goes away: stop (resumable), retry, or wait a day"
    ways = ["stop", "retry", "wait"]
    there = "seconds for sites to be there"
    for parser in (fit, resume):
        parser.add_argument("--on-failure", choices=ways, default="stop", help=when)
        parser.add_argument("--start", type=float, default=60.0, help=there)
    demo.add_argument("--keep", type=Path, help="keep everything in this new folder")


def init_command(options: argparse.Namespace) -> None:
    """Make a project: the server, you as the coordinator, and one kit per site."""
    from fedlasso.deploy.nvflare.project import create_project

    project = create_project(options.project, options.server, options.sites)
    print(f"Project {project.name!r}: server {project.host}:{project.port}")
    _say_kits(options.project, project.sites)
    print(f"Next: fedlasso federation start-server {options.project}")
    print(f"Instructions: {options.project / 'INSTRUCTIONS.md'}, and one in every kit")


def _say_kits(project: Path, sites: Sequence[str]) -> None:
    for site in sites:
        print(f"  {project / 'kits' / (site + '.zip')}  send it to {site}; it holds no key")
    print(f"Each site answers with a request: fedlasso federation sign {project} NAME.csr")


def sign_command(options: argparse.Namespace) -> None:
    """Sign sites' requests; compare the fingerprints by telephone.

    What each site is sent lists the keys of all, so sign all before you send; when a site joins
    later, send every site its file again.
    """
    from fedlasso.deploy.nvflare.project import list_unsigned, sign_request

    for path in options.requests:
        signed, fingerprint = sign_request(options.project, path, options.replace)
        name = signed.stem
        print(f"Key of {name!r}, which {name} must read to you just so:\n  {fingerprint}")
    print("If one differs: fedlasso federation revoke it")
    if waiting := list_unsigned(options.project):
        print(f"Not signed yet: {', '.join(waiting)}; each file lists the sites that are signed")
    print(f"Then send every site its own file of {options.project / 'kits'}, NAME.crt")
    if options.replace:
        print("The key before is revoked when the server starts again")


def add_command(options: argparse.Namespace) -> None:
    """Add sites to a project: one kit each."""
    from fedlasso.deploy.nvflare.project import add_sites

    add_sites(options.project, options.sites)
    _say_kits(options.project, options.sites)


def revoke_command(options: argparse.Namespace) -> None:
    """Let a site take part no longer: its certificate is revoked, fits do not name it."""
    from fedlasso.deploy.nvflare.project import revoke_site

    project = revoke_site(options.project, options.site)
    print(f"No fit asks {options.site!r} from now on; {len(project.sites)} sites are left")
    print("Start the server again, and it does not let that site in either")


def renew_command(options: argparse.Namespace) -> None:
    """Give server and coordinator new certificates; a site sends its request again instead."""
    from fedlasso.deploy.nvflare.project import renew

    renew(options.project)
    print("Server and coordinator have new certificates; start the server again")


def start_server_command(options: argparse.Namespace) -> None:
    """Run the server until Ctrl-C."""
    from fedlasso.deploy.nvflare.stay import serve

    common.stop_on_term()
    try:
        serve(options.project)
    except KeyboardInterrupt:
        print("\nThe server is stopped; interrupted fits can be resumed")


def status_command(options: argparse.Namespace) -> int:
    """Who is connected, versions, rows, columns."""
    from fedlasso.deploy.nvflare.line import Console, connect

    with Console(options.project) as console:
        project = console.project
        seen = console.connected()
        for warning in console.warnings:
            notify(f"warning: {warning}")
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
    """Fit one model across the sites."""
    from fedlasso.deploy.nvflare.project import read_project
    from fedlasso.deploy.run import begin_plan

    read_project(options.project)
    given = given_options(options, NetworkSource.__struct_fields__)
    if given.get("columns") and given.get("drop"):
        raise FedLassoError("give --columns or --drop, not both")
    settings = read_settings(options)
    settings.check()
    source = NetworkSource(**given | {"project": str(options.project.resolve()), "fit": ""})
    outcome = source.outcome(settings)
    for name in outcome.names:
        if name in source.columns:
            raise FedLassoError(f"column {name!r} is no predictor; leave it out of --columns")
    if source.min_level < 1:
        raise FedLassoError(f"--min-level is {source.min_level}; give a whole number, 1 or more")
    begin_plan(options.out, FitPlan(settings, source, options.compare))
    return resume_command(options)


def resume_command(options: argparse.Namespace) -> int:
    """Go on with an interrupted fit."""
    from fedlasso.deploy.nvflare.line import connect
    from fedlasso.deploy.run import run_plan, tell_fit

    common.stop_on_term()
    resume = f"`fedlasso federation resume {options.out}`"
    patience = given_options(options, ("on_failure", "start"))
    try:
        finished = run_plan(options.out, connect, listen=show_progress, notify=notify, **patience)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        notify(f"stopped; {resume} goes on from here")
        return common.INTERRUPTED
    except (CannotWrite, OSError) as error:
        if isinstance(error, CannotWrite):
            what = error.what
        elif error.errno in (errno.ENOSPC, errno.EDQUOT):
            what = f"cannot write {options.out}: {error.strerror}"
        else:
            raise
        raise FedLassoError(f"{what}; make room, then {resume} goes on") from error
    common.say_constant(finished.document)
    for warning in finished.document.warnings or ():
        notify(f"warning: {warning}")
    print(tell_fit(options.out, finished))
    return 0


def show_progress(exchange: Exchange) -> None:
    """Print one line per question on stderr: what was asked, and what all sites have sent."""
    asked = exchange.request
    line = f"{exchange.number:4d} {asked.kind:12s} {type(asked).__name__:18s} "
    line += f"{exchange.seconds:6.2f} s   {exchange.costs.total().upload} bytes up so far"
    print(line, file=sys.stderr)


def demo_command(options: argparse.Namespace) -> int:
    """Server and three hospitals on this machine, in a minute."""
    from fedlasso.deploy.nvflare.local import run_demo

    return run_demo(options.keep, show_progress)
