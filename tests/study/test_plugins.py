"""The module of docs/study.md with a procedure, a metric and a scenario, run as written there."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedlasso.cli import main
from fedlasso.procedures import REGISTRY
from fedlasso.study import SCENARIOS, PaperStudy, Store, run_study
from fedlasso.study.outcomes import METRICS
from fedlasso.study.plugins import import_plugin
from fedlasso.study.record_columns import COLUMNS

PAGE = (Path(__file__).parent.parent.parent / "docs" / "study.md").read_text("utf-8")
SECTION = PAGE.split("## Add your own procedure, metric or scenario")[1].split("\n## ")[0]
(MODULE,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
(COMMANDS,) = re.findall(r"```bash\n(.*?)```", SECTION, re.DOTALL)
RUN, SUMMARY, REPORT = COMMANDS.replace("\\\n", " ").splitlines()


def forget() -> None:
    """Undo what the module has registered, as in a new process."""
    sys.modules.pop("my_module", None)
    REGISTRY.pop("PG", None)
    SCENARIOS.pop("clinics", None)
    METRICS.pop("wrong_signs", None)
    COLUMNS.pop("wrong_signs", None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    Path("my_module.py").write_text(MODULE)
    yield tmp_path
    forget()


@pytest.mark.standard
def test_the_page_is_followed_with_worker_processes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RUN.split()[1:], "--workers", "1"]) == 0
    assert "2 of 2 finished" in capsys.readouterr().out
    rows = Store("results/own").table()
    assert set(rows["method"]) == {"CD", "PG"}
    assert set(rows["scenario"]) == {"clinics"}
    assert rows["wrong_signs"].notna().all()
    assert (rows[rows["method"] == "PG"]["relative_gap"] < 0.1).all()
    # Others read the results without the module.
    forget()
    assert main(SUMMARY.split()[1:]) == 0
    assert "wrong_signs" in capsys.readouterr().out
    assert main(REPORT.split()[1:]) == 0
    page = Path("results/own/report/index.html").read_text()
    assert '"label":"Wrong signs"' in page
    grid = pd.read_csv("results/own/report/tables/grid.csv")
    assert grid["wrong_signs"].mean() == pytest.approx(rows["wrong_signs"].mean())


@pytest.mark.standard
def test_a_study_resumes_only_with_the_same_module(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = import_plugin("my_module")
    study = PaperStudy(methods=("PG",), epochs=(1,), budgets=(30,))
    scenarios = [SCENARIOS["clinics"]]
    run_study(study, scenarios, 1, Store("own"), workers=1, plugins=[plugin])
    settings = "--scenarios clinics --methods PG --epochs 1 --budgets 30 --replicates 1 --out own"
    run = ["study", "run", "--workers", "1", *settings.split()]
    assert main([*run, "--import", "my_module"]) == 0
    assert main(run) == 2
    assert f"import my_module was '{plugin.digest}' and is None" in capsys.readouterr().err
    forget()
    Path("my_module.py").write_text(MODULE + "# changed\n")
    assert main([*run, "--import", "my_module.py"]) == 2
    said = capsys.readouterr().err
    assert f"import my_module was '{plugin.digest}' and is '" in said
    assert "use --allow-code-change to resume, or another --out" in said
    assert main([*run, "--import", "my_module.py", "--allow-code-change"]) == 0


@pytest.mark.full
def test_dask_workers_import_it_too(folder: Path) -> None:
    plugin = import_plugin("my_module")
    # The source is sent with the tasks, so the file may be elsewhere.
    os.remove("my_module.py")
    study = PaperStudy(methods=("PG",), epochs=(1,), budgets=(30,))
    scenarios = [SCENARIOS["clinics"]]
    here, there = Store("here"), Store("there")
    run_study(study, scenarios, 2, here, workers=1, plugins=[plugin])
    run_study(study, scenarios, 2, there, engine="dask", workers=1, plugins=[plugin])
    for name in ("wrong_signs", "objective"):
        assert np.array_equal(here.table()[name], there.table()[name])


@pytest.mark.parametrize(
    ("named", "text", "message"),
    [
        ("nowhere", "", "there is no module 'nowhere'; name a module or a .py file"),
        ("own.py", "x = 1\nprint(y)\n", "cannot import own: NameError: name 'y' .*line 2"),
        ("own.py", "x = (\n", "cannot import own: SyntaxError"),
    ],
)
def test_what_cannot_be_imported_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], named: str, text: str, message: str
) -> None:
    Path("own.py").write_text(text)
    assert main(["study", "run", "--import", named, "--out", "own"]) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not Path("own").exists()
