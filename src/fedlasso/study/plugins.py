"""A user's module with own procedures, metrics, scenarios or studies, which workers import too."""

from __future__ import annotations

import hashlib
import sys
import traceback
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from fedlasso.errors import FedLassoError


@dataclass(frozen=True)
class Plugin:
    """An imported module, with its source; unpickling it imports it there."""

    name: str
    file: str
    source: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.source.encode()).hexdigest()[:16]

    def __reduce__(self) -> tuple[object, tuple[str, str, str]]:
        return _load, (self.name, self.file, self.source)


def import_plugin(named: str) -> Plugin:
    """Import a module, by its name on the path or here, or by its file ``my_module.py``."""
    path = Path(named)
    if path.suffix != ".py":
        try:
            spec = find_spec(named)
        except (ImportError, ValueError):
            spec = None
        path = Path(spec.origin) if spec and spec.origin else Path(f"{named}.py")
    name = path.stem if Path(named).suffix == ".py" else named
    try:
        return _load(name, str(path), path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise FedLassoError(f"there is no module {named!r}; name a module or a .py file") from None


def _load(name: str, file: str, source: str) -> Plugin:
    plugin = Plugin(name, file, source)
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__digest__", None) == plugin.digest:
        return plugin
    module = ModuleType(name)
    vars(module).update(
        __file__=file, __package__=name.rpartition(".")[0], __digest__=plugin.digest
    )
    sys.modules[name] = module
    try:
        exec(compile(source, file, "exec"), vars(module))
    except Exception as error:
        del sys.modules[name]
        frames = traceback.extract_tb(error.__traceback__)
        line = next((own.lineno for own in reversed(frames) if own.filename == file), None)
        where = file if line is None else f"{file}, line {line}"
        what = f"{type(error).__name__}: {error}"
        raise FedLassoError(f"cannot import {name}: {what} ({where})") from error
    return plugin
