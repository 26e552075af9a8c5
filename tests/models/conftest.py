"""One federation of files and its default model, which several files of tests read."""

import pytest
from helpers.models.files import write_sites

from fedlasso import InProcess
from fedlasso.fitting import Settings
from fedlasso.models import FileSource, ModelDocument, make_model, open_sites
from fedlasso.tables import Schema


@pytest.fixture(scope="session")
def opened(tmp_path_factory: pytest.TempPathFactory) -> tuple[InProcess, Schema]:
    files = write_sites(tmp_path_factory.mktemp("sites"))
    return open_sites(FileSource(tuple(map(str, files)), "y"))


@pytest.fixture(scope="session")
def document(opened: tuple[InProcess, Schema]) -> ModelDocument:
    federation, schema = opened
    return make_model(federation, Settings(), schema, compare=True)
