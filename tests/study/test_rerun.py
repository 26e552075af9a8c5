"""One replicate of a results folder, computed again."""

from pathlib import Path

import pandas as pd
import pytest
from helpers.study.small import OTHER, SMALL, STUDY

from fedlasso.errors import FedLassoError
from fedlasso.study import Store, rerun, run_study


def test_a_rerun_gives_the_recorded_numbers(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run_study(STUDY, [SMALL, OTHER], 3, store, workers=1)
    again = rerun(tmp_path, "other", 2)
    again = again[again["record"] == "outcome"]
    kept = store.table()
    kept = kept[(kept["scenario"] == "other") & (kept["replicate"] == 2)]
    columns = [name for name in kept if not name.startswith("seconds")]
    pd.testing.assert_frame_equal(
        again[columns].reset_index(drop=True),
        kept[columns].reset_index(drop=True),
        check_dtype=False,
    )


def test_what_a_folder_does_not_hold_is_one_clear_error(tmp_path: Path) -> None:
    run_study(STUDY, [SMALL], 1, Store(tmp_path), workers=1)
    with pytest.raises(FedLassoError, match="scenarios small; 'elsewhere' cannot be recomputed"):
        rerun(tmp_path, "elsewhere", 0)
