"""Looks of methods, and how numbers with their standard errors are printed."""

import re

import pandas as pd
import pytest

from fedlasso.procedures import REGISTRY
from fedlasso.report.figures import looks
from fedlasso.report.filling import read_template
from fedlasso.report.tables import mean_se


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def test_no_two_methods_look_alike() -> None:
    drawn = looks([*REGISTRY, *(f"other {i}" for i in range(35))]).values()
    assert len({(look.colour, look.marker) for look in drawn}) == len(drawn)
    assert len({(look.colour, look.shape) for look in drawn}) == len(drawn)


@pytest.mark.parametrize("theme", [0, 1])
def test_every_colour_stands_out_from_the_page(theme: int) -> None:
    page = re.findall(r"--back: (#\w{6})", read_template("page.css"))[theme]
    for method, look in looks(REGISTRY).items():
        assert contrast(look.colour, page) >= 3, method


def test_small_standard_errors_keep_two_digits() -> None:
    mean = pd.Series([1.803, 0.0067, 2.5, 0.1])
    se = pd.Series([0.042, 0.00099, 0.044, float("nan")])
    assert mean_se(mean, se) == ["1.803 (0.042)", "0.00670 (0.00099)", "2.500 (0.044)", "0.100 (—)"]


def test_rounding_is_printed_as_zero() -> None:
    mean = pd.Series([0.0709, 8.9e-16, -8.9e-16, 2.6e-9])
    se = pd.Series([0.0075, 8.9e-16, 4.4e-16, 1.5e-9])
    reported = ["0.0709 (0.0075)", "0.0000 (0.0000)", "0.0000 (0.0000)", "2.6e−09 (1.5e−09)"]
    assert mean_se(mean, se) == reported
