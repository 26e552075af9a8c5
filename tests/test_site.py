"""The documentation site is built without a warning, and fetches nothing from elsewhere."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import fedlasso
from fedlasso.federation.messages import PROTOCOL
from fedlasso.models import FitPlan, ModelDocument

ROOT = Path(__file__).parent.parent
# What a browser fetches by itself, by its element and attribute.
FETCHED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("link", "href")}


class Fetched(HTMLParser):
    """The addresses that a page has its browser fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if (tag, name) in FETCHED]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it: a broken link, or any other warning, ends it."""
    recipe = (ROOT / "Makefile").read_text().split("\ndocs:")[1].split("\n\n")[0]
    (options,) = re.findall(r"-m sphinx (.*) docs site", recipe)
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", *options.split(), ROOT / "docs", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "-W" in options.split()
    return folder


def test_every_page_is_there_and_fetches_nothing_from_elsewhere(site: Path) -> None:
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    for page in pages:
        text = (site / page.with_suffix(".html")).read_text(encoding="utf-8")
        reader = Fetched()
        reader.feed(text)
        assert reader.addresses
        assert [address for address in reader.addresses if "//" in address] == []
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", style.read_text("utf-8"))


def test_formulas_are_drawn_by_the_browser_itself(site: Path) -> None:
    for name in ("secant", "procedures"):
        page = (site / f"{name}.html").read_text(encoding="utf-8")
        formulas = re.findall("<math .*?</math>", page, re.DOTALL)
        assert len(formulas) > 50
        # What the converter does not know stays a command in TeX.
        assert [formula for formula in formulas if "\\" in formula] == []
        assert "$" not in re.sub("<pre>.*?</pre>", "", page, flags=re.DOTALL)


def test_the_citation_is_of_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {fedlasso.__version__}\n" in text


def test_the_policy_on_versions_has_todays_numbers() -> None:
    page = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
    assert f"| `model.json` ([fields](model.md)) | version {ModelDocument.version} |" in page
    plan = FitPlan.__struct_defaults__[-1]
    assert f"| `plan.json` of an unfinished fit | format_version {plan} |" in page
    assert f"| messages between coordinator and sites | protocol {PROTOCOL} |" in page
