"""The engine's programs, restricted to what a fit needs.

`Engine` starts ``python -m fedlasso.deploy.nvflare.program site`` or ``server``; their engines
start ``job`` and ``server-job`` for a fit. Each runs the engine's own program, restricted:

- a site accepts messages from the server only; the server accepts messages in the sender's own
  name, and forwards none between sites;
- a site processes six kinds of requests, all about a job, which must be ours (`job.py`);
- nobody gets a report of settings, connections, processes or statistics;
- the server rejects revoked certificates.

A program that cannot be restricted does not run (`restrictions.py`).
"""

import runpy
import shlex
import sys
from typing import Any

from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.job_launcher_spec import JobProcessArgs
from nvflare.app_common.job_launcher.client_process_launcher import ClientProcessJobLauncher
from nvflare.app_common.job_launcher.server_process_launcher import ServerProcessJobLauncher
from nvflare.utils.job_launcher_utils import get_client_job_args, get_server_job_args

from fedlasso.deploy.nvflare.job import NOT_RESTRICTED
from fedlasso.deploy.nvflare.restrictions import EngineDiffers, restrict

PROGRAMS = {
    "site": "nvflare.private.fed.app.client.client_train",
    "server": "nvflare.private.fed.app.server.server_train",
    "job": "nvflare.private.fed.app.client.worker_process",
    "server-job": "nvflare.private.fed.app.server.runner_process",
}


def main() -> None:
    """Run the engine's program named by the first argument."""
    part = sys.argv.pop(1)
    try:
        restrict(part)
    except EngineDiffers as error:
        print(error, flush=True)
        sys.exit(NOT_RESTRICTED)
    runpy.run_module(PROGRAMS[part], run_name="__main__")


class SiteLauncher(ClientProcessJobLauncher):  # type: ignore[misc]
    """Starts a site's job as our program."""

    def get_command(self, job_meta: Any, fl_ctx: Any) -> str:
        return _command(fl_ctx, [__spec__.name, "job"], get_client_job_args(False, False))


class ServerLauncher(ServerProcessJobLauncher):  # type: ignore[misc]
    """Starts the server's job as our program."""

    def get_command(self, job_meta: Any, fl_ctx: Any) -> str:
        return _command(fl_ctx, [__spec__.name, "server-job"], get_server_job_args(False, False))


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
