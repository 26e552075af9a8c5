"""A real browser for tests of pages; tests that use it are marked `needs("browser")`."""

from collections.abc import Iterator
from contextlib import contextmanager

from helpers.programs import program
from playwright.sync_api import Browser, sync_playwright

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Open a browser that asks the network for nothing of its own."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program("browser"), args=FLAGS)
        yield browser
        browser.close()
