"""How properties are searched, what runs first, and what the last line says was not run."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Cards have a date: around midnight, too, the same fit has the same bytes.
os.environ["SOURCE_DATE_EPOCH"] = "1767225600"
# New examples every time: one that fails is a defect, and its blob repeats it anywhere.
# A slow machine is no defect, so no example has a deadline.
settings.register_profile("fedlasso", deadline=None, print_blob=True)
settings.load_profile("fedlasso")
# The tier of whole folders and files; a mark on a test or file decides for it alone.
TIERS = {
    "full": (
        "deploy/nvflare/",
        "portability/",
        "report/test_every_study",
        "report/test_family_report",
        "report/test_joint_tuning",
        "study/test_engines",
    ),
    "standard": (
        "deploy/",
        "report/",
        "test_estimator_surface",
        "test_examples",
        "test_install",
        "test_r_package",
        "test_site",
        "test_tutorials",
    ),
}
# Real processes wait more than they compute: they begin first, then what takes longest.
FIRST = (
    "deploy/nvflare",
    "test_install",
    "test_r_package",
    "portability/",
    "study/test_engines",
    "report/",
    "deploy/",
)


@pytest.fixture(scope="module")
def no_charts() -> Iterator[None]:
    """Leave charts out of cards: drawing them takes longer than most fits."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("fedlasso.models.svg.can_draw", lambda: False)
        yield


@pytest.fixture
def charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw charts although `no_charts` applies to the file."""
    monkeypatch.setattr("fedlasso.models.svg.can_draw", lambda: True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def path(item: pytest.Item) -> str:
        return item.nodeid.removeprefix("tests/")

    for item in items:
        for tier, paths in TIERS.items():
            if not any(map(item.get_closest_marker, TIERS)) and path(item).startswith(paths):
                item.add_marker(tier)
    ranks = [*FIRST, ""]
    items.sort(
        key=lambda item: next(i for i, each in enumerate(ranks) if path(item).startswith(each))
    )


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
