"""The coordinator's end of a line: sites that do not fit together, refusals, receipts."""

from pathlib import Path

import pytest
from deploy.doors import join_doors, make_door, make_doors
from nets import COLUMNS, FIT, SECRET, write_tables

from fedlasso import FedLassoError
from fedlasso.deploy.network import Answer, Network
from fedlasso.errors import Interrupted
from fedlasso.governance import Policy
from fedlasso.governance.door import Introduce
from fedlasso.models import NetworkSource
from fedlasso.sites import Rows


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    return write_tables(tmp_path)


def source(*columns: str) -> NetworkSource:
    return NetworkSource("project", FIT, "y", columns)


def test_versions_and_columns_must_agree(tables: dict[str, Path]) -> None:
    doors = make_doors(tables)
    network = join_doors(doors)
    bound = network.open(source(*COLUMNS))
    assert (bound.columns, bound.sites) == (COLUMNS, ("a", "b", "c"))
    assert bound.fingerprints == {i.site: i.fingerprint for i in network.introductions}
    assert (network.columns, network.loss) == (COLUMNS, "quadratic")
    doors["b"] = make_door(tables["b"], "b", version="0.0.9")
    with pytest.raises(FedLassoError, match=r"site 'b' runs fedlasso 0.0.9, the coordinator"):
        join_doors(doors).open(source())
    doors["b"] = make_door(tables["b"], "b", Policy(columns=(*COLUMNS[1:], "y", "note")))
    with pytest.raises(FedLassoError, match="columns differ, 'a' alone: x00; 'c' alone: x00"):
        join_doors(doors).open(source())


def test_a_refusal_is_no_receipt(tables: dict[str, Path], tmp_path: Path) -> None:
    network = join_doors(make_doors(tables))
    network.open(source(*COLUMNS))
    network.receipts = tmp_path / "receipts.txt"
    tables["b"].write_text(tables["b"].read_text().replace(SECRET, "changed"))
    with pytest.raises(FedLassoError, match="site 'b': the data file has changed"):
        network.ask(Rows())
    lines = network.receipts.read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["a", "c"]


def test_a_line_that_says_nothing_of_us_is_no_reply(tables: dict[str, Path]) -> None:
    doors = make_doors(tables)
    doors["b"] = doors["a"]
    with pytest.raises(FedLassoError, match="site 'b' answered in another's name"):
        join_doors(doors).replies(Introduce())


@pytest.mark.parametrize(
    ("kind", "text"),
    [("late", "site 'a' did not answer within 2 s"), ("lost", "site 'a' was lost; bring it back")],
)
def test_who_does_not_answer_is_named(kind: str, text: str) -> None:
    class Silent:
        def exchange(self, sites: object, question: bytes, seconds: float) -> list[Answer]:
            return [Answer("a", kind, b"")]  # type: ignore[arg-type]

    with pytest.raises(Interrupted, match=text):
        Network(Silent(), ["a"], 2.0).ask(Rows())


def test_what_nobody_can_read_is_an_error_that_names_the_site() -> None:
    class Noise:
        def exchange(self, sites: object, question: bytes, seconds: float) -> list[Answer]:
            return [Answer("a", "reply", b"FL1 nonsense")]

    with pytest.raises(FedLassoError, match=r"site 'a': .*is fedlasso the same there"):
        Network(Noise(), ["a"], 2.0).ask(Rows())
