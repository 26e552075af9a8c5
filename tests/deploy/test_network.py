"""The coordinator's end of a line: sites that do not fit together, refusals, receipts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from helpers.deploy.doors import DoorLine, join_doors, make_door, make_doors
from helpers.nets import COLUMNS, FIT, SECRET, SITES, write_tables

from fedlasso import FedLassoError, InProcess, __version__
from fedlasso.deploy.network import Answer, Network
from fedlasso.errors import Interrupted, RefusalCode, Refused
from fedlasso.federation import decode, encode
from fedlasso.governance import Audit, Door, GuardedSite, Policy
from fedlasso.governance.door_messages import Described, Introduce, Refusal
from fedlasso.models import FileSource, NetworkSource, open_sites
from fedlasso.sites import FoldMoments, Rows, standardise
from fedlasso.sites.rows import all_folds

NEWER = encode(Refusal("not today", "another day", site="b"))
SERIES = ".".join(__version__.split(".")[:2])


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    return write_tables(tmp_path)


def source(*columns: str) -> NetworkSource:
    return NetworkSource("project", FIT, "y", columns)


def test_protocols_and_columns_must_agree(tables: dict[str, Path]) -> None:
    doors = make_doors(tables)
    network = join_doors(doors)
    bound = network.open(source(*COLUMNS))
    assert (bound.columns, bound.sites) == (COLUMNS, ("a", "b", "c"))
    assert bound.fingerprints == {i.site: i.fingerprint for i in network.introductions}
    assert (network.columns, network.loss) == (COLUMNS, "quadratic")
    # Versions may differ, as long as all speak one protocol.
    for version in (f"{SERIES}.99", f"{SERIES}9.0", "9"):
        doors["b"] = make_door(tables["b"], "b", version=version)
        other = join_doors(doors)
        assert other.open(source(*COLUMNS)) == bound
        assert other.other_versions() == {"b": version}
    doors["c"] = make_door(tables["c"], "c", version="0.0.9")
    # Versions before this rule told of no protocol.
    for number, shown in (("2", "2"), ("", "unknown")):
        doors["b"].protocol = doors["c"].protocol = number
        with pytest.raises(FedLassoError) as refused:
            join_doors(doors).open(source())
        assert str(refused.value) == (
            f"site 'b' runs fedlasso 9 (protocol {shown}), site 'c' runs fedlasso 0.0.9 (protocol "
            f"{shown}), the coordinator {__version__} (protocol 1); install versions with one "
            "protocol"
        )
    doors = make_doors(tables)
    doors["b"] = make_door(tables["b"], "b", Policy(columns=(*COLUMNS[1:], "y", "note")))
    with pytest.raises(FedLassoError, match="columns differ, only at 'a' and 'c': x00"):
        join_doors(doors).open(source())


def write_three(folder: Path, **columns: Sequence[Sequence[object]]) -> dict[str, Path]:
    """One file of forty rows per site, with what each column holds there in turn."""
    paths = {}
    for k, site in enumerate(SITES):
        values = {name: (list(given[k]) * 40)[:40] for name, given in columns.items()}
        paths[site] = folder / f"{site}.csv"
        pd.DataFrame(values | {"y": range(40)}).to_csv(paths[site], index=False)
    return paths


class Asked(DoorLine):
    """A line that notes what is asked."""

    def __init__(self, doors: dict[str, Door]) -> None:
        super().__init__(doors)
        self.names: list[str] = []

    def exchange(self, sites: Sequence[str], question: bytes, seconds: float) -> list[Answer]:
        self.names.append(type(decode(question)).__name__)
        return super().exchange(sites, question, seconds)


def test_levels_are_agreed_on_as_files_agree_on_them(tmp_path: Path) -> None:
    wards = [["n", "s"], ["n", "w"], [*["n"] * 18, "s", "rare"]]
    tables = write_three(tmp_path, ward=wards, u=[[1, 2], [None], [2, 3]])
    line = Asked(make_doors(tables))
    network = Network(line, list(tables), 1.0)
    bound = network.open(NetworkSource("project", FIT, "y", missing="mean"))
    files = tuple(str(path) for path in tables.values())
    _, schema = open_sites(FileSource(files, "y", missing="mean"))
    assert bound.schema == schema
    assert network.columns == schema.encoded == ("ward=s", "ward=w", "ward=(other)", "u")
    assert line.names == ["Introduce", "DescribeColumns", "FindOthers", "Open"]
    # A fit that goes on asks for none of it again.
    line.names.clear()
    assert network.open(bound) == bound
    assert line.names == ["Introduce", "Open"]


def test_numbers_alone_have_no_levels_to_ask_about(tmp_path: Path) -> None:
    line = Asked(make_doors(write_three(tmp_path, u=[[1, 2]] * 3)))
    Network(line, list(line.doors), 1.0).open(source())
    assert line.names == ["Introduce", "DescribeColumns", "Open"]


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (
            {"u": [[None], [1, 2], ["n", "s"]]},
            "column 'u' holds numbers at site 'b' but texts at site 'c'; make them alike",
        ),
        (
            {"u": [[1], [1], [1]], "id": [[f"{s}{k}" for k in range(40)] for s in SITES]},
            "text column 'id': no level has 10 rows or more at any site; group the levels",
        ),
        (
            {"u": [[1], [None, 2], [1]], "v": [["n"], ["n"], ["n", None]]},
            "site 'b': values missing in u; fill them, or use --missing mean",
        ),
        ({"u": [[1], [2], ["inf"]]}, "site 'c': column 'u' has infinite values; correct"),
    ],
)
def test_sites_that_do_not_agree_are_named_with_the_column(
    columns: dict[str, Any], text: str, tmp_path: Path
) -> None:
    with pytest.raises(FedLassoError) as refused:
        join_doors(make_doors(write_three(tmp_path, **columns))).open(source())
    assert str(refused.value).startswith(text)


def test_too_many_levels_together_are_refused_before_more_is_asked(tmp_path: Path) -> None:
    many = [[f"{site}{k:02d}" for k in range(100)] for site in SITES]
    tables = {}
    for k, site in enumerate(SITES):
        tables[site] = tmp_path / f"{site}.csv"
        pd.DataFrame({"u": many[k] * 10, "y": range(1000)}).to_csv(tables[site], index=False)
    line = Asked(make_doors(tables))
    with pytest.raises(FedLassoError, match="text column 'u' has 300 levels; group them"):
        Network(line, list(tables), 1.0).open(source())
    assert line.names[-1] == "DescribeColumns"


def test_what_a_site_tells_of_other_columns_is_an_error_that_names_it(
    tables: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    doors = make_doors(tables)
    other = Described('{"target":"y","columns":[]}', (), site="b")
    monkeypatch.setattr(doors["b"].records, "describe", lambda *_: other)
    with pytest.raises(FedLassoError, match="site 'b': the description is of other columns"):
        join_doors(doors).open(source(*COLUMNS))


def test_columns_that_only_number_the_rows_are_left_out_unless_chosen(tmp_path: Path) -> None:
    tables = write_three(tmp_path, id=[range(40), range(40), range(5)], u=[[1, 2]] * 3)
    network = join_doors(make_doors(tables))
    assert network.open(source()).columns == ("u",)
    assert network.left_out == ("id",)
    assert join_doors(make_doors(tables)).open(source("id", "u")).columns == ("id", "u")
    tables = write_three(tmp_path, id=[range(40)] * 3)
    with pytest.raises(FedLassoError, match="no predictors are left"):
        join_doors(make_doors(tables)).open(source())


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
    [("late", "site 'a' did not answer within 2 s"), ("lost", "site 'a' was lost; restart it")],
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

    with pytest.raises(FedLassoError, match=r"site 'a': .*does it run the same version"):
        Network(Noise(), ["a"], 2.0).ask(Rows())


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        (Policy(min_validation_rows=1000), RefusalCode.FEWER_FOLDS),
        (Policy(deny=("FoldMoments",)), RefusalCode.OTHER),
        (Policy(dry_run=True), RefusalCode.OTHER),
    ],
)
def test_a_refusal_has_the_same_code_in_process_and_over_a_network(
    tables: dict[str, Path], tmp_path: Path, policy: Policy, code: RefusalCode
) -> None:
    network = join_doors(make_doors(tables))
    network.open(source(*COLUMNS))
    guarded = []
    for name, door in network.line.doors.items():  # type: ignore[attr-defined]
        assert door._site is not None
        own = door._site.site
        guarded.append(GuardedSite(own, policy, Audit(tmp_path / "own" / f"{name}.jsonl"), FIT))
    view, _ = standardise(network)
    for door in network.line.doors.values():  # type: ignore[attr-defined]
        door._site.policy = policy
    refusals = []
    for federation in (network, InProcess(guarded)):
        with pytest.raises(Refused) as refused:
            federation.total(FoldMoments(all_folds(10, 0), on=view.name))
        refusals.append(refused.value)
    assert {str(refusal) for refusal in refusals} == {str(refusals[0])}
    assert all(refusal.code is code and refusal.sites == ("a",) for refusal in refusals)


def test_a_code_of_another_version_is_as_good_as_none(tables: dict[str, Path]) -> None:
    line = DoorLine(make_doors(tables), tampering={"Rows": lambda reply: NEWER})
    with pytest.raises(Refused, match="site 'b': not today") as refused:
        Network(line, ["b"], 1.0).ask(Rows())
    assert refused.value.code is RefusalCode.OTHER
