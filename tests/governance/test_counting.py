"""Numbers are counted against entries; other sites' rows count no more than a site's own."""

import pytest

from fedlasso.governance import Policy, counting


def test_rows_of_a_large_neighbour_do_not_raise_the_limit() -> None:
    assert counting.count_rows(50) == 50
    assert counting.count_rows(50, (20, 10_000, 50)) == 50 + 20 + 50 + 50


def test_numbers_are_a_fraction_of_rows_times_columns() -> None:
    assert counting.fraction_of(30, 60, 5) == pytest.approx(0.1)
    assert counting.fraction_of(30, 0, 0) == 30
    assert counting.fraction_text(0.1) == "10%"


def test_a_file_sends_fewer_numbers_than_it_has_entries_by_default() -> None:
    limit = Policy().max_numbers
    assert limit < 1
    # One of three equal sites whose sums are masked: the entries are those of all three.
    numbers = limit * counting.count_rows(50, (50, 50)) * 4
    assert counting.fraction_of(numbers, 50, 4) == pytest.approx(3 * limit)
