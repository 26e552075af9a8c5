"""A small study, run once, and its report."""

from pathlib import Path

import pytest
from study.small import OTHER

from fedlasso.report.records import Results
from fedlasso.report.write import write_report
from fedlasso.study import PaperStudy, Scenario, Store, run_study

BASELINE = Scenario("baseline", sizes=(20, 16, 12), p=30, nonzeros=4, validation=12, test=40)
STUDY = PaperStudy(seed=7, epochs=(1, 5, 20), budgets=(30, 100))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of two scenarios and four replicates."""
    path = tmp_path_factory.mktemp("results")
    run_study(STUDY, [BASELINE, OTHER], 4, Store(path), workers=1)
    return path


@pytest.fixture(scope="session")
def results(folder: Path, report: Path) -> Results:
    """What was read."""
    return write_report(folder, report)


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the report is; ask for ``results`` too, which writes it."""
    return tmp_path_factory.mktemp("report")
