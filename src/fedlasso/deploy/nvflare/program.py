"""The engine's programs, restricted to what a fit needs.

`Engine` starts ``python -m fedlasso.deploy.nvflare.program site`` or ``server``; the site's engine
starts ``job`` for a fit. Each runs the engine's own program with these restrictions:

- a site accepts messages from the server only; the server accepts messages in the sender's own
  name, and forwards none between sites;
- a site processes six kinds of requests, all about a job, which must be ours (`job.py`);
- the server rejects revoked certificates.
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
    """Run the engine's program named by the first argument."""
    part = sys.argv.pop(1)
    check_senders()
    if part == "site":
        restrict_requests()
    if part == "server":
        reject_revoked()
    runpy.run_module(PROGRAMS[part], run_name="__main__")


def is_allowed(here: str, sender: str, origin: str, destination: str) -> bool:
    """Whether the cell `here` should accept a message.

    `sender` is the name in the certificate of the connection; `origin` and `destination` are those
    that the message claims. Names are like ``site`` or ``site.job``.
    """
    own, near, first, last = (name.split(".")[0] for name in (here, sender, origin, destination))
    # The origin must be the sender, and one end must be the server or the same site.
    return near == first and own in (near, last) and (near == last or "server" in (near, last))


def check_senders() -> None:
    """Make every cell of this process check a message's sender first."""
    process = CoreCell.process_message

    def check(self: Any, endpoint: Any, connection: Any, app_id: Any, message: Any) -> None:
        origin = str(message.get_header(MessageHeaderKey.ORIGIN))
        destination = str(message.get_header(MessageHeaderKey.DESTINATION))
        if is_allowed(self.get_fqcn(), endpoint.name, origin, destination):
            process(self, endpoint, connection, app_id, message)
        else:
            _log.warning("refused: %s sent as %s to %s", endpoint.name, origin, destination)

    CoreCell.process_message = check


class JobRequestProcessor(RequestProcessor):  # type: ignore[misc]
    """Processes one kind of request from the server, if it is about our job."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def get_topics(self) -> list[str]:
        return list(self._inner.get_topics())

    def process(self, req: Any, app_ctx: Any) -> Any:
        """Check the job's files and its identity, which the engine uses as a folder's name."""
        job = req.get_header(RequestHeader.JOB_ID)
        meta = req.get_header(RequestHeader.JOB_META)
        if job is not None and not _is_identity(job):
            return error_reply("the job's identity is not a UUID")
        if meta is not None and meta.get("job_id") != job:
            return error_reply("the job has two identities")
        if type(self._inner).__name__ == "DeployProcessor":
            if job is None or not is_ours(req.body):
                return error_reply("this site runs only fedlasso's own job")
            # Remove the folders of earlier jobs.
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


def restrict_requests() -> None:
    """Keep the six requests about a job: no shell, no restart, no reports."""
    from nvflare.private.fed.client import scheduler_cmds, training_cmds
    from nvflare.private.fed.client.client_req_processors import ClientRequestProcessors

    kept = (
        scheduler_cmds.CheckResourceProcessor,
        scheduler_cmds.CancelResourceProcessor,
        scheduler_cmds.StartJobProcessor,
        training_cmds.DeployProcessor,
        training_cmds.AbortAppProcessor,
        training_cmds.NotifyJobStatusProcessor,
    )
    processors = [JobRequestProcessor(kind()) for kind in kept]
    ClientRequestProcessors.request_processors[:] = processors


def reject_revoked() -> None:
    """Make the server check certificates against the revocation list in its kit."""
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
        return _command(fl_ctx, [__spec__.name, "job"], get_client_job_args(False, False))


class ServerLauncher(ServerProcessJobLauncher):  # type: ignore[misc]
    """Starts the server's job as the engine's own program."""

    def get_command(self, job_meta: Any, fl_ctx: Any) -> str:
        return _command(fl_ctx, [SERVER_JOB], get_server_job_args(False, False))


def _command(fl_ctx: Any, program: list[str], names: list[str]) -> str:
    """The engine's command line, safe for spaces in paths and without the working folder (-P)."""
    given = fl_ctx.get_prop(FLContextKey.JOB_PROCESS_ARGS)
    words = [sys.executable, "-P", "-m", *program]
    for name in names:
        if given.get(name):
            words += map(str, given[name])
    option, values = given[JobProcessArgs.OPTIONS]
    return shlex.join([*words, option, *values.split()])


if __name__ == "__main__":
    main()
