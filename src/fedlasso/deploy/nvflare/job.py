"""The engine's job: three JSON files and no code. A site runs this one and no other."""

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

# All that a job may run: two classes of ours, two of the engine's.
RELAY = "fedlasso.deploy.nvflare.member.Relay"
MEMBER = "fedlasso.deploy.nvflare.member.EngineMember"
CONTROLLER = "nvflare.collab.runtime.controller.CollabController"
EXECUTOR = "nvflare.collab.runtime.executor.CollabExecutor"
CLASSES = (RELAY, MEMBER, CONTROLLER, EXECUTOR)

_CLIENT = {
    "format_version": 2,
    "executors": [
        {
            "tasks": ["*"],
            "executor": {"id": "executor", "path": EXECUTOR, "args": {"client_obj_id": "member"}},
        }
    ],
    "components": [{"id": "member", "path": MEMBER, "args": {}}],
}
_CLIENT_FILE = "config/config_fed_client.json"
# Beside our two files, what the engine adds to each folder when the coordinator signs a job.
_SIGNED = (".__nvfl_sig.json", ".__nvfl_submitter.crt")
_ALLOWED = {
    "config/",
    _CLIENT_FILE,
    "config/config_fed_server.json",
    *(f"{folder}{name}" for folder in ("", "config/") for name in _SIGNED),
}


def write_job(folder: Path, address: str, sites: Sequence[str]) -> None:
    """Write a job whose relay finds the coordinator at an address."""
    server = {
        "format_version": 2,
        # Sites ask so often whether the job has begun, and whether it is over.
        "server": {"task_request_interval": 0.5},
        "workflows": [{"id": "controller", "path": CONTROLLER, "args": {"server_obj_id": "relay"}}],
        "components": [{"id": "relay", "path": RELAY, "args": {"address": address}}],
    }
    meta = {
        "name": "fedlasso",
        "resource_spec": {},
        "min_clients": len(sites),
        "mandatory_clients": list(sites),
        "deploy_map": {"app": ["server", *sites]},
    }
    config = folder / "app" / "config"
    config.mkdir(parents=True)
    (folder / "meta.json").write_text(json.dumps(meta))
    (config / "config_fed_server.json").write_text(json.dumps(server))
    (folder / "app" / _CLIENT_FILE).write_text(json.dumps(_CLIENT))


def is_ours(packed: bytes) -> bool:
    """Whether what was sent to a site is this job: nothing more in it, and nothing else."""
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            names = archive.namelist()
            if len(set(names)) < len(names) or not set(names) <= _ALLOWED:
                return False
            return bool(json.loads(archive.read(_CLIENT_FILE)) == _CLIENT)
    except (KeyError, ValueError, zipfile.BadZipFile):
        return False
