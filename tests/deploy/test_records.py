"""A site's data file: what its owner is told of it before anything is connected."""

from pathlib import Path

import pandas as pd
from helpers.nets import SECRET

from fedlasso.deploy.site_data import TableRecords


def test_owners_are_told_what_a_fit_would_refuse_or_be_told(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    frame = pd.DataFrame(
        {
            "u": [1.0, None, float("inf"), float("-inf")] * 10,
            "ward": ["north", "south", "south", None] * 9 + [SECRET] * 4,
            "day": pd.date_range("2020-01-01", periods=40),
            "y": range(40),
        }
    )
    frame.to_parquet(path, index=False)
    records = TableRecords(path)
    assert list(records.remarks(records.columns, 10)) == [
        ("day", "holds timestamp[us]; convert it to numbers or text, or --drop it"),
        ("u", "has 20 infinite values; a fit with it is refused"),
        ("u", "has 10 missing values; a fit with it needs --missing mean"),
        ("ward", "is text; 1 levels with 10 rows or more are reported"),
        ("ward", "has 9 missing values; a fit with it needs --missing mean"),
    ]
