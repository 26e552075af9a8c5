"""What the README shows runs on what it installs: the built wheel, alone or with one extra."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.alone import BUILDS_ON, Environment, build_wheel, provide
from helpers.deploy.post import Post
from helpers.nets import MODEL, write_tables
from helpers.study.small import TOML

from fedlasso.deploy.courier.collect import collect

ROOT = Path(__file__).parent.parent
# Every example in Python, and the block of text that follows it: what it prints.
EXAMPLES = {
    f"{document}:{number}": example
    for document in ("README.md", "docs/index.md", "docs/fit.md")
    for number, example in enumerate(
        re.findall(
            r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?",
            (ROOT / document).read_text(),
            re.DOTALL,
        ),
        start=1,
    )
}
Run = Callable[..., str]
EXTRAS = [name for name in BUILDS_ON if name != "core"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def run(wheel: Path, tmp_path: Path) -> Run:
    """Run Python in an environment with the wheel and what its metadata require for an extra."""

    def run(extra: str, *arguments: object) -> str:
        provide(wheel, extra)
        done = Environment(extra).run(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_run_with_the_extra_fit(name: str, run: Run) -> None:
    code, promised = EXAMPLES[name]
    # Data frames need what reads files.
    printed = run("study" if "pandas" in code else "fit", "-c", code).split()
    assert printed
    assert promised or not name.startswith("README")
    for got, shown in zip(printed, promised.split(), strict=True) if promised else ():
        # The last digits of a certificate near zero may differ between processors.
        assert got == shown or shown.endswith("e-07%")


def test_a_script_runs_with_the_extra_fit(run: Run) -> None:
    run("fit", ROOT / "examples" / "genes.py")


@pytest.mark.full
def test_a_script_runs_with_the_extra_study(run: Run) -> None:
    run("study", ROOT / "examples" / "diabetes.py")


@pytest.mark.full
@pytest.mark.parametrize("name", EXTRAS)
def test_an_extra_brings_no_other(name: str, run: Run) -> None:
    fit = {"matplotlib", "numba", "pyarrow", "sklearn"}
    study = fit | {"pandas", "rich"}
    brings = {
        "fit": fit,
        "excel": fit | {"openpyxl"},
        "formula": fit | {"pandas", "formulaic"},
        "study": study,
        "report": study | {"latex2mathml"},
        "nvflare": study | {"nvflare", "cryptography"},
        "courier": {"fsspec", "cryptography"},
        "dask": study | {"distributed", "fsspec"},
    }
    known = sorted(set().union(*brings.values()))
    look = f"import importlib.util as u; print([n for n in {known} if u.find_spec(n)])"
    assert run(name, "-c", look).strip() == str(sorted(brings[name]))


@pytest.mark.full
def test_files_are_fitted_with_the_extra_fit(run: Run, tmp_path: Path) -> None:
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
    run("fit", "-c", convert)
    for line in readme_commands("fedlasso fit north", "fedlasso predict model"):
        run("fit", "-m", *line.split())
    assert (tmp_path / "predictions.csv").read_text().count("\n") == 2


@pytest.mark.full
@pytest.mark.parametrize(("extra", "engine"), [("study", "processes"), ("dask", "dask")])
def test_a_study_runs_with_its_extra(extra: str, engine: str, run: Run, tmp_path: Path) -> None:
    run_study(run, tmp_path, extra, engine)
    for line in readme_commands("fedlasso study summary", "fedlasso study export"):
        run(extra, "-m", *line.split())
    assert (tmp_path / "table.csv").exists()


@pytest.mark.full
def test_a_study_is_reported_with_the_extra_report(run: Run, tmp_path: Path) -> None:
    run_study(run, tmp_path, "report", "processes")
    run("report", "-m", "fedlasso", "report", "DIR")
    assert (tmp_path / "DIR" / "report" / "index.html").exists()


@pytest.mark.full
def test_real_sites_are_shown_with_the_extra_nvflare(run: Run) -> None:
    (line,) = readme_commands("fedlasso federation demo")
    assert "hash chain valid" in run("nvflare", "-m", *line.split())


@pytest.mark.full
def test_a_light_site_answers_with_the_extra_courier_alone(run: Run, tmp_path: Path) -> None:
    """It has neither numba nor pyarrow, and the model is that of one process with all of them."""
    post = Post(tmp_path / "post", write_tables(tmp_path, mixed=True))
    fit = post.ask(missing="mean")
    while True:
        for question in fit.outstanding():
            site = question.name.rsplit("-", 2)[0]
            words = ("answer", post.kit(site), question, post.tables[site], "--yes")
            run("courier", "-m", "fedlasso", "courier", *words)
            collect(post.place, question.with_suffix(".fla"))
        finished = post.advance(fit)
        if finished is not None:
            break
    alone = post.repeat(finished.document, tmp_path / "alone")
    for name in MODEL:
        assert (post.folder / "model" / name).read_bytes() == (alone / name).read_bytes()


@pytest.mark.full
def test_a_light_site_is_small(run: Run) -> None:
    run("courier", "-c", "import fedlasso")
    light = [Environment(name).packages for name in ("courier", "core")]
    # As pip does by default.
    run("courier", "-m", "compileall", "-q", *light)
    packages = {path.name for folder in light for path in folder.glob("*.dist-info")}
    assert 5 < len(packages) <= 25
    files = (path for folder in light for path in folder.rglob("*") if path.is_file())
    assert sum(path.stat().st_size for path in files) <= 250e6


@pytest.mark.full
def test_without_the_extra_fit_a_coordinator_is_told_what_to_install(
    wheel: Path, tmp_path: Path
) -> None:
    provide(wheel, "courier")
    for words in ("courier demo", "fit a.csv --target y --out model"):
        done = Environment("courier").run("-m", "fedlasso", *words.split(), cwd=tmp_path)
        assert done.returncode == 2
        assert "this command needs numba; install with: pip install 'fedlasso[" in done.stderr
    done = Environment("courier").run("-c", "from fedlasso import FederatedLasso", cwd=tmp_path)
    assert "requires scikit-learn: pip install 'fedlasso[fit]'" in done.stderr


def readme_commands(*beginnings: str) -> list[str]:
    """The README's commands that begin so, without their comments."""
    found = re.findall(r"(fedlasso [^`#\n]*)", (ROOT / "README.md").read_text())
    chosen = [line.strip() for line in found if line.startswith(beginnings)]
    assert len(chosen) == len(beginnings)
    return chosen


def run_study(run: Run, folder: Path, extra: str, engine: str) -> None:
    (folder / "own.toml").write_text(TOML)
    arguments = (
        "run --scenario-file own.toml --scenarios small --replicates 2 --epochs 1,5 --budgets 30 "
        f"--workers 1 --engine {engine} --out DIR"
    )
    run(extra, "-m", "fedlasso", "study", *arguments.split())
