"""Attacks with a kit: whoever packs it tries to decide more than names, address and certificate."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("nvflare")

from helpers.nets import run
from nvflare.fuel.f3.cellnet.core_cell import CoreCell
from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey, MessageType
from nvflare.fuel.f3.cellnet.fqcn import FqcnInfo
from nvflare.fuel.f3.cellnet.registry import Callback
from nvflare.fuel.f3.drivers import net_utils, tcp_driver
from nvflare.fuel.f3.message import Message

from fedlasso import FedLassoError
from fedlasso.deploy import authority
from fedlasso.deploy.kit import PEERS, Kit, accept, find_unexpected, read_kit, request, seal_kit
from fedlasso.deploy.nvflare import restrictions
from fedlasso.deploy.nvflare.engine import Engine
from fedlasso.deploy.nvflare.job import IN_FORCE
from fedlasso.deploy.nvflare.project import create_project, sign_request, write_settings
from fedlasso.governance.identity import fingerprint_of

pytestmark = [pytest.mark.standard, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    create_project(tmp_path / "trial", "localhost:8443", ["north", "south"])
    return tmp_path


def unpack(base: Path, site: str = "north") -> Path:
    shutil.unpack_archive(base / "trial" / "kits" / f"{site}.zip", base)
    return base / site


def test_a_kit_has_names_address_and_root_certificate_only(base: Path) -> None:
    kit = unpack(base)
    files = sorted(str(p.relative_to(kit)) for p in kit.rglob("*") if p.is_file())
    assert files == ["INSTRUCTIONS.md", "kit.json", "startup/rootCA.pem"]


def write_peers(kit: Path) -> None:
    (kit / "books").mkdir()
    (kit / PEERS).write_text(json.dumps({"south": "00" * 32}))


def write_secret(kit: Path) -> None:
    (kit / "books").mkdir()
    (kit / "books" / "key").write_bytes(b"known")


def write_key(kit: Path) -> None:
    authority.make_key(kit / "startup" / "client.key")


def write_link(kit: Path) -> None:
    (kit / "engine.log").symlink_to(kit.parent / "precious")


def write_module(kit: Path) -> None:
    (kit / "numpy.py").write_text("")


@pytest.mark.parametrize("plant", [write_peers, write_secret, write_key, write_link, write_module])
def test_a_kit_that_came_with_more_is_refused_before_a_key_is_made(base: Path, plant: Any) -> None:
    kit = unpack(base)
    told_of = read_kit(kit)
    plant(kit)
    # Whoever packs a kit seals it.
    if plant is not write_link:
        seal_kit(kit, told_of)
    with pytest.raises(FedLassoError, match=r"more than a kit that is sent|is a symbolic link"):
        request(kit)
    assert not (kit / "north.csr").exists()


def test_keys_in_a_kit_would_have_been_used(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedlasso.deploy.kit.find_unexpected", lambda *_, **__: [])
    kit, south = unpack(base), unpack(base, "south")
    project = base / "trial"
    sign_request(project, request(south)[0])
    write_peers(kit)
    sham = authority.read_certificate(project / "kits" / "south.crt")
    (kit / PEERS).write_text(json.dumps({"south": fingerprint_of(sham)}))
    signed, _ = sign_request(project, request(kit)[0])
    asked: list[str] = []
    # Nobody is asked about the key of a site that the coordinator may have invented.

    def ask(name: str, *_: object) -> bool:
        asked.append(name)
        return False

    _, peers = accept(kit, signed, ask)
    assert (peers, asked) == (["south"], [])


@pytest.mark.parametrize(
    "changes",
    [{"name": "../north"}, {"host": "a b"}, {"port": 0}, {"project": "{log}"}, {"host": "\x1b[2J"}],
)
def test_names_and_address_are_no_more_than_that(base: Path, changes: dict[str, Any]) -> None:
    kit = unpack(base)
    told_of = vars(read_kit(kit)) | changes
    seal_kit(kit, Kit(**told_of))
    with pytest.raises(FedLassoError, match=r"names or address in kit.json are not valid"):
        read_kit(kit)


def enrolled(base: Path) -> Path:
    kit = unpack(base)
    signed, _ = sign_request(base / "trial", request(kit)[0])
    accept(kit, signed, lambda *_: True)
    return kit


def test_a_site_writes_its_own_settings(base: Path, tmp_path: Path) -> None:
    kit = enrolled(base)
    told_of = read_kit(kit)
    (kit / "local").mkdir()
    (kit / "local" / "resources.json").write_text('{"components": [{"path": "os.system"}]}')
    (kit / "startup" / "fed_client.json").write_text("{}")
    seal_kit(kit, told_of)
    folder = tmp_path / "engine"
    engine = SimpleNamespace(folder=folder, _site=True)
    Engine._make_folder(engine, kit, told_of)  # type: ignore[arg-type]
    write_settings(tmp_path / "ours", told_of)
    for path in (tmp_path / "ours").rglob("*.json"):
        own = folder / path.relative_to(tmp_path / "ours")
        assert own.read_bytes() == path.read_bytes()
    sent = {"client.crt", "client.key", "rootCA.pem", "fed_client.json"}
    assert {path.name for path in (folder / "startup").iterdir()} == sent


def test_check_and_accept_name_what_a_kit_should_not_have(
    base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kit = enrolled(base)
    assert find_unexpected(kit, "north") == []
    (kit / "local").mkdir()
    (kit / "startup" / "fed_client.json").write_text("{}")
    seal_kit(kit, read_kit_unsealed(kit))
    data = base / "north.csv"
    data.write_text("x,y\n" + "1,2\n2,1\n" * 20)
    assert run("site", "check", kit, data) == 0
    named = "Not part of a kit, and not used: local, startup/fed_client.json"
    assert named in capsys.readouterr().out
    assert run("site", "accept", kit, base / "trial" / "kits" / "north.crt") == 0
    assert named in capsys.readouterr().out


def read_kit_unsealed(kit: Path) -> Kit:
    return Kit(**json.loads((kit / "kit.json").read_text()))


def make_message(**headers: str) -> Any:
    return Message(headers={MessageHeaderKey.MSG_TYPE: MessageType.REQ} | headers)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The engine's functions as they were, once the test is over."""
    for owner, name in ((CoreCell, "process_message"), (CoreCell, "_process_request")):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    for module in (net_utils, tcp_driver):
        monkeypatch.setattr(module, "get_ssl_context", net_utils.get_ssl_context)
    return monkeypatch


def make_cell() -> Any:
    cell = MagicMock()
    cell.my_info = FqcnInfo("a")
    cell.get_fqcn.return_value = "a"
    cell.in_filter_reg.find.return_value = None
    cell.message_interceptor = None
    cell._process_request.return_value = None
    # The functions that are attacked are the engine's own.
    cell._process_received_msg = lambda *given: CoreCell._process_received_msg(cell, *given)
    return cell


def test_a_message_makes_a_site_connect_nowhere(engine: Any) -> None:
    headers = {
        MessageHeaderKey.ORIGIN: "server", MessageHeaderKey.DESTINATION: "a",
        MessageHeaderKey.FROM_CELL: "b", MessageHeaderKey.CONN_URL: "tcp://10.0.0.5:5432",
    }  # fmt: skip
    sender = SimpleNamespace(name="server")
    cell = make_cell()
    CoreCell.process_message(cell, sender, None, 0, make_message(**headers))
    cell._add_adhoc_connector.assert_called_once_with("server", "tcp://10.0.0.5:5432")
    restrictions.check_senders()
    cell = make_cell()
    CoreCell.process_message(cell, sender, None, 0, make_message(**headers))
    cell._process_request.assert_called_once()
    cell._add_adhoc_connector.assert_not_called()


def test_nobody_gets_a_report_of_the_engine(engine: Any) -> None:
    cell = MagicMock()
    cell.req_reg.find.return_value = Callback(MagicMock(), (), {})
    cell.in_req_filter_reg.find.return_value = None
    cell._try_cb.side_effect = lambda message, callback: callback(message)
    channel = {MessageHeaderKey.CHANNEL: restrictions.REPORTS}
    asked = [
        make_message(**channel, **{MessageHeaderKey.TOPIC: topic})
        for topic in ("process_info", "config_vars", "msg_stats", "anything")
    ]
    for message in asked:
        CoreCell._process_request(cell, "server", message)
    assert cell._try_cb.call_count == len(asked)
    restrictions.refuse_reports()
    cell._try_cb.reset_mock()
    assert [CoreCell._process_request(cell, "server", message) for message in asked] == [None] * 4
    cell._try_cb.assert_not_called()


def test_an_engine_that_cannot_be_restricted_does_not_run(engine: Any) -> None:
    def process_message(self: Any, message: Any) -> None: ...

    engine.setattr(CoreCell, "process_message", process_message)
    with pytest.raises(restrictions.EngineDiffers, match=r"CoreCell.process_message differs"):
        restrictions.restrict("site")
    engine.delattr(CoreCell, "_process_request")
    with pytest.raises(restrictions.EngineDiffers, match=r"CoreCell._process_request differs"):
        restrictions.restrict("job")


def test_a_function_is_replaced_wherever_the_engine_has_it(engine: Any) -> None:
    original = net_utils.get_ssl_context
    assert tcp_driver.get_ssl_context is original
    restrictions.reject_revoked()
    assert tcp_driver.get_ssl_context is net_utils.get_ssl_context is not original
    # A place that was missed is found.
    engine.setattr(tcp_driver, "get_ssl_context", original)
    with pytest.raises(restrictions.EngineDiffers, match=r"get_ssl_context differs"):
        restrictions.check_replaced(
            net_utils, "get_ssl_context", original, net_utils.get_ssl_context
        )


def test_a_site_without_restrictions_is_not_ready(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("Successfully registered client")
    engine: Any = SimpleNamespace(_log=log, process=MagicMock())
    engine.process.pid = 2**22 + 1
    with pytest.raises(FedLassoError, match=r"does not pass messages through the restrictions"):
        Engine._check_restricted(engine)
    log.write_text(f"{IN_FORCE}\nSuccessfully registered client")
    Engine._check_restricted(engine)
