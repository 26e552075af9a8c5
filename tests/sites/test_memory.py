"""What a site keeps between rounds: two rounds of a fit, a bounded number of files."""

from pathlib import Path

import numpy as np
import pytest

from fedlasso import FedLassoError
from fedlasso.sites import Memory


def test_memory_keeps_two_rounds_and_outlives_the_process(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    for t in (1, 2, 3):
        memory.store("fit", t, {"u": np.full(3, float(t))})
    again = Memory(tmp_path)
    assert again.recall("fit", 3)["u"].tolist() == [3, 3, 3]
    assert again.recall("fit", 2)["u"].tolist() == [2, 2, 2]
    assert again.recall("fit", 0) == {}
    with pytest.raises(FedLassoError, match="round 1 of this fit is not stored"):
        again.recall("fit", 1)


def test_memory_leaves_no_more_than_so_many_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedlasso.sites.memory._FILES", 4)
    memory = Memory(tmp_path)
    for t in (1, 2, 3):
        memory.store("fit", t, {"u": np.ones(1)})
    memory.store("second", 1, {"u": np.ones(1)})
    memory.store("third", 1, {"u": np.ones(1)})
    memory.store("third", 1, {"u": np.zeros(1)})
    with pytest.raises(FedLassoError, match="the limit of 4 stored rounds and views"):
        memory.store("fourth", 1, {"u": np.ones(1)})
    with pytest.raises(FedLassoError, match="of this fit is not stored"):
        memory.recall("fourth", 1)
