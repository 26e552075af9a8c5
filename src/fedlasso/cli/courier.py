"""``fedlasso courier``: the same fit by files, for sites that have no connection."""

import argparse
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedlasso.atomic_files import CannotWrite
from fedlasso.cli import options as shared
from fedlasso.cli.common import (
    add_action,
    add_group,
    given_options,
    names,
    notify,
    print_notices,
    require,
    stop_on_term,
)
from fedlasso.cli.federation import add_command, print_kits, renew_command, sign_command
from fedlasso.cli.federation import revoke_command as exclude_site
from fedlasso.cli.site import accept_command, request_command
from fedlasso.errors import FedLassoError, Interrupted

if TYPE_CHECKING:
    from fedlasso.deploy.courier.collect import PostedFit


def add(commands: Any) -> None:
    actions = add_group(commands, "courier", "fit by files, across sites without a connection")
    add_one = partial(add_action, actions, extra="courier")
    # The coordinator fits, which a site does not.
    add_fitting = partial(add_action, actions, extra="courier,fit")
    init = add_one(init_command, "trial/ --site north --site south --site west")
    sign = add_one(sign_command, "trial/ north.csr south.csr west.csr")
    add_site = add_one(add_command, "trial/ --site east")
    revoke = add_one(revoke_command, "trial/ south")
    renew = add_one(renew_command, "trial/")
    ask = add_fitting(ask_command, "trial/ --target y --family binomial --out model/")
    collect = add_fitting(collect_command, "trial/ north-1f2e3d4c-01.fla south-1f2e3d4c-01.fla")
    abandon = add_one(abandon_command, "trial/ 1f2e3d4c")
    status = add_one(status_command, "trial/")
    request = add_one(request_command, "north/")
    accept = add_one(accept_command, "north/ north.crt")
    answer = add_one(answer_command, "north/ north-1f2e3d4c-01.flq records.csv")
    serve = add_one(serve_command, "north/ records.csv --folder exchange/ --yes")
    demo = add_fitting(demo_command)
    for parser in (init, sign, add_site, revoke, renew, ask, collect, abandon, status):
        parser.add_argument("project", type=Path, metavar="PROJECT", help="folder of the project")
    site: dict[str, Any] = {"action": "append", "default": [], "metavar": "NAME", "dest": "sites"}
    for parser in (init, add_site):
        parser.add_argument("--site", help="name of a site; repeat for each", **site)
    revoke.add_argument("site", metavar="NAME", help="name of the site")
    sign.add_argument("requests", type=Path, nargs="+", metavar="FILE", help="requests, NAME.csr")
    sign.add_argument("--replace", action="store_true", help="replace the site's earlier key")
    _add_fit(ask)
    abandon.add_argument("fit", metavar="FIT", help="beginning of the fit's name, as in its files")
    answers = "answer files, NAME-....fla, or folders with them; without any the fit only goes on"
    collect.add_argument("answers", type=Path, nargs="*", metavar="FILE", help=answers)
    for parser in (request, accept, answer):
        parser.add_argument("kit", type=Path, metavar="KIT", help="folder of your kit")
    renewed = "renew your certificate, for the key that you made before"
    request.add_argument("--renew", action="store_true", help=renewed)
    accept.add_argument("certificate", type=Path, metavar="FILE", help="your certificate file")
    accept.add_argument("--yes", action="store_true", help="do not ask: the keys were compared")
    question = "question file, .flq, or a folder with your questions"
    answer.add_argument("question", type=Path, metavar="QUESTION", help=question)
    answer.add_argument("data", type=Path, metavar="DATA", help="table with a row per record")
    serve.add_argument("place", type=Path, metavar="KIT", help="your kit, or the project's folder")
    data = "a site's table with a row per record"
    serve.add_argument("data", type=Path, nargs="?", metavar="DATA", help=data)
    folder = "folder or URL where the files are exchanged"
    serve.add_argument("--folder", required=True, metavar="PLACE", help=folder)
    serve.add_argument("--every", type=float, default=5.0, help="seconds between looks; default: 5")
    serve.add_argument("--once", action="store_true", help="look once")
    for parser in (answer, serve):
        parser.add_argument("--policy", type=Path, help="TOML file with your rules")
    answer.add_argument("--out", type=Path, metavar="FOLDER", help="default: beside the question")
    yes = "do not ask, unless the policy requires approval"
    for parser in (answer, serve):
        parser.add_argument("--yes", action="store_true", help=yes)
    demo.add_argument("--keep", type=Path, metavar="FOLDER", help="keep all files in a new folder")


def _add_fit(ask: Any) -> None:
    ask.add_argument("--target", default="", metavar="COLUMN", help="the response")
    shared.add_outcome(ask)
    shared.add_reading(ask)
    ask.add_argument("--sites", type=names, default=(), help="sites of it; default: all")
    shared.add_settings(ask)
    ask.add_argument("--columns", type=names, default=(), help="predictors, comma-separated")
    more = "add the card's comparisons and subsamples, which need more round trips"
    ask.add_argument("--compare", action="store_true", help=more)
    shared.add_about(ask)
    out = "new model folder; default: PROJECT/model"
    ask.add_argument("--out", type=Path, metavar="MODEL", help=out)


def init_command(options: argparse.Namespace) -> None:
    """Make a project: keys for the coordinator, and one kit per site."""
    from fedlasso.deploy.nvflare.project import create_project

    project = create_project(options.project, None, options.sites)
    print(f"Project {project.name!r}, whose sites take part by files")
    print_kits(options.project, project.sites)
    _warn_few(project.sites)
    print(f"Instructions: {options.project / 'INSTRUCTIONS.md'}, and in every kit")


def _warn_few(sites: Sequence[str]) -> None:
    """Warn where the default policy of sites would refuse a fit."""
    from fedlasso.governance import Policy

    least = Policy().min_sites
    if len(sites) < least:
        refused = f"sites refuse fits with fewer than {least} sites"
        remedy = f"add sites, or have all of them set min_sites = {len(sites)} in policy.toml"
        notify(f"warning: {refused} by default; {remedy}")


def revoke_command(options: argparse.Namespace) -> int:
    """Exclude a site from all fits, and revoke its certificate; its unfinished fits end."""
    from fedlasso.deploy.courier.collect import Place

    exclude_site(options)
    place = Place(options.project)
    with place.locked():
        for fit in place.fits():
            if options.site in fit.sites and not fit.about.ended:
                _go_on(fit)
    return 0


def ask_command(options: argparse.Namespace) -> int:
    """Begin a fit: write one question file per site.

    The options are those of `fedlasso federation fit`. Send each file in PROJECT/outbox to its
    site, by any way; only that site can read it. The same command for the same folder --out, while
    that fit is unfinished, goes on with it.
    """
    from fedlasso.deploy.courier.collect import Place, begin
    from fedlasso.models import FitPlan, NetworkSource

    given = given_options(options, NetworkSource.__struct_fields__)
    if given.get("columns") and given.get("drop"):
        raise FedLassoError("give --columns or --drop, not both")
    settings = shared.read_settings(options)
    settings.check()
    place = Place(options.project)
    source = NetworkSource(**given | {"project": place.project.name, "fit": ""})
    outcome = source.outcome(settings)
    for name in outcome.names:
        if name in source.columns:
            raise FedLassoError(f"column {name!r} is not a predictor; omit it from --columns")
    plan = FitPlan(settings, source, options.compare, shared.read_about(options))
    with place.locked():
        fit = begin(place, plan, options.out or options.project / "model")
        _warn_few(fit.sites)
        return _go_on(fit)


def collect_command(options: argparse.Namespace) -> int:
    """Take the sites' answers, and write the next questions or the model.

    Repeat the command whenever it was interrupted: nothing is lost, and nothing counts twice. A
    file that is refused is named with the reason; the others are used. A fit that fails ends at
    its sites too, and the other fits go on.
    """
    from fedlasso.deploy.courier.collect import LateAnswer, Place, collect

    place = Place(options.project)
    refused = before = 0
    with place.locked():
        for path in _listed(options.answers, "*.fla", "answer file, *.fla"):
            try:
                _, new = collect(place, path)
            except LateAnswer as error:
                notify(str(error))
            except FedLassoError as error:
                notify(
                    f"{'not collected' if isinstance(error, CannotWrite) else 'refused'}: {error}"
                )
                refused += 1
            else:
                before += not new
                if new:
                    print(f"{path.name}: collected, {path.stat().st_size} bytes")
        if before:
            print(f"{before} answer{'s' * (before != 1)} had been collected before")
        codes = [_go_on(fit) for fit in place.fits() if not fit.about.ended]
    if not codes:
        print(f"No fit is unfinished; see fedlasso courier status {options.project}")
    return 2 if refused else max(codes, default=0)


def abandon_command(options: argparse.Namespace) -> int:
    """End a fit without a model: write the files with which its sites delete its keys."""
    from fedlasso.deploy.courier.collect import Place

    place = Place(options.project)
    with place.locked():
        fit = place.find_fit(options.fit)
        if fit.about.ended:
            raise FedLassoError(f"fit {fit.name[:8]} has ended already")
        fit.fail("abandoned by the coordinator")
        _print_failed(fit)
    return 0


def _go_on(fit: "PostedFit") -> int:
    """Fit with the answers that are there, and print what is to be done next.

    The exit code is 2 if the fit has failed, or cannot go on.
    """
    from fedlasso.deploy.courier.post import Awaiting
    from fedlasso.deploy.run import describe_finished

    try:
        finished = fit.advance(notify=notify)
    except Awaiting as awaiting:
        print(f"Fit {fit.name[:8]}: {awaiting}")
        _print_outstanding(fit)
        return 0
    except (FedLassoError, OSError) as error:
        if not fit.about.failed:
            notify(f"fit {fit.name[:8]} cannot go on: {error}")
        else:
            _print_failed(fit)
        return 2
    print_notices(finished.document)
    print(describe_finished(Path(fit.about.out), finished))
    print(fit.describe_trips(finished.document))
    print("Send the last files; with them the sites delete the fit's keys:")
    _print_outstanding(fit)
    return 0


def _print_failed(fit: "PostedFit") -> None:
    print(f"Fit {fit.name[:8]} failed: {fit.about.failed}")
    print("Send the last files; with them the sites delete the fit's keys:")
    _print_outstanding(fit)


def _print_outstanding(fit: "PostedFit") -> None:
    for path in fit.outstanding():
        site = path.name.rsplit("-", 2)[0]
        print(f"  {path}  {path.stat().st_size} bytes, send to {site}")


def status_command(options: argparse.Namespace) -> int:
    """Print every fit, its round trip, and the sites that have not answered.

    The exit code is 0 if no site is awaited, and 1 otherwise.
    """
    from fedlasso.deploy.courier.collect import Place

    place = Place(options.project)
    fits = place.fits()
    print(f"Project {place.project.name!r}, sites {', '.join(place.project.sites)}")
    waiting = False
    for fit in fits:
        trip, missing = fit.awaited()
        if fit.about.finished:
            state = f"finished after {trip} round trips; its model is in {fit.about.out}"
        elif fit.about.failed:
            state = f"failed in round trip {trip}: {fit.about.failed}"
        elif missing:
            state = f"round trip {trip}, awaiting {', '.join(missing)}"
        else:
            state = f"all answers to round trip {trip} are there; run fedlasso courier collect"
        print(f"Fit {fit.name[:8]}: {state}")
        if missing and not fit.about.ended:
            waiting = True
            _print_outstanding(fit)
    if not fits:
        print(f"No fit yet: fedlasso courier ask {options.project} --target COLUMN")
    return 1 if waiting else 0


def answer_command(options: argparse.Namespace) -> int:
    """Answer a question file: see what would leave, say yes, and return the answer file.

    Prints who asks, which columns and how many numbers would leave, and what is left of the data
    file's budgets. Nothing is written without a yes. The same question has the same answer. A file
    that is refused is named with the reason; the others in its folder are answered. The exit code
    is 2 if one was refused, and 1 if you said no.
    """
    from fedlasso.deploy.courier.contents import question_pattern
    from fedlasso.deploy.courier.mailbox import Mailbox
    from fedlasso.deploy.courier.session import HasEnded

    agree = None if options.yes else _confirm
    mailbox = Mailbox(options.kit, options.data, options.policy, agree, _say)
    code = 0
    mine = f"question file of {mailbox.name}, {mailbox.name}-*.flq"
    for path in _listed([options.question], question_pattern(mailbox.name), mine):
        try:
            outcome = mailbox.answer(path, options.out)
        except HasEnded as error:
            # A folder may still have the questions of earlier fits.
            notify(str(error))
            code = code if options.question.is_dir() else 2
            continue
        except FedLassoError as error:
            notify(f"not answered: {error}")
            code = 2
            continue
        print(outcome.text)
        if outcome.answer is not None:
            print(f"Return to the coordinator: {outcome.answer}")
        elif not outcome.ended:
            code = max(code, 1)
    return code


def _listed(paths: Sequence[Path], pattern: str, kind: str) -> Iterator[Path]:
    """Yield files, and those of folders that match a pattern; terminals of Windows need this."""
    for path in paths:
        if path.is_dir():
            found = sorted(path.glob(pattern))
            if not found:
                raise FedLassoError(f"{path} contains no {kind}")
            yield from found
        elif "*" in path.name:
            yield from sorted(path.parent.glob(path.name))
        else:
            yield path


def serve_command(options: argparse.Namespace) -> int:
    """Watch a folder or URL: a site answers there, a coordinator collects and asks.

    Nothing listens: the folder is looked at every few seconds, until Ctrl-C or, at the coordinator,
    until all fits have ended. Every answer is shown, and without --yes needs a yes. The exit code
    is 2 if a file was refused in the last look, or a fit has failed.
    """
    from fedlasso.deploy.courier.carriers import open_carrier
    from fedlasso.deploy.courier.collect import Place
    from fedlasso.deploy.courier.mailbox import Mailbox
    from fedlasso.deploy.courier.serve import ProjectWatch, SiteWatch

    carrier = open_carrier(options.folder)
    watch: ProjectWatch | SiteWatch
    if (options.place / "project.json").exists():
        require("courier,fit")
        place = Place(options.place)
        watch = ProjectWatch(place, carrier, _say, lambda f: _say(f"model in {f.about.out}"))
    elif options.data is None:
        raise FedLassoError("name your data: fedlasso courier serve KIT DATA --folder PLACE")
    else:
        agree = None if options.yes else _confirm
        mailbox = Mailbox(options.place, options.data, options.policy, agree, _say)
        watch = SiteWatch(mailbox, carrier, _say)
    stop_on_term()
    try:
        return _watch(watch, options.every, options.once)
    except KeyboardInterrupt:
        print("\nStopped; the same command goes on")
        return 0


def _watch(watch: Any, every: float, once: bool) -> int:
    from fedlasso.deploy.courier.serve import ProjectWatch

    reported = False
    while True:
        try:
            left = watch.look()
            reported = False
            if once or (isinstance(watch, ProjectWatch) and not left):
                return 0 if watch.well else 2
        except Interrupted as error:
            # The place may be back later; it is named once.
            if once:
                raise
            if not reported:
                notify(f"{error} (retrying)")
            reported = True
        time.sleep(every)


def _say(text: str) -> None:
    print(text, flush=True)


def demo_command(options: argparse.Namespace) -> int:
    """Play three hospitals in three folders on this machine, and show every file."""
    from fedlasso.deploy.courier.demo import run_demo

    return run_demo(options.keep)


def _confirm(text: str) -> bool:
    try:
        return input(text).strip().lower() in ("y", "yes")
    except EOFError:
        print()
        raise FedLassoError("no terminal to say yes at; use --yes if that is decided") from None
