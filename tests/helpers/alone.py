"""Environments with the built wheel and nothing else: the core alone, or one extra alone.

`make` calls this once after set-up with the environments to make. The core's packages are installed
once and the study's once; an environment sees those it builds on, and pip adds what else the
wheel's own metadata require.
"""

import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = Path(sys.prefix) / "alone"
BUILDS_ON = {
    "core": (),
    "fit": ("core",),
    "excel": ("fit", "core"),
    "formula": ("fit", "core"),
    "study": ("fit", "core"),
    "report": ("study", "fit", "core"),
    "nvflare": ("study", "fit", "core"),
    "courier": ("core",),
    "dask": ("study", "fit", "core"),
}
# What the tests use there, run once: Python and numba then keep what they have compiled.
USED = {
    "core": "import fedlasso.deploy.site_data",
    "fit": (
        f"import sys; sys.path.append({str(ROOT / 'tests')!r}); from helpers.warm import "
        "compile_kernels; compile_kernels(); import pyarrow.parquet"
    ),
    "excel": "import openpyxl",
    "formula": "import formulaic",
    "study": "import fedlasso.study, pandas",
    "report": "import fedlasso.report",
    "nvflare": "import fedlasso.deploy.nvflare.local, nvflare.private.fed.app.client.client_train",
    "courier": "import fedlasso.deploy.courier.mailbox, fsspec",
    "dask": "import distributed",
}


@dataclass(frozen=True)
class Environment:
    """An environment of its own, without pip."""

    name: str

    @property
    def folder(self) -> Path:
        """Where it is."""
        return FOLDER / self.name

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        """Where its packages are."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.folder / "lib" / version / "site-packages"

    @property
    def wheel(self) -> Path:
        """A copy of the wheel it holds."""
        return FOLDER / f"{self.name}.whl"

    def create(self, wheel: Path) -> None:
        """Make it, and let pip resolve what the wheel requires beyond what it builds on."""
        venv.create(self.folder, clear=True, symlinks=True)
        below = [str(Environment(name).packages) for name in BUILDS_ON[self.name]]
        (self.packages / "below.pth").write_text("\n".join(below) + "\n")
        self.install(wheel)
        done = self.run("-c", USED[self.name], cwd=FOLDER)
        if done.returncode != 0:
            raise RuntimeError(f"the wheel with the extra {self.name} does not run:\n{done.stderr}")

    def install(self, wheel: Path, *options: str) -> None:
        """Install the wheel with this environment's extra."""
        what = str(wheel) if self.name == "core" else f"{wheel}[{self.name}]"
        pip(
            "--python", str(self.python), "install", "--no-compile",
            "--constraint", str(ROOT / "constraints.txt"), *options, what,
        )  # fmt: skip

    def run(self, *arguments: object, cwd: Path) -> "subprocess.CompletedProcess[str]":
        """Python here, which sees nothing of the environment that calls."""
        return subprocess.run(
            [self.python, "-I", *map(str, arguments)],
            cwd=cwd, capture_output=True, text=True, check=False,
        )  # fmt: skip


def pip(*arguments: str) -> None:
    """Run pip; what it says matters only if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"pip {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout; the same files give the same bytes."""
    options = ("--no-deps", "--no-build-isolation", "--no-index")
    pip("wheel", *options, "--wheel-dir", str(folder), str(ROOT))
    (wheel,) = folder.glob("fedlasso-*.whl")
    return wheel


def requirements(wheel: Path) -> list[str]:
    """What the wheel's metadata ask for."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        lines = archive.read(metadata).decode().splitlines()
    return [line for line in lines if line.startswith("Requires-Dist")]


def provide(wheel: Path, *names: str) -> None:
    """Have environments hold this wheel; only other requirements make them anew."""
    wanted = {below for name in names for below in (name, *BUILDS_ON[name])}
    for environment in map(Environment, filter(wanted.__contains__, BUILDS_ON)):
        held = environment.wheel
        if not held.exists() or requirements(held) != requirements(wheel):
            environment.create(wheel)
        elif environment.name == "core" and held.read_bytes() != wheel.read_bytes():
            environment.install(wheel, "--no-index", "--no-deps", "--force-reinstall")
        shutil.copy(wheel, held)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        provide(build_wheel(Path(temporary)), *(sys.argv[1:] or BUILDS_ON))
