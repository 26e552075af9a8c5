"""How properties are searched, what runs first, and what the last line says was not run."""

import os

import pytest
from hypothesis import settings

# New examples every time: one that fails is a defect, and its blob repeats it anywhere.
# A slow machine is no defect, so no example has a deadline.
settings.register_profile("fedlasso", deadline=None, print_blob=True)
settings.load_profile("fedlasso")
# Real processes wait more than they compute: they begin first, then what takes longest.
FIRST = (
    "deploy/",
    "test_install",
    "portability/",
    "study/test_engines",
    "report/test_report",
    "report/",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def rank(item: pytest.Item) -> int:
        path = item.nodeid.removeprefix("tests/")
        return next((i for i, first in enumerate(FIRST) if path.startswith(first)), len(FIRST))

    items.sort(key=rank)


def not_run(config: pytest.Config) -> str:
    """Which checks were not run, and why; empty if all were."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    reports = terminal.stats.get("skipped", []) if terminal else []
    checks: dict[tuple[str, str], list[str]] = {}
    for report in reports:
        file, _, name = report.nodeid.partition("::")
        why = report.longrepr[2].removeprefix("Skipped: ")
        checks.setdefault((file, why), []).append(name)
    return "; ".join(
        f"{file}{'::' + names[0] if len(names) == 1 else f' ({len(names)} checks)'} {why}"
        for (file, why), names in checks.items()
    )


def pytest_sessionfinish(session: pytest.Session) -> None:
    if os.environ.get("CI") == "true" and not_run(session.config) and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure(config: pytest.Config) -> None:
    if checks := not_run(config):
        print(f"NOT RUN: {checks}")
