"""What tests of the page do with it: choose, look and take files away."""

import csv
import io
from pathlib import Path

from playwright.sync_api import Page


def choose(page: Page, control: str, value: str) -> None:
    page.select_option(f"#{control}", value)


def shown(page: Page, selector: str) -> str:
    return page.inner_html(selector)


def take(page: Page, kind: str, name: str) -> tuple[str, bytes]:
    """A file from the menu of a chart: its name and its bytes."""
    with page.expect_download() as event:
        page.locator(f"[data-take={kind}][data-of={name}]").evaluate("button => button.click()")
    return event.value.suggested_filename, Path(event.value.path()).read_bytes()


def downloaded(page: Page, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(take(page, "csv", name)[1].decode())))
