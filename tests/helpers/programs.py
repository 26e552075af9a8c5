"""The browser, the TeX and the R that some tests need: found, or fetched where that is possible.

`make` calls this before the tests. It looks on the PATH, then fetches what needs no rights into the
environment, then asks apt-get, and writes down what works. Tests without their program are not run,
and named in the last line.
"""

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

FOLDER = Path(sys.prefix) / "programs"
FOUND = FOLDER / "found.json"
# Beyond this a download is given up, and the next way is tried.
PATIENCE = 120
# What the supplement uses; a TeX that cannot find its packages is none.
DOCUMENT = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage{geometry,amsmath,amssymb,booktabs,longtable,graphicx,xcolor,hyperref}
\begin{document}$x$\end{document}
"""
# What the R package uses, its tests and its vignette; rmarkdown needs pandoc.
R_PACKAGES = (
    "broom", "glmnet", "knitr", "reticulate", "rmarkdown", "roxygen2", "survival", "testthat",
)  # fmt: skip
R_WORKS = (
    f"for (name in c({', '.join(map(repr, R_PACKAGES))})) loadNamespace(name);"
    "stopifnot(rmarkdown::pandoc_available())"
)
TINYTEX = """
import socket, sys, pytinytex
socket.setdefaulttimeout(10)
pytinytex.download_tinytex(target_folder=sys.argv[1], download_folder=sys.argv[1])
"""


def find_browser() -> str | None:
    """A browser that starts."""
    names = ("chromium", "chromium-browser", "google-chrome")
    fetched = map(str, FOLDER.glob("browser/**/*headless*shell"))
    return _first([*_on_path(names), *fetched], lambda program: _works([program, "--version"]))


def find_tex() -> str | None:
    """A TeX that compiles what the supplement uses."""
    fetched = map(str, FOLDER.glob("tex/bin/*/pdflatex"))
    return _first([*_on_path(("pdflatex", "tectonic")), *fetched], _compiles)


def find_r() -> str | None:
    """An R, its Rscript, that has the packages."""
    return _first(_on_path(("Rscript",)), lambda program: _works([program, "-e", R_WORKS]))


FINDERS = {"browser": find_browser, "TeX": find_tex, "R": find_r}


def fetch_browser() -> None:
    """Playwright's own browser, which needs no rights."""
    where = {"PLAYWRIGHT_BROWSERS_PATH": str(FOLDER / "browser")}
    patience = {"PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT": "5000"}
    command = [sys.executable, "-m", "playwright", "install", "--only-shell", "chromium"]
    _works(command, PATIENCE, os.environ | where | patience)


def fetch_tex() -> None:
    """TinyTeX, which needs no rights."""
    _works([sys.executable, "-c", TINYTEX, str(FOLDER / "tex")], PATIENCE)


def fetch_nothing() -> None:
    """R comes from the system alone."""


def install(*packages: str) -> None:
    """Packages of the system, which takes root."""
    if shutil.which("apt-get") and os.geteuid() == 0:
        # Somebody else may be installing something at this moment.
        waiting = ["-qq", "-o", f"DPkg::Lock::Timeout={PATIENCE}"]
        _works(["apt-get", "update", *waiting], 2 * PATIENCE)
        options = [*waiting, "-y", "--no-install-recommends"]
        _works(["apt-get", "install", *options, *packages], 6 * PATIENCE)


def provide() -> None:
    """Find the programs or fetch them, and write down which work."""
    FOLDER.mkdir(exist_ok=True)
    found = {
        "browser": _provide("browser", find_browser, fetch_browser, "chromium"),
        "TeX": _provide("TeX", find_tex, fetch_tex, "texlive-latex-recommended"),
        "R": _provide(
            "R", find_r, fetch_nothing, "r-base-core", *(f"r-cran-{name}" for name in R_PACKAGES)
        ),
    }
    FOUND.write_text(json.dumps(found))


@functools.cache
def program(kind: str) -> str | None:
    """The browser, the TeX or the Rscript, if there is one."""
    found: dict[str, str | None] = json.loads(FOUND.read_text()) if FOUND.exists() else {}
    return found[kind] if kind in found else FINDERS[kind]()


def needs(kind: str) -> pytest.MarkDecorator:
    """A mark for tests that need the browser, the TeX or R."""
    return pytest.mark.skipif(program(kind) is None, reason=f"needs a {kind}")


def _provide(
    kind: str, find: Callable[[], str | None], fetch: Callable[[], None], *packages: str
) -> str | None:
    found = find()
    for get in (fetch, functools.partial(install, *packages)):
        if found is None:
            print(f"No {kind} works here; trying to get one", file=sys.stderr, flush=True)
            get()
            found = find()
    return found


def _on_path(names: Sequence[str]) -> list[str]:
    return [path for name in names if (path := shutil.which(name))]


def _first(programs: Sequence[str], works: Callable[[str], bool]) -> str | None:
    return next((program for program in programs if works(program)), None)


def _compiles(program: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "try.tex").write_text(DOCUMENT)
        _works(tex_command(program, "try.tex"), PATIENCE, folder=folder)
        return (Path(folder) / "try.pdf").exists()


def tex_command(program: str, document: str) -> list[str]:
    """The command that compiles a document and never asks."""
    if Path(program).name == "tectonic":
        return [program, document]
    return [program, "-interaction=nonstopmode", "-halt-on-error", document]


def _works(
    command: Sequence[str],
    patience: float = 60,
    environment: dict[str, str] | None = None,
    folder: str | None = None,
) -> bool:
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, timeout=patience, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


if __name__ == "__main__":
    provide()
