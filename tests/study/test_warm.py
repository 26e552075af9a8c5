"""Seconds of a study are those of code that has been used before."""

from pathlib import Path

from helpers.study.slow import Slow
from helpers.study.small import OTHER, SMALL

from fedlasso.study import Store, run_study


def test_no_replicate_pays_for_the_first_use(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run_study(Slow(), [SMALL, OTHER], 2, store, workers=1)
    rows = store.table()
    assert rows["seconds_penalty"].tolist() == [0.1] * 4
    assert rows["p"].tolist() == [SMALL.p] * 2 + [OTHER.p] * 2
