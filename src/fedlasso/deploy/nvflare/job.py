"""The engine's job: three JSON files without code. A site runs no other job."""

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

# What the engine's log has once messages are restricted, and the exit code if they cannot be.
IN_FORCE = "the engine is restricted to fedlasso's messages"
NOT_RESTRICTED = 3
# The only classes that a job may run: two of ours, two of the engine's.
RELAY = "fedlasso.deploy.nvflare.member.Relay"
MEMBER = "fedlasso.deploy.nvflare.member.EngineMember"
CONTROLLER = "nvflare.collab.runtime.controller.CollabController"
EXECUTOR = "nvflare.collab.runtime.executor.CollabExecutor"
CLASSES = (RELAY, MEMBER, CONTROLLER, EXECUTOR)

_EXECUTOR = {"id": "executor", "path": EXECUTOR, "args": {"client_obj_id": "member"}}
_CLIENT = {
    "format_version": 2,
    "executors": [{"tasks": ["*"], "executor": _EXECUTOR}],
    "components": [{"id": "member", "path": MEMBER, "args": {}}],
}
_CLIENT_FILE = "config/config_fed_client.json"
# Files that the engine adds to each folder when the coordinator signs a job.
_SIGNED = (".__nvfl_sig.json", ".__nvfl_submitter.crt")
_ALLOWED = {
    "config/",
    _CLIENT_FILE,
    "config/config_fed_server.json",
    *(f"{folder}{name}" for folder in ("", "config/") for name in _SIGNED),
}


def write_job(folder: Path, address: str, sites: Sequence[str]) -> None:
    """Write a job whose relay connects to the coordinator at an address."""
    server = {
        "format_version": 2,
        # Seconds between a site's queries whether the job has started or ended.
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
    """Whether an archive sent to a site is exactly this job."""
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            names = archive.namelist()
            if len(set(names)) < len(names) or not set(names) <= _ALLOWED:
                return False
            return bool(json.loads(archive.read(_CLIENT_FILE)) == _CLIENT)
    except (KeyError, ValueError, zipfile.BadZipFile):
        return False
