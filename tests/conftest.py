"""Checks that were not run are named in the last line, and fail the run where CI is true."""

import os

import pytest


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
