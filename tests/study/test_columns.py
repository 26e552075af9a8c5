"""The table of columns against the records that every study really writes."""

import pytest
from helpers.study.small import SMALL

from fedlasso.study import STUDIES
from fedlasso.study.real import RealStudy
from fedlasso.study.record_columns import COLUMNS, RECORDS, display_name, known, title


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(STUDIES))
def test_every_column_that_a_study_writes_is_in_the_table(name: str) -> None:
    study = STUDIES[name]()
    # A study of real data draws nothing: its scenarios are the data sets that are here.
    scenario = study.scenarios["diabetes"] if isinstance(study, RealStudy) else SMALL
    for record in study.replicate(scenario, 0):
        assert record["record"] in RECORDS
        for column in record:
            assert column in COLUMNS, column


def test_every_entry_is_complete() -> None:
    for name, column in COLUMNS.items():
        assert column.name == name
        assert column.label
        assert bool(column.caption) == (column.kind == "metric")
    headings = [COLUMNS[name].heading for name in known("axis", COLUMNS)]
    assert len(set(headings)) == len(headings)


def test_values_are_printed_in_words() -> None:
    assert title("epochs", 5) == "E = 5"
    assert display_name("epochs", 0) == "none"
    assert title("tuning", "joint") == "jointly tuned penalty"
    assert display_name("scenario", "unheard-of") == "unheard-of"
