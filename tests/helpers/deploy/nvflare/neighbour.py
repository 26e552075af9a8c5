"""A site's engine that, once the server has let it in, asks other sites for their private keys.

Run as the engine is, with one more argument before the engine's own: the file that gets what the
sites said, by name. Who may ask is what the engine's headers say, so it says that it is anybody.
"""

import json
import runpy
import sys
from pathlib import Path
from typing import Any

from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey
from nvflare.private.admin_defs import Message
from nvflare.private.defs import CellChannel, RequestHeader, SysCommandTopic, new_cell_message
from nvflare.private.fed.client.fed_client import FederatedClient

# Seconds that a site has for an answer that it should not give.
SECONDS = 8.0


def ask(cell: Any, site: str) -> str:
    """What a site says to ``cat startup/client.key``."""
    asked = Message(topic=SysCommandTopic.SHELL, body="cat startup/client.key")
    asked.set_header(RequestHeader.USER_ROLE, "super")
    reply = cell.send_request(
        channel=CellChannel.CLIENT_MAIN,
        topic=SysCommandTopic.SHELL,
        target=site,
        request=new_cell_message({}, asked),
        timeout=SECONDS,
    )
    said = reply.payload.body if isinstance(reply.payload, Message) else reply.payload
    return f"{reply.get_header(MessageHeaderKey.RETURN_CODE)}: {said}"


def main() -> None:
    """Be an engine, and ask."""
    out = Path(sys.argv.pop(1))
    sites = sys.argv.pop(1).split(",")
    begin = FederatedClient.start_heartbeat

    def start(self: Any, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        said = {site: ask(self.cell, site) for site in sites}
        out.with_suffix(".part").write_text(json.dumps(said))
        out.with_suffix(".part").replace(out)

    FederatedClient.start_heartbeat = start
    runpy.run_module("nvflare.private.fed.app.client.client_train", run_name="__main__")


if __name__ == "__main__":
    main()
