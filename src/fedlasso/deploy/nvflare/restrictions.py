"""Restrictions of the engine's own program, which replace some of its functions.

A function that another version names or calls differently would leave the engine unrestricted, so
each replacement is checked: the function must have the expected parameters, and nothing of the
engine may still refer to it. The first message that passes is logged as the sign that all messages
do; a site is not ready without it.
"""

import inspect
import logging
import shutil
import ssl
import sys
import uuid
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from nvflare.fuel.f3.cellnet.core_cell import CoreCell
from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey
from nvflare.fuel.f3.drivers import net_utils
from nvflare.private.admin_defs import error_reply
from nvflare.private.defs import RequestHeader
from nvflare.private.fed.client.admin import RequestProcessor

from fedlasso.deploy.nvflare.job import IN_FORCE, is_ours

# The engine's channel for reports about its processes: settings, connections, message statistics.
REPORTS = "_net_manager"
_log = logging.getLogger(__name__)


class EngineDiffers(Exception):
    """The engine is not the one that the restrictions were written for."""


def restrict(part: str) -> None:
    """Restrict this process: a ``site``, a ``server``, or the ``job`` of one."""
    refuse_reports()
    # The server passes on the messages of sites to its own job.
    if part != "server-job":
        check_senders()
    if part == "site":
        restrict_requests()
    if part == "server":
        reject_revoked()


def replace_function(owner: Any, name: str, parameters: str, wrap: Callable[[Any], Any]) -> None:
    """Wrap a function of the engine everywhere, or raise an error."""
    original = getattr(owner, name, None)
    found = " ".join(inspect.signature(original).parameters) if callable(original) else "nothing"
    if found != parameters:
        _differs(f"{owner.__name__}.{name}")
    replacement = wrap(original)
    setattr(owner, name, replacement)
    for module in _engine_modules():
        for alias, value in list(vars(module).items()):
            if value is original:
                setattr(module, alias, replacement)
    check_replaced(owner, name, original, replacement)


def check_replaced(owner: Any, name: str, original: Any, replacement: Any) -> None:
    """Raise an error if anything of the engine still refers to a replaced function."""
    kept = [m.__name__ for m in _engine_modules() if any(v is original for v in vars(m).values())]
    if getattr(owner, name) is not replacement or kept:
        _differs(f"{owner.__name__}.{name}")


def _engine_modules() -> list[Any]:
    return [m for n, m in list(sys.modules.items()) if n.startswith("nvflare") and m is not None]


def _differs(what: str) -> None:
    found = f"the installed nvflare {version('nvflare')} cannot be restricted ({what} differs)"
    raise EngineDiffers(f"{found}; install the version that this fedlasso requires")


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
    seen: list[bool] = []

    def wrap(process: Callable[..., None]) -> Callable[..., None]:
        def check(self: Any, endpoint: Any, connection: Any, app_id: Any, message: Any) -> None:
            if not seen:
                seen.append(True)
                _log.warning(IN_FORCE)
            origin = str(message.get_header(MessageHeaderKey.ORIGIN))
            destination = str(message.get_header(MessageHeaderKey.DESTINATION))
            if is_allowed(self.get_fqcn(), endpoint.name, origin, destination):
                # The cell would connect to whatever address a forwarded message names.
                message.headers.pop(MessageHeaderKey.CONN_URL, None)
                process(self, endpoint, connection, app_id, message)
            else:
                _log.warning("refused: %s sent as %s to %s", endpoint.name, origin, destination)

        return check

    parameters = "self endpoint connection app_id message"
    replace_function(CoreCell, "process_message", parameters, wrap)


def refuse_reports() -> None:
    """Answer no request for the engine's settings, connections, processes or statistics.

    Requests inside a bulk message come through here too.
    """

    def wrap(process: Callable[..., Any]) -> Callable[..., Any]:
        def check(self: Any, origin: str, message: Any) -> Any:
            if message.get_header(MessageHeaderKey.CHANNEL) == REPORTS:
                _log.warning("refused: %s requested a report of the engine", origin)
                return None
            return process(self, origin, message)

        return check

    replace_function(CoreCell, "_process_request", "self origin message", wrap)


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
    processors = ClientRequestProcessors.request_processors
    # The engine's own list must be the one that is emptied, and have had these.
    if not isinstance(processors, list) or {*kept} - {type(each) for each in processors}:
        _differs("ClientRequestProcessors.request_processors")
    processors[:] = [JobRequestProcessor(kind()) for kind in kept]


def reject_revoked() -> None:
    """Make the server check certificates against the revocation list in its kit."""

    def wrap(make: Callable[..., Any]) -> Callable[..., Any]:
        def check(params: dict[str, Any], ssl_server: bool) -> Any:
            context = make(params, ssl_server)
            if context is not None and ssl_server:
                revoked = Path(params["ca_cert"]).with_name("revoked.pem")
                context.load_verify_locations(revoked)
                context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
            return context

        return check

    replace_function(net_utils, "get_ssl_context", "params ssl_server", wrap)
