"""What the tests with real processes share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nets import SHORT, write_tables


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_tables(tmp_path_factory.mktemp("data"))


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Shortens the patience of the network that was opened last; the next one has its own."""
    from fedlasso.nvflare.link import Network

    opened: list[Network] = []
    begin = Network.__init__

    def note(self: Network, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        opened.append(self)

    def shorten() -> None:
        opened[-1]._timeout = SHORT

    monkeypatch.setattr(Network, "__init__", note)
    return shorten
