"""What a kit tells the engine: where the server is, what may run, and that nothing else may."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fedlasso.deploy.nvflare.job import CLASSES

_PROGRAM = "fedlasso.deploy.nvflare.program"
# Bytes of an engine's log, of which one older one is kept.
LOG_BYTES = 2_000_000
LOG = "log.txt"
_ENGINE = "nvflare.app_common"

_NOTHING = dict.fromkeys(
    ("view", "clone_job", "download_job", "operate", "shell_commands", "byoc"), "none"
)
# At a site the coordinator's jobs are started and stopped; which job, `program.py` looks at.
_SITE_RIGHTS = {"project_admin": _NOTHING | {"submit_job": "any", "manage_job": "any"}}
# At the server the coordinator looks at them too.
_SERVER_RIGHTS = {
    "project_admin": _NOTHING | {"submit_job": "any", "manage_job": "n:submitter", "view": "any"}
}
# Processes of one engine talk to each other with its certificate: nobody else on the machine can.
_INTERNAL = {
    "allow_adhoc_conns": False,
    "internal": {
        "scheme": "tcp",
        "resources": {"host": "localhost", "connection_security": "mtls"},
    },
}


def _log_config() -> dict[str, Any]:
    formatter = {
        "()": "nvflare.fuel.utils.log_utils.BaseFormatter",
        "fmt": "%(asctime)s - %(name)s - %(levelname)s - %(fl_ctx)s - %(message)s",
    }
    handler = {
        "class": "logging.handlers.RotatingFileHandler",
        "level": "INFO",
        "formatter": "plain",
        "filename": LOG,
        "maxBytes": LOG_BYTES,
        "backupCount": 1,
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"plain": formatter},
        "handlers": {"file": handler},
        "loggers": {"root": {"level": "INFO", "handlers": ["file"]}},
    }


def _common() -> dict[str, Any]:
    return {
        "format_version": 2,
        "class_list_enforcement_mode": "enforce",
        "class_allow_list": list(CLASSES),
        "allow_log_streaming": False,
    }


def _write(folder: Path, settings: dict[str, Any]) -> None:
    for name, content in settings.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1))


def write_site(folder: Path, project: str, name: str, host: str, port: int) -> None:
    """Write what a site's engine reads."""
    service = {"target": f"{host}:{port}", "scheme": "http"}
    client = {
        "ssl_private_key": "client.key",
        "ssl_cert": "client.crt",
        "ssl_root_cert": "rootCA.pem",
        "fqsn": name,
        "is_leaf": True,
        "connection_security": "mtls",
    }
    manager = {
        "id": "resource_manager",
        "path": f"{_ENGINE}.resource_managers.gpu_resource_manager.GPUResourceManager",
        "args": {"num_of_gpus": 0, "mem_per_gpu_in_GiB": 0, "expiration_period": 300},
    }
    consumer = {
        "id": "resource_consumer",
        "path": f"{_ENGINE}.resource_consumers.gpu_resource_consumer.GPUResourceConsumer",
        "args": {},
    }
    launcher = {"id": "process_launcher", "path": f"{_PROGRAM}.SiteLauncher", "args": {}}
    resources = {
        "client": {"retry_timeout": 30, "compression": "Gzip"},
        "components": [manager, consumer, launcher],
    }
    _write(
        folder,
        {
            "startup/fed_client.json": {
                "format_version": 2,
                "servers": [{"name": project, "service": service, "identity": host}],
                "client": client,
            },
            "local/resources.json": _common() | resources,
            "local/authorization.json": {"format_version": "1.0", "permissions": _SITE_RIGHTS},
            "local/comm_config.json": _INTERNAL,
            "local/log_config.json": _log_config(),
        },
    )


def write_server(folder: Path, project: str, host: str, port: int) -> None:
    """Write what the server's engine reads."""
    server = {
        "name": project,
        "service": {"target": f"{host}:{port}", "scheme": "http"},
        "admin_server": host,
        "admin_port": port,
        "ssl_private_key": "server.key",
        "ssl_cert": "server.crt",
        "ssl_root_cert": "rootCA.pem",
        "connection_security": "mtls",
    }
    storage = f"{_ENGINE}.storages.filesystem_storage.FilesystemStorage"
    # The engine's own folder is where its server runs, so these paths begin there.
    kept = {"path": storage, "args": {"root_dir": "work/snapshots", "uri_root": "/"}}
    persistor = {
        "path": f"{_ENGINE}.state_persistors.storage_state_persistor.StorageStatePersistor",
        "args": {"uri_root": "/", "storage": kept},
    }
    scheduler = {
        "id": "job_scheduler",
        "path": f"{_ENGINE}.job_schedulers.job_scheduler.DefaultJobScheduler",
        # Seconds until a job whose site did not answer is tried again.
        "args": {"max_jobs": 4, "min_schedule_interval": 1},
    }
    manager = {
        "id": "job_manager",
        "path": "nvflare.apis.impl.job_def_manager.SimpleJobDefManager",
        "args": {"uri_root": "work/jobs", "job_store_id": "job_store"},
    }
    launcher = {"id": "process_launcher", "path": f"{_PROGRAM}.ServerLauncher", "args": {}}
    patience = {
        "admin_storage": "transfer",
        "max_num_clients": 100,
        # Seconds after its last sign of life until a site counts as gone.
        "heart_beat_timeout": 20,
        "download_job_url": "http://download.server.com/",
        "admin_timeout": 10.0,
    }
    resources = {
        "servers": [patience],
        "snapshot_persistor": persistor,
        "components": [scheduler, manager, {"id": "job_store", "path": storage}, launcher],
    }
    _write(
        folder,
        {
            "startup/fed_server.json": {"format_version": 2, "servers": [server]},
            "local/resources.json": _common() | resources,
            "local/authorization.json": {"format_version": "1.0", "permissions": _SERVER_RIGHTS},
            "local/comm_config.json": _INTERNAL,
            "local/log_config.json": _log_config(),
        },
    )


def write_coordinator(folder: Path, project: str, name: str, host: str, port: int) -> None:
    """Write what the coordinator's session reads."""
    admin = {
        "project_name": project,
        "username": name,
        "server_identity": host,
        "scheme": "http",
        "host": host,
        "port": port,
        "connection_security": "mtls",
        "uid_source": "cert",
        "with_file_transfer": True,
        "upload_dir": "transfer",
        "download_dir": "transfer",
        "client_key": "client.key",
        "client_cert": "client.crt",
        "ca_cert": "rootCA.pem",
    }
    session = {
        "idle_timeout": 900.0,
        "login_timeout": 10.0,
        "with_debug": False,
        "authenticate_msg_timeout": 2.0,
        "prompt": "> ",
    }
    _write(
        folder,
        {
            "startup/fed_admin.json": {"format_version": 1, "admin": admin},
            "local/resources.json": {"format_version": 1, "admin": session},
        },
    )
    (folder / "transfer").mkdir()
