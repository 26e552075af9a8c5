"""A project: a server and its sites, each with a sealed kit of certificates."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from fedlasso import __version__
from fedlasso.deploy.nvflare.kit import Kit, read_kit, seal
from fedlasso.errors import FedLassoError
from fedlasso.files import write_atomically

COORDINATOR = "coordinator@fedlasso.org"
# All that a job may run: two classes of ours, two of the engine's.
RELAY = "fedlasso.deploy.nvflare.member.Relay"
MEMBER = "fedlasso.deploy.nvflare.member.Member"
CONTROLLER = "nvflare.collab.runtime.controller.CollabController"
EXECUTOR = "nvflare.collab.runtime.executor.CollabExecutor"


@dataclass(frozen=True)
class Project:
    """Who takes part, and where the server listens."""

    name: str
    host: str
    port: int
    sites: tuple[str, ...]
    version: str


def read_project(folder: Path) -> Project:
    """Read the project in a folder."""
    try:
        return msgspec.json.decode((folder / "project.json").read_bytes(), type=Project)
    except (OSError, ValueError):
        raise FedLassoError(
            f"{folder} holds no project; begin with `fedlasso federation init {folder}`"
        ) from None


@contextlib.contextmanager
def keep_quiet() -> Iterator[None]:
    """Neither prints nor logs of the engine reach the terminal."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def create_project(folder: Path, server: str, sites: Sequence[str]) -> Project:
    """Provision server, coordinator and sites: mutual TLS under one root of their own."""
    host, _, port = server.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise FedLassoError(f"--server {server!r}: give HOST:PORT, e.g. fed.example.org:8443")
    if not re.fullmatch(r"[A-Za-z0-9.-]+", host):
        raise FedLassoError(f"--server {host!r} is not the name of a host")
    if not sites:
        raise FedLassoError("a federation needs at least one --site")
    for site in sites:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,40}", site):
            raise FedLassoError(f"site {site!r}: use letters, digits, - and _")
        if list(sites).count(site) > 1:
            raise FedLassoError(f"two sites are called {site!r}; give each its own name")
    if folder.exists() and any(folder.iterdir()):
        raise FedLassoError(f"{folder} is not empty; choose a new folder for the project")
    name = re.sub(r"[^A-Za-z0-9_-]", "-", folder.resolve().name)[:40] or "project"
    project = Project(name, host, int(port), tuple(sites), __version__)
    with tempfile.TemporaryDirectory() as scratch:
        made = _provision(Path(scratch), project)
        folder.mkdir(parents=True, exist_ok=True)
        _place(made / host, folder / "server", project, host, "server")
        _place(made / COORDINATOR, folder / "coordinator", project, COORDINATOR, "coordinator")
        for site in sites:
            kit = folder / "kits" / site
            _place(made / site, kit, project, site, "site")
            shutil.make_archive(str(kit), "zip", kit.parent, site)
        shutil.copytree(made.parent / "state", folder / "authority")
        (folder / "authority").chmod(0o700)
    write_atomically(folder / "project.json", json.dumps(asdict(project), indent=1).encode())
    write_atomically(folder / "INSTRUCTIONS.md", _instructions("coordinator", project, str(folder)))
    return project


def _provision(scratch: Path, project: Project) -> Path:
    from nvflare.lighter.impl.cert import CertBuilder
    from nvflare.lighter.impl.signature import SignatureBuilder
    from nvflare.lighter.impl.static_file import StaticFileBuilder
    from nvflare.lighter.impl.workspace import WorkspaceBuilder
    from nvflare.lighter.provision import prepare_project
    from nvflare.lighter.provisioner import Provisioner

    port = project.port
    people: list[dict[str, Any]] = [
        {"name": project.host, "type": "server", "fed_learn_port": port, "admin_port": port},
        {"name": COORDINATOR, "type": "admin", "role": "project_admin"},
        *({"name": site, "type": "client"} for site in project.sites),
    ]
    described = {
        "api_version": 3,
        "name": project.name,
        "participants": [{"org": "fedlasso", **person} for person in people],
    }
    workspace = WorkspaceBuilder(["master_template.yml"])
    builders = [workspace, StaticFileBuilder(), CertBuilder(), SignatureBuilder()]
    with keep_quiet():
        Provisioner(str(scratch), builders).provision(prepare_project(described))
    made = scratch / project.name / "prod_00"
    if not made.exists():
        raise FedLassoError("the kits could not be made; is the host's name a proper one?")
    return made


def _place(source: Path, target: Path, project: Project, name: str, role: str) -> None:
    shutil.copytree(source, target)
    if role != "coordinator":
        resources = json.loads((target / "local" / "resources.json.default").read_bytes())
        # Nothing but our four classes may be run by a job, and no log is sent anywhere.
        resources["class_allow_list"] = [RELAY, MEMBER, CONTROLLER, EXECUTOR]
        resources["allow_log_streaming"] = False
        dropped = ("site_log_streamer", "log_receiver")
        resources["components"] = [c for c in resources["components"] if c["id"] not in dropped]
        (target / "local" / "resources.json").write_text(json.dumps(resources, indent=1))
        (target / "INSTRUCTIONS.md").write_bytes(_instructions(role, project, name))
    seal(target, Kit(project.name, name, role, project.host, project.port, {}))


def settle_server(folder: Path) -> Kit:
    """Set the server's patience, keep its working files in its kit, and seal it again."""
    kit = read_kit(folder, "server")
    path = folder / "local" / "resources.json"
    resources = json.loads(path.read_bytes())
    # Seconds after its last sign of life until a site counts as gone.
    resources["servers"][0]["heart_beat_timeout"] = 20
    work = folder.resolve() / "work"
    resources["snapshot_persistor"]["args"]["storage"]["args"]["root_dir"] = str(work / "snapshots")
    components = {c["id"]: c["args"] for c in resources["components"] if "args" in c}
    components["job_manager"]["uri_root"] = str(work / "jobs")
    # Seconds until a job whose site did not answer is tried again.
    components["job_scheduler"]["min_schedule_interval"] = 1
    path.write_text(json.dumps(resources, indent=1))
    seal(folder, kit)
    return kit


def _instructions(role: str, project: Project, name: str) -> bytes:
    text = (files("fedlasso.deploy.nvflare") / "instructions" / f"{role}.md").read_text()
    values = asdict(project) | {"who": name, "sites": ", ".join(project.sites)}
    return text.format(**values).encode()
