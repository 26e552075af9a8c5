"""What the README shows runs on what it installs: the built wheel, alone or with one extra."""

import re
from pathlib import Path

import numpy as np
import pytest
from helpers.alone import BUILDS_ON, Environment, build_wheel, provide
from helpers.study.small import TOML

ROOT = Path(__file__).parent.parent
BLOCKS = {
    f"{document}:{number}": block
    for document in ("README.md", "docs/index.md", "docs/fit.md")
    for number, block in enumerate(
        re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL), start=1
    )
}
EXTRAS = [name for name in BUILDS_ON if name != "core"]


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The wheel of this checkout in every environment, with all that its metadata ask for."""
    provide(build_wheel(tmp_path_factory.mktemp("wheel")))


@pytest.mark.parametrize("name", BLOCKS)
def test_the_examples_run_on_the_core_alone(name: str, tmp_path: Path) -> None:
    done = Environment("core").run("-c", BLOCKS[name], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize(("script", "name"), [("genes", "core"), ("diabetes", "study")])
def test_the_scripts_run_with_what_the_readme_says(script: str, name: str, tmp_path: Path) -> None:
    command(tmp_path, name, ROOT / "examples" / f"{script}.py")


@pytest.mark.parametrize("name", EXTRAS)
def test_an_extra_brings_no_other(name: str, tmp_path: Path) -> None:
    brings = {
        "fit": {"pyarrow"},
        "excel": {"pyarrow", "openpyxl"},
        "study": {"pyarrow", "pandas", "rich"},
        "report": {"pyarrow", "pandas", "rich", "matplotlib"},
        "nvflare": {"pyarrow", "pandas", "rich", "nvflare"},
        "dask": {"pyarrow", "pandas", "rich", "distributed"},
    }
    known = sorted(set().union(*brings.values()))
    look = f"import importlib.util as u; print([n for n in {known} if u.find_spec(n)])"
    done = Environment(name).run("-c", look, cwd=tmp_path)
    assert done.stdout.strip() == str(sorted(brings[name]))


def test_files_are_fitted_with_the_extra_fit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for site in ("north", "south", "west"):
        rows = rng.standard_normal((40, 4)).round(4)
        lines = [",".join(map(str, row)) for row in rows.tolist()]
        (tmp_path / f"{site}.csv").write_text("\n".join(["a,b,c,y", *lines]) + "\n")
    (tmp_path / "new.csv").write_text("a,b,c\n1,2,3\n")
    convert = (
        "import pyarrow.csv, pyarrow.parquet as p;"
        "p.write_table(pyarrow.csv.read_csv('west.csv'), 'west.parquet')"
    )
    command(tmp_path, "fit", "-c", convert)
    for line in readme_commands("fedlasso fit north", "fedlasso predict model"):
        command(tmp_path, "fit", "-m", *line.split())
    assert (tmp_path / "predictions.csv").read_text().count("\n") == 2


@pytest.mark.parametrize(("extra", "engine"), [("study", "processes"), ("dask", "dask")])
def test_a_study_runs_with_its_extra(extra: str, engine: str, tmp_path: Path) -> None:
    run_study(tmp_path, extra, engine)
    for line in readme_commands("fedlasso study summary", "fedlasso study export"):
        command(tmp_path, extra, "-m", *line.split())
    assert (tmp_path / "table.csv").exists()


def test_a_study_is_reported_with_the_extra_report(tmp_path: Path) -> None:
    run_study(tmp_path, "report", "processes")
    command(tmp_path, "report", "-m", "fedlasso", "report", "DIR")
    assert (tmp_path / "DIR" / "report" / "index.html").exists()


def test_real_sites_are_shown_with_the_extra_nvflare(tmp_path: Path) -> None:
    (line,) = readme_commands("fedlasso federation demo")
    assert "chain unbroken" in command(tmp_path, "nvflare", "-m", *line.split())


def command(folder: Path, extra: str, *arguments: object) -> str:
    done = Environment(extra).run(*arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def readme_commands(*beginnings: str) -> list[str]:
    """The README's commands that begin so, without their comments."""
    found = re.findall(r"(fedlasso [^`#\n]*)", (ROOT / "README.md").read_text())
    chosen = [line.strip() for line in found if line.startswith(beginnings)]
    assert len(chosen) == len(beginnings)
    return chosen


def run_study(folder: Path, extra: str, engine: str) -> None:
    (folder / "own.toml").write_text(TOML)
    arguments = (
        "run --scenario-file own.toml --scenarios small --replicates 2 --epochs 1,5 --budgets 30 "
        f"--workers 1 --engine {engine} --out DIR"
    )
    command(folder, extra, "-m", "fedlasso", "study", *arguments.split())
