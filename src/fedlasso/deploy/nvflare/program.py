"""The engine's programs as we run them: with the few powers that a fit takes, and no others.

`Engine` starts ``python -m fedlasso.deploy.nvflare.program site`` or ``server``; the site's engine
starts ``job`` for a fit. Each runs the engine's own program after taking away what is not needed:

- a cell takes messages only from whom it should: a site from the server alone, the server from
  everybody in their own name, and never on behalf of one site to another;
- a site does six things for the server, all about a job, and the job must be ours (`job.py`);
- certificates that the project has revoked are not let in.
"""

import logging
import runpy
import shlex
import shutil
import ssl
import sys
import uuid
from pathlib import Path
from typing import Any

from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.job_launcher_spec import JobProcessArgs
from nvflare.app_common.job_launcher.client_process_launcher import ClientProcessJobLauncher
from nvflare.app_common.job_launcher.server_process_launcher import ServerProcessJobLauncher
from nvflare.fuel.f3.cellnet.core_cell import CoreCell
from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey
from nvflare.fuel.f3.drivers import net_utils
from nvflare.private.admin_defs import error_reply
from nvflare.private.defs import RequestHeader
from nvflare.private.fed.client.admin import RequestProcessor
from nvflare.utils.job_launcher_utils import get_client_job_args, get_server_job_args

from fedlasso.deploy.nvflare.job import is_ours

PROGRAMS = {
    "site": "nvflare.private.fed.app.client.client_train",
    "server": "nvflare.private.fed.app.server.server_train",
    "job": "nvflare.private.fed.app.client.worker_process",
}
SERVER_JOB = "nvflare.private.fed.app.server.runner_process"
_log = logging.getLogger(__name__)


def main() -> None:
    """Run the engine's program that the first argument names, with the others."""
    part = sys.argv.pop(1)
    guard_cells()
    if part == "site":
        keep_processors()
    if part == "server":
        refuse_revoked()
    runpy.run_module(PROGRAMS[part], run_name="__main__")


def is_allowed(here: str, sender: str, origin: str, destination: str) -> bool:
    """Whether a cell should take a message.

    `sender` is who holds the other end of the connection, by its certificate; `origin` and
    `destination` are what the message says of itself. Names are like ``site`` or ``site.job``.
    """
    own, near, first, last = (name.split(".")[0] for name in (here, sender, origin, destination))
    # Who sends in another's name is lying. One site has nothing to say to another.
    return near == first and own in (near, last) and (near == last or "server" in (near, last))


def guard_cells() -> None:
    """Have every cell of this process look at who sends, before anything is done."""
    take = CoreCell.process_message

    def check(self: Any, endpoint: Any, connection: Any, app_id: Any, message: Any) -> None:
        origin = str(message.get_header(MessageHeaderKey.ORIGIN))
        destination = str(message.get_header(MessageHeaderKey.DESTINATION))
        if is_allowed(self.get_fqcn(), endpoint.name, origin, destination):
            take(self, endpoint, connection, app_id, message)
        else:
            _log.warning("refused: %s sent as %s to %s", endpoint.name, origin, destination)

    CoreCell.process_message = check


class AboutJob(RequestProcessor):  # type: ignore[misc]
    """Does one thing that the server asks of a site, if it is about a proper job."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def get_topics(self) -> list[str]:
        return list(self._inner.get_topics())

    def process(self, req: Any, app_ctx: Any) -> Any:
        """Check the job's identity, which the engine takes for a folder's name, and its files."""
        job = req.get_header(RequestHeader.JOB_ID)
        meta = req.get_header(RequestHeader.JOB_META)
        if job is not None and not _is_identity(job):
            return error_reply("the job has no proper identity")
        if meta is not None and meta.get("job_id") != job:
            return error_reply("the job has two identities")
        if type(self._inner).__name__ == "DeployProcessor":
            if job is None or not is_ours(req.body):
                return error_reply("this site runs no other job than fedlasso's own")
            # The folders of jobs that are over are removed.
            for folder in Path(app_ctx.args.workspace).iterdir():
                running = folder.name in app_ctx.client_executor.run_processes
                if _is_identity(folder.name) and not running:
                    shutil.rmtree(folder, ignore_errors=True)
        return self._inner.process(req, app_ctx)


def _is_identity(text: object) -> bool:
    try:
        return str(uuid.UUID(str(text))) == text
    except ValueError:
        return False


def keep_processors() -> None:
    """Keep the six things that a site does for a job: no shell, no restart, no reports."""
    from nvflare.private.fed.client import scheduler_cmds, training_cmds
    from nvflare.private.fed.client.client_req_processors import ClientRequestProcessors

    ClientRequestProcessors.request_processors[:] = [
        AboutJob(scheduler_cmds.CheckResourceProcessor()),
        AboutJob(scheduler_cmds.CancelResourceProcessor()),
        AboutJob(scheduler_cmds.StartJobProcessor()),
        AboutJob(training_cmds.DeployProcessor()),
        AboutJob(training_cmds.AbortAppProcessor()),
        AboutJob(training_cmds.NotifyJobStatusProcessor()),
    ]


def refuse_revoked() -> None:
    """Have the server check certificates against the list of revoked ones in its kit."""
    make = net_utils.get_ssl_context

    def check(params: dict[str, Any], ssl_server: bool) -> Any:
        context = make(params, ssl_server)
        if context is not None and ssl_server:
            revoked = Path(params["ca_cert"]).with_name("revoked.pem")
            context.load_verify_locations(revoked)
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        return context

    net_utils.get_ssl_context = check


class SiteLauncher(ClientProcessJobLauncher):  # type: ignore[misc]
    """Starts a site's job as our program."""

    def get_command(self, job_meta: Any, fl_ctx: Any) -> str:
        """Return the command line."""
        return _command(fl_ctx, [__spec__.name, "job"], get_client_job_args(False, False))


class ServerLauncher(ServerProcessJobLauncher):  # type: ignore[misc]
    """Starts the server's job as the engine's own program."""

    def get_command(self, job_meta: Any, fl_ctx: Any) -> str:
        """Return the command line."""
        return _command(fl_ctx, [SERVER_JOB], get_server_job_args(False, False))


def _command(fl_ctx: Any, program: list[str], names: list[str]) -> str:
    """The engine's command line, but paths may have spaces, and no working folder is imported."""
    given = fl_ctx.get_prop(FLContextKey.JOB_PROCESS_ARGS)
    words = [sys.executable, "-P", "-m", *program]
    for name in names:
        if given.get(name):
            words += map(str, given[name])
    option, values = given[JobProcessArgs.OPTIONS]
    return shlex.join([*words, option, *values.split()])


if __name__ == "__main__":
    main()
