"""What the tests with real processes share."""

from pathlib import Path

import pytest
from nets import write_tables


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_tables(tmp_path_factory.mktemp("data"))
