"""Texts that users read are plain technical English: the worst words of a dialect are gone."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import fedlasso

PACKAGE = Path(fedlasso.__file__).parent
ROOT = Path(__file__).parent.parent
# What they stand for: send, report, print, option, probability, fraction, weight, requested.
WORST = re.compile(
    r"\b(told|tells?|telling|wish|wishes|likeliest|stands? still|NOT WELL|chances|dealt|is worth|"
    r"asked for|a share of|the share of)\b"
)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"]


def texts() -> Iterator[tuple[str, str]]:
    for page in [*PAGES, *sorted((ROOT / "docs").rglob("*.md"))]:
        yield page.name, page.read_text("utf-8")
    for template in sorted((PACKAGE / "report" / "templates").glob("*.*")):
        yield template.name, template.read_text("utf-8")
    for source in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{source.relative_to(PACKAGE)}:{node.lineno}", node.value


def test_the_worst_words_are_gone() -> None:
    found = [(place, word) for place, text in texts() for word in WORST.findall(text)]
    assert found == []
