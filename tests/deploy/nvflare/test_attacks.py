"""Attacks on a site through the engine, really run: each fails here, and succeeds undefended.

Site a is as everybody's; site b and the server run the engine with all of its powers, so the server
helps whoever attacks. A third site, which the coordinator adds, turns out to be curious.
"""

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

pytest.importorskip("nvflare")

from helpers.deploy.nvflare.unguarded import open_up
from helpers.nets import write_tables
from helpers.waiting import wait_until

from fedlasso import FedLassoError
from fedlasso.deploy.kit import find_unexpected, read_kit, seal_kit
from fedlasso.deploy.nvflare.engine import check_server, find_user, process_tree
from fedlasso.deploy.nvflare.job import write_job
from fedlasso.deploy.nvflare.line import Console, connect
from fedlasso.deploy.nvflare.local import LocalFederation, enrol
from fedlasso.deploy.nvflare.project import add_sites, revoke_site, write_settings
from fedlasso.deploy.nvflare.restrictions import is_allowed

# The engine and its libraries warn of things that are not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore")
TESTS = str(Path(__file__).parents[2])
FOUND = {"PYTHONPATH": os.pathsep.join(filter(None, [TESTS, os.environ.get("PYTHONPATH")]))}
NOBODY = "nobody"
INTRUDER = "daemon"
SECRET = "PRIVATE KEY"
SHOWN = "ssl_private_key"


def can_run(name: str) -> bool:
    """Whether we are root, and another user can run this Python with our package."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kit.json").touch()
        try:
            find_user(name, Path(folder))
        except FedLassoError:
            return False
    return True


def plant(kit: Path) -> None:
    """Have a kit name a class that runs in the site's engine."""
    told_of = read_kit(kit)
    with tempfile.TemporaryDirectory() as scratch:
        write_settings(Path(scratch), told_of)
        settings = json.loads((Path(scratch) / "local" / "resources.json").read_text())
        path = "helpers.deploy.nvflare.planted.Planted"
        settings["components"].append({"id": "planted", "path": path, "args": {}})
        (kit / "local").mkdir()
        (kit / "local" / "resources.json").write_text(json.dumps(settings))
    seal_kit(kit, told_of)


class Mixed(LocalFederation):
    """A federation of which some participants run the engine with all of its powers."""

    def __init__(self, folder: Path, tables: dict[str, Path]) -> None:
        super().__init__(folder, tables)
        self.open = {"server", "b"}
        server = read_kit(folder / "server", "server")
        open_up(folder / "server")
        seal_kit(folder / "server", server)
        # What came with the kits names a class of the coordinator's, and their seals are right.
        self.planted = folder.with_name("planted")
        for name in ("a", "b"):
            plant(self.kit(name))
        for name in ("a", "b", "server"):
            self.environments[name] = FOUND | {"PLANTED": str(self.planted)}

    def start_site(self, name: str) -> None:
        """Start a site; the engine of site a runs as a user who can read nothing, if it can."""
        given = ["--engine-user", NOBODY] if name == "a" and can_run(NOBODY) else []
        self._start(name, "site", "start", self.kit(name), self._tables[name], *given)

    def _start(self, name: str, *command: object) -> None:
        self.program = (
            "-m",
            "helpers.deploy.nvflare.unguarded" if name in self.open else "fedlasso",
        )
        super()._start(name, *command)


@pytest.fixture(scope="module")
def local() -> Iterator[Mixed]:
    # Other users can reach this folder, so that only the kits' own modes keep them out.
    base = Path(tempfile.mkdtemp(prefix="fedlasso-"))
    base.chmod(0o755)
    tables = write_tables(base)
    for table in tables.values():
        table.chmod(0o600)
    try:
        with Mixed(base / "project", {"a": tables["a"], "b": tables["b"]}) as federation:
            yield federation
    finally:
        shutil.rmtree(base)


def test_a_kit_runs_no_code_at_a_site(local: Mixed) -> None:
    started = {site: local.planted.with_suffix(f".{site}").exists() for site in ("a", "b")}
    assert started == {"a": False, "b": True}
    odd = find_unexpected(local.kit("a"), "a")
    assert odd == ["local"]


def test_the_coordinator_runs_no_code_at_a_site(local: Mixed, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    code = f"import os\nopen(f'{marks}/' + os.getcwd().replace('/', '_'), 'w').close()\n"
    ended = {}
    with Console(local.folder) as console:
        for site in ("a", "b"):
            job = tmp_path / site
            write_job(job, str(tmp_path / "nobody"), [site])
            custom = job / "app" / "custom"
            custom.mkdir()
            (custom / "sitecustomize.py").write_text(code)
            number = console.call("submit_job", str(job))

            def has_ended(number: str = number) -> bool:
                return str(console.call("get_job_status", number)).startswith("FINISHED")

            wait_until(has_ended, "the end of a job that is refused or fails")
            ended[site] = str(console.call("get_job_status", number))
    places = {site: str(local.kit(site).resolve() / "engine") for site in ("a", "b")}
    marked = {site: (marks / place.replace("/", "_")).exists() for site, place in places.items()}
    assert marked == {"a": False, "b": True}
    assert ended["a"] == "FINISHED:FAILED_TO_RUN"
    log = (local.folder / "server" / "engine" / "log.txt").read_text()
    assert "a: this site runs only fedlasso's own job" in log


def read_remotely(console: Console, site: str) -> str:
    """What the coordinator is told when it asks for a site's settings: the engine shows no key."""
    try:
        return str(console._session.cat_target(site, file="startup/fed_client.json"))
    except Exception as error:
        return str(error)


def test_the_coordinator_has_no_shell_at_a_site(local: Mixed) -> None:
    with Console(local.folder) as console:
        assert SHOWN not in read_remotely(console, "a")
        assert SHOWN in read_remotely(console, "b")


def listen_port(local: Mixed, site: str) -> int:
    """The port at which a site's engine listens for its own jobs."""
    engine = psutil.Process(local.processes[site].pid).children()[0]
    (port,) = [c.laddr.port for c in engine.net_connections("tcp") if c.status == "LISTEN"]
    return int(port)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user of the machine")
def test_another_user_of_the_machine_is_told_nothing(local: Mixed) -> None:
    reported = {}
    for site in ("a", "b"):
        port = listen_port(local, site)
        kit = str(local.kit(site))
        command = ["helpers.deploy.nvflare.intruder", INTRUDER, str(port), site, kit]
        ended = subprocess.run(
            [sys.executable, "-m", *command], env=os.environ | FOUND,
            capture_output=True, text=True,
        )  # fmt: skip
        reported[site] = ended.stdout
        assert "socket: PermissionError" in ended.stdout, ended.stderr
        assert "engine: " in ended.stdout, ended.stderr
    assert SECRET not in reported["a"]
    assert SECRET in reported["b"]


def opens(path: Path, user: pwd.struct_passwd) -> bool:
    """Whether a user can read a file."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
            os.close(os.open(path, os.O_RDONLY))
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def test_the_engine_runs_as_a_user_who_can_read_nothing(local: Mixed) -> None:
    kit = local.kit("a")
    if not can_run(NOBODY):
        # Where Python lies in a folder that others may not enter, that is said beforehand.
        with pytest.raises(FedLassoError, match=r"needs root|cannot run .* with fedlasso; allow"):
            find_user(NOBODY, kit)
        return
    nobody = pwd.getpwnam(NOBODY)
    with connect(local.folder, ["a"]) as network:
        network.introduce()
        assert network.introductions[0].rows == 120
        command, *engine = process_tree(local.processes["a"])
        assert command.uids().real == 0
        # The engine and its job.
        assert [process.uids().real for process in engine] == [nobody.pw_uid] * 2
    for kept in (local._tables["a"], kit / "books" / "audit.jsonl", kit / "books" / "key",
                 kit / "startup" / "client.key", kit / "kit.json"):  # fmt: skip
        assert kept.exists()
        assert not opens(kept, nobody)
    # It needs the certificate's key to talk to the server, and has a copy of its own.
    assert opens(kit / "engine" / "startup" / "client.key", nobody)


def ask_neighbours(local: Mixed, kit: Path, out: Path) -> dict[str, str]:
    """What the curious site is told by the others."""
    options = ["--set", "secure_train=true", "org=fedlasso", "config_folder=", "uid=curious"]
    command = [str(out), "a,b", "-m", str(kit), "-s", "fed_client.json", *options]
    with (kit / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "helpers.deploy.nvflare.neighbour", *command],
            env=os.environ | FOUND, stdout=said, stderr=said,
        )  # fmt: skip
    try:
        wait_until(lambda: out.exists() or process.poll() is not None, "what the sites say")
    finally:
        process.kill()
        process.wait()
    reported: dict[str, str] = json.loads(out.read_text())
    return reported


def test_a_site_reads_nothing_of_another(local: Mixed, tmp_path: Path) -> None:
    add_sites(local.folder, ["curious", "former"])
    kit, former = tmp_path / "curious", tmp_path / "former"
    enrol(local.folder, {"curious": kit})
    enrol(local.folder, {"former": former})
    write_settings(kit, read_kit(kit))
    reported = ask_neighbours(local, kit, tmp_path / "helped")
    assert SECRET not in reported["a"]
    assert SECRET in reported["b"]
    check_server(former, read_kit(former))
    revoke_site(local.folder, "former")
    # A server as everybody's does not even pass it on.
    local.kill("server")
    local.open.remove("server")
    server = local.folder / "server"
    told_of = read_kit(server, "server")
    write_settings(server, told_of)
    seal_kit(server, told_of)
    local.start_server()
    with Console(local.folder) as console:
        console.wait_for_sites(["a", "b"], 300.0)
    reported = ask_neighbours(local, kit, tmp_path / "alone")
    assert SECRET not in reported["a"] + reported["b"]
    # Nor does it let in whom the coordinator has revoked.
    with pytest.raises(FedLassoError, match=r"rejected 'former': .* was revoked"):
        check_server(former, read_kit(former))


@pytest.mark.parametrize(
    ("here", "sender", "origin", "destination", "allowed"),
    [
        ("a", "server", "server", "a", True),
        ("a", "server", "server.job", "a.job", True),
        ("a", "a.job", "a.job", "server.job", True),
        ("a", "a.job", "a.job", "a", True),
        ("a", "server", "b", "a", False),
        ("a", "b", "b", "a", False),
        ("a", "a.job", "server", "a", False),
        ("a", "a.job", "a.job", "b", False),
        ("server", "a", "a", "server.job", True),
        ("server", "server.job", "server.job", "a.job", True),
        ("server", "a", "a", "b", False),
        ("server", "a", "b", "server", False),
        ("server", "a", "server", "b", False),
    ],
)
def test_a_cell_takes_messages_only_from_whom_it_should(
    here: str, sender: str, origin: str, destination: str, allowed: bool
) -> None:
    assert is_allowed(here, sender, origin, destination) is allowed
