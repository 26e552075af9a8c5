"""Numbers are counted against entries; other sites' rows count no more than a site's own."""

import pytest

from fedlasso.governance import counting


def test_rows_of_a_large_neighbour_do_not_raise_the_limit() -> None:
    assert counting.count_rows(50) == 50
    assert counting.count_rows(50, (20, 10_000, 50)) == 50 + 20 + 50 + 50


def test_numbers_are_a_fraction_of_rows_times_columns() -> None:
    assert counting.fraction_of(30, 60, 5) == pytest.approx(0.1)
    assert counting.fraction_of(30, 0, 0) == 30
    assert counting.fraction_text(0.1) == "10%"
