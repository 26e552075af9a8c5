"""What a door tells of columns before a fit, and what it makes of the schema it is given."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.deploy.doors import make_door
from helpers.nets import FIT, SECRET, opening

from fedlasso.deploy.schemas import write_schema
from fedlasso.federation import Message, Reply, Request, decode, encode
from fedlasso.governance import Door, Entry, Policy
from fedlasso.governance.consent import Transfer
from fedlasso.governance.door_messages import (
    DescribeColumns,
    Described,
    FindOthers,
    Opened,
    Others,
    Refusal,
)
from fedlasso.governance.refusals import SILENCE
from fedlasso.sites.views import ColumnSums
from fedlasso.tables import Column, Schema

U = Column("u", "number")
WARD = Column("ward", "text", ("north", "south", "(other)"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Thirty rows: two common wards, one of four rows, one secret row, and one missing."""
    wards = ["north"] * 14 + ["south"] * 10 + ["west"] * 4 + [SECRET, ""]
    lines = [f"{k},{ward},{k / 2},,word {k}" for k, ward in enumerate(wards)]
    lines[3] = ",north,1.5,,word 3"
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["u,ward,y,nothing,id", *lines]) + "\n")
    return path


def door(path: Path, **rules: Any) -> Door:
    """A door that encodes what it is given, also rare levels and few missing values."""
    plain = {"pool_rare_levels": False, "min_cell_rows": 0}
    return make_door(path, "a", Policy(**(plain | rules)))


def ask(site: Door, request: Request[Any]) -> Message:
    return decode(site.answer_bytes(encode(request)))


def refusal(site: Door, request: Request[Any]) -> str:
    """The words of a refusal, which are in the audit."""
    refused = ask(site, request)
    assert isinstance(refused, Refusal)
    assert SECRET not in refused.text
    # Nor does it say where the site keeps its files.
    assert str(site.memory.parent.parent) not in refused.text
    # The audit may have counts as well.
    why = list(site.audit.entries())[-1].why
    assert why == refused.text or set(re.findall("[a-z]+", why)) & set(refused.text.split())
    return refused.text


def asking(**changes: Any) -> DescribeColumns:
    wanted = ("u", "ward", "nothing")
    return replace(DescribeColumns(FIT, "y", wanted, (), 10), **changes)


def joining(*columns: Column, **changes: Any) -> Any:
    return opening(Schema("y", columns), **changes)


def levels(site: Door, **changes: Any) -> list[str]:
    reported = ask(site, asking(**changes))
    assert isinstance(reported, Described)
    (ward,) = [c for c in json.loads(reported.schema)["columns"] if c["name"] == "ward"]
    found: list[str] = ward.get("levels", [])
    return found


def test_kinds_and_common_levels_are_told_and_nothing_of_rare_ones(path: Path) -> None:
    site = door(path)
    reported = ask(site, asking())
    assert isinstance(reported, Described)
    assert json.loads(reported.schema) == {
        "target": "y",
        "family": "linear",
        "event": None,
        "offset": None,
        "weights": None,
        "cluster": None,
        "classes": [],
        "columns": [
            {"name": "u", "kind": "number"},
            {"name": "ward", "kind": "text", "levels": ["north", "south"]},
            {"name": "nothing", "kind": "empty"},
        ],
        "na": [],
        "formula": None,
    }
    (entry,) = site.audit.entries()
    assert (entry.fit, entry.question, entry.verdict) == ("", "DescribeColumns", "sent")
    assert entry.size > 0


def test_the_site_and_whoever_asks_both_set_how_many_rows_a_level_needs(path: Path) -> None:
    assert levels(door(path), min_level=1) == ["north", "south"]
    # The next number on the grid is 20, so that trying numbers does not count the rows.
    assert levels(door(path), min_level=11) == levels(door(path), min_level=20) == []
    assert levels(door(path, min_level_rows=14)) == ["north"]
    assert levels(door(path, min_level_rows=3), min_level=4) == ["north", "south", "west"]


@pytest.mark.parametrize(
    ("changes", "rules", "text"),
    [
        ({"columns": ("u", "id")}, {"columns": ("u", "y")}, "there is no column 'id' here"),
        ({"target": "none"}, {}, "there is no column 'none' here"),
        ({"columns": ("u", "u")}, {}, "a column is named twice"),
        ({}, {"min_rows": 31}, "30 training rows here, but the policy requires at least 31"),
        ({"na": (".", SECRET[:7])}, {}, "does not let 'patient' count as missing"),
        ({"fit": "../../etc"}, {}, "the fit's identity is not valid"),
        ({"target": "ward", "columns": ("u",)}, {}, "the target 'ward' is not numeric"),
    ],
)
def test_what_is_not_told_is_refused_in_words_and_written_down(
    changes: dict[str, Any], rules: dict[str, Any], text: str, path: Path
) -> None:
    assert text in refusal(door(path, **rules), asking(**changes))


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ({"dry_run": True}, "dry run: the types of 3 columns would have left"),
        ({"approval": True}, "the transfer was not approved here"),
    ],
)
def test_what_depends_on_the_records_is_refused_in_one_sentence(
    rules: dict[str, Any], why: str, path: Path
) -> None:
    site = door(path, **rules)
    refused = ask(site, asking())
    assert isinstance(refused, Refusal)
    assert refused.text == SILENCE
    assert [entry.why for entry in site.audit.entries()] == [why]


def test_whoever_approves_sees_the_levels_and_the_fit(path: Path) -> None:
    site = door(path, approval=True)
    seen: list[tuple[Entry, Reply]] = []

    def approve(transfers: Sequence[Transfer]) -> bool:
        seen.extend(transfers)
        return True

    site.approve = approve
    assert isinstance(ask(site, asking()), Described)
    ((entry, reply),) = seen
    assert (entry.fit, entry.question) == (FIT, "DescribeColumns")
    assert isinstance(reply, Described)
    assert "north" in reply.schema


def test_codes_and_stray_texts_are_read_as_files_read_them(tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    values = [*map(str, range(26)), "-999", ".", SECRET, "3"]
    path.write_text("id,u,y\n" + "".join(f"{k},{v},{k}\n" for k, v in enumerate(values)))
    site = door(path, na_codes=(".", "-999", "patient"))
    words = refusal(site, asking(columns=("u",)))
    assert words.startswith("column 'u' holds texts among numbers; correct them there, or use --na")
    path.write_text(path.read_text().replace(SECRET, "patient"))
    site = door(path, na_codes=(".", "-999", "patient"))
    reported = ask(site, asking(columns=("id", "u"), na=(".", "-999", "patient")))
    assert isinstance(reported, Described)
    assert reported.row_numbers == ("id",)
    assert json.loads(reported.schema)["columns"][1] == {"name": "u", "kind": "number"}
    codes = (".", "-999", "patient")
    coded = Schema("y", (U,), codes)
    assert isinstance(ask(site, opening(coded, na=codes, missing="mean")), Opened)
    sums: Any = ask(site, ColumnSums(missing=True))
    assert (sums.sums.tolist(), sums.missing.tolist()) == ([sum(range(26)) + 3], [3])
    assert "other columns or codes" in refusal(site, opening(coded, na=("-999",), missing="mean"))


def test_others_are_found_by_column_alone(path: Path) -> None:
    site = door(path)

    def others(*names: str) -> Message:
        schema = Schema("y", (U, Column("ward", "text", names)))
        return ask(site, FindOthers(FIT, "y", ("u", "ward"), write_schema(schema), ()))

    for names, found in ((("north", "south"), ("ward",)), (("north", "south", "west", SECRET), ())):
        reply = others(*names)
        assert isinstance(reply, Others)
        assert reply.columns == found


def test_a_site_encodes_by_the_schema_it_is_given(path: Path) -> None:
    site = door(path)
    wards = Column("ward", "text", ("east", "north", "south", "west", "(other)"))
    assert isinstance(ask(site, joining(U, wards, missing="mean")), Opened)
    sums: Any = ask(site, ColumnSums(missing=True))
    assert sums.sums.tolist() == [sum(range(30)) - 3, 14, 10, 4, 1]
    assert sums.missing.tolist() == [1, 1, 1, 1, 1]


def test_rare_levels_are_pooled_where_the_policy_says_so(path: Path) -> None:
    site = door(path, pool_rare_levels=Policy().pool_rare_levels)
    assert levels(site) == ["north", "south"]
    wards = Column("ward", "text", ("north", "south", "west", SECRET, "(other)"))
    assert isinstance(ask(site, joining(wards, missing="mean")), Opened)
    sums: Any = ask(site, ColumnSums(missing=True))
    assert sums.sums.tolist() == [10, 0, 0, 5]
    bare = Column("ward", "text", ("north", "south", "west", SECRET))
    assert "rows outside the 4 agreed levels" in refusal(site, joining(bare, missing="mean"))


def test_others_that_are_few_are_joined_by_the_rarest_level(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    wards = ["north"] * 20 + ["south"] * 12 + ["west"] * 3
    path.write_text("ward,y\n" + "".join(f"{ward},{k}\n" for k, ward in enumerate(wards)))
    site = make_door(path, "a")
    assert levels(site, columns=("ward",)) == ["(other)", "north"]
    agreed = Column("ward", "text", ("north", "south", "west", "(other)"))
    assert isinstance(ask(site, joining(agreed)), Opened)
    sums: Any = ask(site, ColumnSums())
    assert sums.sums.tolist() == [0, 0, 15]


@pytest.mark.parametrize(
    ("columns", "changes", "text"),
    [
        ((U, WARD), {}, "site 'a': values missing in u, ward; fill them, or use --missing mean"),
        ((U,), {"missing": "guess"}, "unknown treatment of missing values 'guess'"),
        ((U,), {"schema": "{"}, "the columns cannot be read"),
        ((U,), {"schema": "[" * 100_000}, "the columns cannot be read"),
        ((U,), {"schema": '{"target":"y","columns":[]}'}, "is of other columns or codes"),
        ((U,), {"target": "nothing"}, "is of other columns or codes"),
        ((Column("u", "number", ("a",)),), {}, "1 levels do not fit a number column"),
        ((Column("ward", "text", ("a", "a")),), {}, "2 levels do not fit a text column"),
        ((Column("u", "text", ("1",)),), {}, "column 'u' holds numbers here but texts elsewhere"),
        ((Column("ward", "number"),), {}, "column 'ward' holds texts here"),
        ((Column("ward", "text", ("north",)),), {}, "rows outside the 1 agreed levels"),
        (
            (Column("ward", "text", tuple(f"{k:03d}" for k in range(201))),),
            {},
            "text column 'ward' has 201 levels; group them",
        ),
    ],
)
def test_a_schema_that_does_not_fit_is_refused_without_a_value(
    columns: tuple[Column, ...], changes: dict[str, Any], text: str, path: Path
) -> None:
    assert text in refusal(door(path), joining(*columns, **changes))


def test_infinite_values_and_a_target_with_gaps_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    path.write_text("u,v,y\n" + "1,2,3\n" * 27 + "1e200,2,3\ninf,2,3\n1,2,\n")
    site = door(path)
    words = refusal(site, opening(Schema("v", (U,)), missing="mean"))
    assert words == "site 'a': column 'u' has infinite values; correct or remove them"
    path.write_text(path.read_text().replace("inf", "0"))
    site = door(path)
    words = refusal(site, opening(Schema("v", (U,)), missing="mean"))
    assert words.startswith("site 'a': column 'u' has a value, too large to be squared and summed")
    words = refusal(site, joining(Column("v", "number"), missing="mean"))
    assert words == "site 'a': the target 'y' is missing in some rows; remove those rows"
