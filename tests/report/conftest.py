"""A small study, run once for all workers of a test run, and its report."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.browsing import open_browser
from helpers.study.small import OTHER
from helpers.waiting import wait_until
from playwright.sync_api import Browser, ConsoleMessage, Page, Request

from fedlasso.report import figures, write
from fedlasso.report.records import Results, read_results
from fedlasso.report.write import write_report
from fedlasso.study import PaperStudy, Scenario, Store, run_study

BASELINE = Scenario("baseline", sizes=(20, 16, 12), p=30, nonzeros=4, validation=12, test=40)
STUDY = PaperStudy(seed=7, epochs=(1, 5, 20), budgets=(30, 100))


@pytest.fixture
def svg_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are drawn, but written in one format: what is tested is not in the other two."""
    monkeypatch.setattr(figures, "FORMATS", {"svg": figures.FORMATS["svg"]})
    for turn in ("draft_tex", "compile_tex"):
        monkeypatch.setattr(write, turn, lambda folder: None)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Results of two scenarios and four replicates, and their report.

    The worker that comes first builds them; the others wait for it.
    """
    base = tmp_path_factory.getbasetemp()
    place = (base if worker_id == "master" else base.parent) / "small-study"
    try:
        place.mkdir()
    except FileExistsError:
        ended = [place / "done", place / "failed"]
        wait_until(lambda: any(mark.exists() for mark in ended), "another worker's report")
        assert (place / "done").exists(), "the worker that built the report failed"
        return place
    with contextlib.ExitStack() as stack:
        stack.callback((place / "failed").touch)
        run_study(STUDY, [BASELINE, OTHER], 4, Store(place / "results"), workers=1)
        write_report(place / "results", place / "report")
        (place / "done").touch()
        stack.pop_all()
    return place


@pytest.fixture(scope="session")
def folder(built: Path) -> Path:
    """The results folder."""
    return built / "results"


@pytest.fixture(scope="session")
def results(folder: Path) -> Results:
    """What the report was made from."""
    return read_results(folder)


@pytest.fixture(scope="session")
def report(built: Path) -> Path:
    """Where the report is."""
    return built / "report"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, results: Results, report: Path) -> Iterator[Page]:
    """The page, loaded; at the end, nothing was logged and nothing was fetched."""
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(10_000)
    page = context.new_page()
    complaints: list[str] = []
    fetched: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        complaints.append(f"{message.type}: {message.text}")

    def watch(request: Request) -> None:
        fetched.append(request.url)

    page.on("console", hear)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", watch)
    page.goto((report / "index.html").as_uri())
    page.wait_for_selector("#grid-table tbody tr")
    yield page
    assert complaints == []
    own = ((report / "index.html").as_uri(), "data:", "blob:")
    assert [url for url in fetched if not url.startswith(own)] == []
    context.close()
