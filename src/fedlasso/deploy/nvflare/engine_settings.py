"""What a kit tells the engine: where the server is, what may run, and that nothing else may.

`settings.toml` lists the files by role; the names of a project are filled in here.
"""

import json
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from fedlasso.deploy.kit import Kit
from fedlasso.deploy.nvflare.job import CLASSES

LOG = "log.txt"


def write_settings(folder: Path, kit: Kit) -> None:
    """Write what the engine of a site or of the server reads, or the coordinator's session."""
    text = (files("fedlasso.deploy.nvflare") / "settings.toml").read_text(encoding="utf-8")
    listed = tomllib.loads(text)
    settings = listed[kit.role]
    if kit.role != "coordinator":
        settings = _merge(listed["engine"], settings)
    values = {"project": kit.project, "name": kit.name, "host": kit.host, "port": kit.port}
    for name, content in _fill(settings, values | {"log": LOG, "classes": CLASSES}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1))
    if kit.role == "coordinator":
        (folder / "transfer").mkdir()


def _merge(common: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Both tables in one; where both say something, a role's own holds."""
    merged = common | own
    for name in common.keys() & own.keys():
        if isinstance(common[name], dict):
            merged[name] = _merge(common[name], own[name])
    return merged


def _fill(content: Any, values: dict[str, Any]) -> Any:
    """The same with every name in braces replaced; a value that is nothing else keeps its type."""
    if isinstance(content, dict):
        return {name: _fill(inner, values) for name, inner in content.items()}
    if isinstance(content, list):
        return [_fill(inner, values) for inner in content]
    if not isinstance(content, str):
        return content
    whole = [value for name, value in values.items() if content == f"{{{name}}}"]
    return whole[0] if whole else content.format(**values)
