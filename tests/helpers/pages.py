"""Fenced blocks of documentation pages, and what is said in them."""

import re
from collections.abc import Iterator
from pathlib import Path


def blocks(page: Path, *languages: str) -> Iterator[tuple[str, str]]:
    """The fenced blocks of a page in some languages, each with its language."""
    for language, text in re.findall(r"```(\w+)\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        if language in languages:
            # A backslash at the end of a line joins it with the next one.
            yield language, text.replace("\\\n", " ")


def words(text: str) -> list[str]:
    """What is said, without the digits: these may differ between processors."""
    return re.sub(r"\d[\d.,]*(e[-+]?\d+)?", "#", text).split()
