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
from fedlasso.cli.check import add_family, add_out, check_out, report
from fedlasso.cli.common import add_action, add_group, given_options, names, notify
from fedlasso.cli.options import (
    add_about,
    add_outcome,
    add_reading,
    add_settings,
    read_about,
    read_settings,
)
from fedlasso.errors import FedLassoError
from fedlasso.federation import Exchange
from fedlasso.models import FitPlan, NetworkSource


def add(commands: Any) -> None:
    actions = add_group(commands, "federation", "fit across sites on a network, as coordinator")
    add_one = partial(add_action, actions, extra="nvflare")
    init = add_one(init_command, "trial/ --server fed.example.org:8443 --site north --site south")
    sign = add_one(sign_command, "trial/ north.csr south.csr")
    add_site = add_one(add_command, "trial/ --site east")
    revoke = add_one(revoke_command, "trial/ south")
    renew = add_one(renew_command, "trial/")
    server = add_one(start_server_command, "trial/")
    status = add_one(status_command, "trial/")
    fit = add_one(fit_command, "trial/ --target y --goal prediction --out model/")
    check = add_one(check_command, "trial/ --target relapse --family binomial --out check.html")
    resume = add_one(resume_command, "model/")
    demo = add_one(demo_command)
    for parser in (init, sign, add_site, revoke, renew, server, status, check, fit):
        parser.add_argument("project", type=Path, metavar="PROJECT", help="folder of the project")
    init.add_argument("--server", required=True, metavar="HOST:PORT", help="address of the server")
    site: dict[str, Any] = {"action": "append", "default": [], "metavar": "NAME", "dest": "sites"}
    for parser in (init, add_site):
        parser.add_argument("--site", help="name of a site; repeat for each", **site)
    sign.add_argument("requests", type=Path, nargs="+", metavar="FILE", help="requests, NAME.csr")
    sign.add_argument("--replace", action="store_true", help="revoke the site's earlier key")
    revoke.add_argument("site", metavar="NAME", help="name of the site")
    status.add_argument("--quick", action="store_true", help="print only who is connected")
    for parser in (check, fit):
        parser.add_argument("--target", default="", metavar="COLUMN", help="the response")
        add_outcome(parser)
        add_reading(parser)
        parser.add_argument("--sites", type=names, default=(), help="sites of it; default: all")
        parser.add_argument("--timeout", type=float, default=300.0, help="seconds for one answer")
    left = "sites that have left for good: a new fit without them"
    fit.add_argument("--without", type=names, default=(), metavar="SITES", help=left)
    like = "settings and columns of an earlier fit, instead of those given here"
    fit.add_argument("--like", type=Path, metavar="MODEL", help=like)
    add_family(check)
    add_out(check)
    add_settings(fit)
    fit.add_argument("--columns", type=names, default=(), help="predictors, comma-separated")
    more = "add the card's comparisons and subsamples, which need messages of their own"
    fit.add_argument("--compare", action="store_true", help=more)
    add_about(fit)
    fit.add_argument("--out", type=Path, required=True, metavar="MODEL", help="new model folder")
    resume.add_argument("out", type=Path, metavar="MODEL", help="folder of an interrupted fit")
    ways = ["stop", "retry", "wait"]
    when = "if a site or the server is lost: stop (resumable), retry, or wait a day"
    for parser in (fit, resume):
        parser.add_argument("--on-failure", choices=ways, default="stop", help=when)
    for parser in (check, fit, resume):
        parser.add_argument(
            "--start", type=float, default=60.0, help="seconds for sites to connect"
        )
    demo.add_argument("--keep", type=Path, metavar="FOLDER", help="keep all files in a new folder")


def init_command(options: argparse.Namespace) -> None:
    """Make a project: server, coordinator, and one kit per site."""
    from fedlasso.deploy.nvflare.project import create_project

    project = create_project(options.project, options.server, options.sites)
    print(f"Project {project.name!r}: server {project.host}:{project.port}")
    print_kits(options.project, project.sites)
    print(f"Next: fedlasso federation start-server {options.project}")
    print(f"Instructions: {options.project / 'INSTRUCTIONS.md'}, and in every kit")


def print_kits(project: Path, sites: Sequence[str]) -> None:
    for site in sites:
        print(f"  {project / 'kits' / (site + '.zip')}  send to {site}; contains no key")
    sign = f"fedlasso {_group(project)} sign {project} NAME.csr"
    print(f"Each site returns a signing request: {sign}")


def _group(folder: Path) -> str:
    """Return the group of commands for a project: its sites have a connection, or use files."""
    from fedlasso.deploy.nvflare.project import read_project

    return "federation" if read_project(folder).host else "courier"


def sign_command(options: argparse.Namespace) -> None:
    """Sign the sites' requests; compare the fingerprints by telephone.

    Each site's file lists the keys of all sites, so sign all requests before you send the files.
    When a site joins later, send every site its file again.
    """
    from fedlasso.deploy.nvflare.project import list_unsigned, sign_request

    for path in options.requests:
        signed, fingerprint = sign_request(options.project, path, options.replace)
        name = signed.stem
        print(f"Key of {name!r}; compare with what {name} reads to you:\n  {fingerprint}")
    group = _group(options.project)
    print(f"If one differs, run: fedlasso {group} revoke {options.project} NAME")
    if waiting := list_unsigned(options.project):
        print(f"Not signed yet: {', '.join(waiting)}; each file lists only the signed sites")
    print(f"Then send every site its own file, {options.project / 'kits'}/NAME.crt")
    if options.replace and group == "federation":
        print("Restart the server to revoke the earlier key")


def add_command(options: argparse.Namespace) -> None:
    """Add sites to a project, with one kit each."""
    from fedlasso.deploy.nvflare.project import add_sites

    add_sites(options.project, options.sites)
    print_kits(options.project, options.sites)


def revoke_command(options: argparse.Namespace) -> None:
    """Exclude a site from all fits, and revoke its certificate."""
    from fedlasso.deploy.nvflare.project import revoke_site

    project = revoke_site(options.project, options.site)
    print(f"Fits exclude {options.site!r} from now on; left: {', '.join(project.sites) or 'none'}")
    if _group(options.project) == "federation":
        print("Restart the server to reject its certificate")


def renew_command(options: argparse.Namespace) -> None:
    """Renew the coordinator's certificate, and a server's; sites send new requests instead."""
    from fedlasso.deploy.nvflare.project import renew

    renew(options.project)
    if _group(options.project) == "federation":
        print("Server and coordinator have new certificates; restart the server")
    else:
        print("The coordinator has a new certificate")


def start_server_command(options: argparse.Namespace) -> None:
    """Run the server until Ctrl-C."""
    from fedlasso.deploy.nvflare.service import run_server

    common.stop_on_term()
    try:
        run_server(options.project)
    except KeyboardInterrupt:
        print("\nThe server has stopped; interrupted fits can be resumed")


def status_command(options: argparse.Namespace) -> int:
    """Print the connected sites with versions, rows and columns."""
    from fedlasso.deploy.nvflare.line import Console, connect

    with Console(options.project) as console:
        project = console.project
        seen = console.connected()
        for warning in console.warnings:
            notify(f"warning: {warning}")
    present = [site for site in project.sites if site in seen]
    facts = dict.fromkeys(project.sites, "")
    if present and not options.quick:
        with connect(options.project, present) as network:
            network.introduce()
        for i in network.introductions:
            facts[i.site] = f" {i.version:>8s} {i.rows:8d} {len(i.columns):8d}"
        for site, clock in network.odd_clocks().items():
            facts[site] += f"   {clock}"
    print(f"Server {project.host}:{project.port}, {len(present)} of {len(project.sites)} sites")
    print(f"{'site':16s} {'last seen':>10s} {'version':>8s} {'rows':>8s} {'columns':>8s}")
    for site in project.sites:
        ago = f"{max(time.time() - seen[site], 0):.0f} s ago" if site in seen else "absent"
        print(f"{site:16s} {ago:>10s}{facts[site]}")
    return 0 if len(present) == len(project.sites) else 1


def check_command(options: argparse.Namespace) -> int:
    """Report how the sites' columns differ, and Table 1 from sums, without a fit.

    Table 1 is of all sites together, and of each one if its policy lists SummariseTable under
    `single`. The exit code is 0 if nothing must be mended, and 1 otherwise.
    """
    from fedlasso.deploy.check_network import check_network
    from fedlasso.deploy.nvflare.line import connect

    check_out(options.out)
    settings = read_settings(options)
    given = given_options(options, NetworkSource.__struct_fields__)
    source = NetworkSource(**given | {"project": str(options.project.resolve()), "fit": ""})
    source.outcome(settings)
    patience = {"timeout": options.timeout, "start": options.start}
    with connect(options.project, source.sites, **patience) as network:
        return report(check_network(network, source, settings), options.out)


def fit_command(options: argparse.Namespace) -> int:
    """Fit one model across the sites.

    With --without and --like a new fit replaces one whose site has left for good.
    """
    from fedlasso.deploy.nvflare.project import check_site, read_project
    from fedlasso.deploy.run import begin_plan, plan_without

    project = read_project(options.project)
    for name in options.without if options.like is None else ():
        check_site(project, name)
    if options.without:
        if options.sites:
            raise FedLassoError("give --sites or --without, not both")
        notify(describe_new_fit(options.without))
        options.sites = tuple(site for site in project.sites if site not in options.without)
    if options.like is not None:
        known = options.sites or project.sites
        plan = plan_without(options.like, options.project, known, options.without)
        begin_plan(options.out, plan)
        return resume_command(options)
    given = given_options(options, NetworkSource.__struct_fields__)
    if given.get("columns") and given.get("drop"):
        raise FedLassoError("give --columns or --drop, not both")
    settings = read_settings(options)
    settings.check()
    source = NetworkSource(**given | {"project": str(options.project.resolve()), "fit": ""})
    outcome = source.outcome(settings)
    for name in outcome.names:
        if name in source.columns:
            raise FedLassoError(f"column {name!r} is not a predictor; omit it from --columns")
    if source.min_level < 1:
        raise FedLassoError(f"--min-level is {source.min_level}; give a whole number, 1 or more")
    about = read_about(options)
    begin_plan(options.out, FitPlan(settings, source, options.compare, about))
    return resume_command(options)


def describe_new_fit(left: Sequence[str]) -> str:
    """Return what a fit without some sites means to the others."""
    who = ", ".join(left)
    return (
        f"a new fit without {who}: nothing that sites have answered is used again. If their data "
        "took part in fits with other sites, they refuse until each of their operators has run "
        "`fedlasso site members KIT --accept`: the totals of both fits differ by the sums of "
        f"{who}, which their yes discloses to the coordinator"
    )


def resume_command(options: argparse.Namespace) -> int:
    """Resume an interrupted fit."""
    from fedlasso.deploy.nvflare.line import connect
    from fedlasso.deploy.run import describe_finished, run_plan

    common.stop_on_term()
    resume = f"`fedlasso federation resume {options.out}`"
    patience = given_options(options, ("on_failure", "start"))
    try:
        finished = run_plan(options.out, connect, listen=show_progress, notify=notify, **patience)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        notify(f"stopped; {resume} continues")
        return common.INTERRUPTED
    except (CannotWrite, OSError) as error:
        if isinstance(error, CannotWrite):
            what = error.what
        elif error.errno in (errno.ENOSPC, errno.EDQUOT):
            what = f"cannot write {options.out}: {error.strerror}"
        else:
            raise
        raise FedLassoError(f"{what}; free disk space, then run {resume}") from error
    common.print_notices(finished.document)
    print(describe_finished(options.out, finished))
    return 0


def show_progress(exchange: Exchange) -> None:
    """Print a round trip and the bytes that all sites have sent, to standard error."""
    request, *others = exchange.requests
    name = type(request).__name__ + (f" +{len(others)}" if others else "")
    line = f"{exchange.progress:22s} {request.kind:12s} {name:18s} "
    line += f"{exchange.seconds:6.2f} s   {exchange.costs.total().upload} bytes up so far"
    print(line, file=sys.stderr)


def demo_command(options: argparse.Namespace) -> int:
    """Run a server and three hospitals on this machine, in a minute."""
    from fedlasso.deploy.nvflare.local import run_demo

    return run_demo(options.keep, show_progress)
