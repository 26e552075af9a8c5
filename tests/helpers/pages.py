"""Fenced blocks of documentation pages, and what is said in them."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

_NUMBER = r"\d[\d.,]*(?:e[-+]?\d+)?"


def blocks(page: Path, *languages: str) -> Iterator[tuple[str, str]]:
    """The fenced blocks of a page in some languages, each with its language."""
    for language, text in re.findall(r"```(\w+)\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        if language in languages:
            # A backslash at the end of a line joins it with the next one.
            yield language, text.replace("\\\n", " ")


def words(text: str) -> list[str]:
    """What is said, without the digits: these may differ between processors."""
    return re.sub(_NUMBER, "#", text).split()


def check_output(said: str, shown: str) -> None:
    """Refuse other words, and numbers that differ by more than another processor's rounding."""
    assert words(said) == words(shown)
    here, there = (
        [float(number.replace(",", "").rstrip(".")) for number in re.findall(_NUMBER, text)]
        for text in (said, shown)
    )
    np.testing.assert_allclose(here, there, rtol=0.001, atol=1e-9)
