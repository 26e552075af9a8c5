"""The table of columns against the records that every study really writes."""

import pytest
from study.small import SMALL

from fedlasso.study import STUDIES
from fedlasso.study.columns import COLUMNS, RECORDS, axes, known


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_every_column_that_a_study_writes_is_in_the_table(name: str) -> None:
    for record in STUDIES[name]().replicate(SMALL, 0):
        for column, value in record.items():
            assert column in COLUMNS, column
            if value is not None:
                assert record["record"] in COLUMNS[column].records, column


def test_every_entry_is_complete() -> None:
    for name, column in COLUMNS.items():
        assert column.name == name
        assert column.label
        assert set(column.records) <= set(RECORDS)
        assert bool(column.caption) == (column.kind == "metric")
    headings = [COLUMNS[name].heading for name in known("axis", COLUMNS)]
    assert len(set(headings)) == len(headings)


def test_values_are_printed_in_words() -> None:
    assert axes()["epochs"].title(5) == "E = 5"
    assert axes()["epochs"].say(0) == "none"
    assert axes()["tuning"].title("joint") == "jointly tuned penalty"
    assert axes()["scenario"].say("unheard-of") == "unheard-of"
