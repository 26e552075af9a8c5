"""A site over the years: is it well, what can be thrown away, how its machine starts it."""

import getpass
import shutil
import sys
import time
from importlib.resources import files
from pathlib import Path

from fedlasso import __version__
from fedlasso.deploy.kit import check_certificate, read_kit
from fedlasso.deploy.nvflare.stay import STATE, lock
from fedlasso.errors import FedLassoError

DAY = 86400.0
# Bytes that should be free for the books of a site.
ROOM = 100_000_000


def check_health(folder: Path) -> tuple[list[str], list[str]]:
    """Say how a site is: what is well, and what is not."""
    kit = read_kit(folder)
    well = [f"site {kit.name!r} of project {kit.project!r}, server {kit.host}:{kit.port}"]
    try:
        ill = check_certificate(folder, kit)
        well += [] if ill else ["its certificate is valid"]
    except FedLassoError as error:
        ill = [str(error)]
    state = folder / STATE
    said = state.read_text() if state.exists() else "it was never started"
    if not _is_running(folder):
        ill.append(f"it is not running; `fedlasso site start {folder} DATA` starts it")
    elif said.startswith("Connected"):
        well.append(said.partition(";")[0])
    else:
        ill.append(said)
    free = shutil.disk_usage(folder).free
    (well if free >= ROOM else ill).append(f"{free // 1_000_000} MB are free for its books")
    return well, ill


def _is_running(folder: Path) -> bool:
    try:
        with lock(folder):
            return False
    except FedLassoError:
        return True


def clean(folder: Path, days: float) -> tuple[int, int]:
    """Remove what procedures kept between rounds of fits that rest so long; the books stay.

    Returns how many fits it was, and their bytes.
    """
    read_kit(folder)
    end = time.time() - days * DAY
    freed = []
    for fit in sorted(folder.glob("memory/*")):
        kept = [path for path in fit.rglob("*") if path.is_file()]
        if max([path.stat().st_mtime for path in (fit, *kept)]) < end:
            freed.append(sum(path.stat().st_size for path in kept))
            shutil.rmtree(fit)
    return len(freed), sum(freed)


def write_units(
    folder: Path, data: Path, policy: Path | None, user: str | None, out: Path
) -> list[Path]:
    """Write a systemd unit and a Containerfile that start a site, and return their paths."""
    kit = read_kit(folder)
    command = [sys.executable, "-m", "fedlasso", "site", "start"]
    command += [str(folder.resolve()), str(data.resolve())]
    command += ["--policy", str(policy.resolve())] if policy else []
    command += ["--engine-user", user] if user else []
    started = ["fedlasso", "site", "start", "/kit", f"/data/{data.name}"]
    started += ["--policy", f"/data/{policy.name}"] if policy else []
    # Root is needed only to become the engine's user and to give it its folder.
    rights = "CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER CAP_KILL CAP_SETGID CAP_SETUID" if user else ""
    values = {
        "name": kit.name,
        "project": kit.project,
        "command": " ".join(map(_quote, command)),
        "kit": _quote(str(folder.resolve())),
        "user": "root" if user else getpass.getuser(),
        "rights": rights,
        "version": __version__,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "start": ", ".join(f'"{word}"' for word in started),
    }
    written = {"site.service": f"fedlasso-{kit.name}.service", "Containerfile": "Containerfile"}
    out.mkdir(parents=True, exist_ok=True)
    for template, name in written.items():
        text = (files("fedlasso.deploy.nvflare") / "units" / template).read_text()
        (out / name).write_text(text.format(**values))
    return [out / name for name in written.values()]


def _quote(word: str) -> str:
    """A word as systemd reads it."""
    if '"' in word or "\\" in word or "\n" in word:
        raise FedLassoError(f"{word}: a path with quotes or backslashes cannot be put into a unit")
    word = word.replace("%", "%%").replace("$", "$$")
    return f'"{word}"' if " " in word else word
