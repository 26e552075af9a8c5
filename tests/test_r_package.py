"""The R package: its own tests, R CMD check with the vignette, and its generated files."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers.programs import needs, program

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "r"
PATIENCE = 1200

pytestmark = needs("R")


def run(command: Sequence[str], folder: Path, **more: str) -> str:
    """Return what R prints; a failure shows all of it."""
    environment = os.environ | {
        "RETICULATE_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT / "src"),
        "R_LIBS_USER": str(folder / "library"),
        # The clock of the network, and packages that are suggested only, are of no interest here.
        "_R_CHECK_SYSTEM_CLOCK_": "FALSE",
        "_R_CHECK_FORCE_SUGGESTS_": "FALSE",
        "FEDLASSO_R_TESTS": "all",
        **more,
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, timeout=PATIENCE, check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def rscript(code: str, folder: Path) -> str:
    found = program("R")
    assert found is not None
    return run([found, "-e", code], folder)


def copy_source(folder: Path) -> Path:
    """A copy, since R writes into the folder that it builds."""
    shutil.copytree(SOURCE, folder / "r", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "library").mkdir()
    return folder / "r"


def install(source: Path) -> None:
    library = source.parent / "library"
    run(["R", "CMD", "INSTALL", "--no-docs", f"--library={library}", str(source)], source.parent)


@pytest.mark.standard
def test_the_tests_of_the_package_pass_with_none_left_out(tmp_path: Path) -> None:
    source = copy_source(tmp_path)
    install(source)
    code = (
        "library(testthat); library(fedlasso);"
        "done <- as.data.frame(test_dir('r/tests/testthat', package = 'fedlasso',"
        " load_package = 'installed', stop_on_failure = TRUE, stop_on_warning = TRUE,"
        " reporter = 'check'));"
        "cat('\nran', nrow(done), 'skipped', sum(done$skipped))"
    )
    printed = rscript(code, tmp_path)
    assert re.search(r"ran [1-9]\d+ skipped 0$", printed.strip()), printed


@pytest.mark.full
def test_the_package_passes_r_cmd_check_and_its_vignette_runs(tmp_path: Path) -> None:
    source = copy_source(tmp_path)
    run(["R", "CMD", "build", str(source)], tmp_path)
    (built,) = tmp_path.glob("fedlasso_*.tar.gz")
    # The tests have run already.
    printed = run(["R", "CMD", "check", "--no-manual", "--no-tests", built.name], tmp_path)
    assert re.search(r"^Status: OK$", printed, re.MULTILINE), printed
    page = (tmp_path / "fedlasso.Rcheck/fedlasso/doc/fedlasso.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") >= 2
    # A vignette that did not run has the code without its results.
    assert "Lambda Index Measure" in page


@pytest.mark.full
def test_generated_files_are_those_of_roxygen(tmp_path: Path) -> None:
    source = copy_source(tmp_path)
    install(source)
    rscript("suppressMessages(roxygen2::roxygenise('r', load_code = 'installed'))", tmp_path)
    for file in (SOURCE / "NAMESPACE", *sorted((SOURCE / "man").glob("*.Rd"))):
        made = source / file.relative_to(SOURCE)
        assert made.read_text() == file.read_text(), f"{file.name}: run make r-docs"
    assert len(list((source / "man").iterdir())) == len(list((SOURCE / "man").iterdir()))


def test_the_version_is_the_newest_of_the_changelog() -> None:
    (version,) = re.findall(r"^Version: (.+)$", (SOURCE / "DESCRIPTION").read_text(), re.MULTILINE)
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert version == re.findall(r"^## (\d+\.\d+\.\d+)", changes, re.MULTILINE)[0]
