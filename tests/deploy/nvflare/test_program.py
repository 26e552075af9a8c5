"""What a site does for the server, and which job it runs."""

import io
import json
import pkgutil
import shutil
import threading
import zipfile
from multiprocessing.connection import Listener
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("nvflare")

from nvflare.private.admin_defs import Message, MsgHeader, ReturnCode
from nvflare.private.defs import RequestHeader
from nvflare.private.fed.utils.app_deployer import AppDeployer

from fedlasso.deploy.network import BoundedLine
from fedlasso.deploy.nvflare.job import CLASSES, is_ours, write_job
from fedlasso.deploy.nvflare.line import JobLine
from fedlasso.deploy.nvflare.member import Relay
from fedlasso.deploy.nvflare.restrictions import JobRequestProcessor

JOB = "24de69e4-9ee5-4520-a625-f30ff5170967"
CLIENT = "config/config_fed_client.json"


def pack(folder: Path) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, str(path.relative_to(folder)))
    return packed.getvalue()


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """What the engine sends to a site of our job."""
    write_job(tmp_path / "job", "address", ["a"])
    return tmp_path / "job" / "app"


def test_every_class_that_a_job_may_run_exists() -> None:
    assert all(isinstance(pkgutil.resolve_name(path), type) for path in CLASSES)


def test_our_job_is_ours_and_no_other(app: Path) -> None:
    assert is_ours(pack(app))
    for name in ("custom/sitecustomize.py", "config/config_fed_client.yml", "../books/key"):
        packed = io.BytesIO(pack(app))
        with zipfile.ZipFile(packed, "a") as archive:
            archive.writestr(name, "")
        assert not is_ours(packed.getvalue())
    settings = json.loads((app / CLIENT).read_text())
    settings["components"][0]["path"] = "os.system"
    changed = json.dumps(settings)
    # The same name twice: who reads the first and who the last would differ.
    packed = io.BytesIO(pack(app))
    with zipfile.ZipFile(packed, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(CLIENT, changed)
    assert not is_ours(packed.getvalue())
    (app / CLIENT).write_text(changed)
    assert not is_ours(pack(app))
    (app / CLIENT).unlink()
    assert not is_ours(pack(app))
    assert not is_ours(b"no archive")


class DeployProcessor:
    """Takes a job as the engine's does: into a folder called as the job is."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace

    def get_topics(self) -> list[str]:
        return ["train.deploy"]

    def process(self, req: Any, app_ctx: Any) -> str:
        job = req.get_header(RequestHeader.JOB_ID)
        place = SimpleNamespace(
            get_run_dir=lambda name: str(self.workspace / name),
            get_app_dir=lambda name: str(self.workspace / name / "app"),
            get_job_meta_path=lambda name: str(self.workspace / name / "meta.json"),
            site_name="a",
        )
        AppDeployer().deploy(place, job, {}, "app", req.body, None)
        return "taken"


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """An engine's folder beside a site's books, with the folder of a job that is over."""
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "audit.jsonl").write_text("what has left")
    folder = tmp_path / "engine"
    (folder / JOB.replace("2", "3")).mkdir(parents=True)
    (folder / "startup").mkdir()
    return folder


def ask(processor: Any, engine: Path, app: Path, job: str, reported: str | None = None) -> str:
    request = Message("train.deploy", pack(app))
    request.set_header(RequestHeader.JOB_ID, job)
    request.set_header(RequestHeader.JOB_META, {"job_id": reported or job})
    context = SimpleNamespace(
        args=SimpleNamespace(workspace=str(engine)),
        client_executor=SimpleNamespace(run_processes={}),
    )
    reply = processor.process(request, context)
    return reply if isinstance(reply, str) else str(reply.get_header(MsgHeader.RETURN_CODE))


@pytest.mark.filterwarnings("ignore")
def test_the_identity_of_a_job_leads_out_of_no_folder(engine: Path, app: Path) -> None:
    books = engine.parent / "books" / "audit.jsonl"
    inner = DeployProcessor(engine)
    guarded = JobRequestProcessor(inner)
    assert ask(guarded, engine, app, "../books") == ReturnCode.ERROR
    assert ask(guarded, engine, app, JOB, reported="../books") == ReturnCode.ERROR
    assert books.exists()
    assert ask(guarded, engine, app, JOB) == "taken"
    assert (engine / JOB / "app" / CLIENT).exists()
    # The job before is over: its folder is gone, and nothing else.
    assert sorted(path.name for path in engine.iterdir()) == [JOB, "startup"]
    shutil.rmtree(app / "config")
    assert ask(guarded, engine, app, JOB) == ReturnCode.ERROR
    # The engine by itself removes whatever folder the server names.
    ask(inner, engine, app, "../books")
    assert not books.exists()


class Talker(Relay):
    """A relay to a site whose replies have a million bytes."""

    def _ask(self, head: Any, data: bytes) -> list[tuple[str, str, bytes]]:
        return [("a", "reply", bytes(1_000_000))]


class Loading:
    """A connection that notes the sizes that it was asked to load."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.sizes: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)

    def recv_bytes(self, most: int | None = None) -> bytes:
        data: bytes = self.connection.recv_bytes(most)
        self.sizes.append(len(data))
        return data


def test_a_long_reply_is_not_loaded(tmp_path: Path) -> None:
    address = str(tmp_path / "line")
    with Listener(address, family="AF_UNIX") as listener:
        relay = threading.Thread(target=Talker(address).run)
        relay.start()
        with listener.accept() as accepted:
            loading: Any = Loading(accepted)
            line = JobLine(loading, SimpleNamespace(connected=lambda: {"a": 0.0}))  # type: ignore[arg-type]
            assert isinstance(line, BoundedLine)
            line.limit = 1000
            (answer,) = line.exchange(["a"], b"", 30.0)
            assert len(answer.data) == 1001
            assert max(loading.sizes) == 1001
            line.limit = None
            (answer,) = line.exchange(["a"], b"", 30.0)
            assert len(answer.data) == 1_000_000
        relay.join()
