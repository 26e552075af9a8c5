"""What a data protection officer is told is unusual, and what numbers are compared with."""

import secrets
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from helpers.deploy.default_data import STUDIES, fit_by_default
from helpers.deploy.doors import DoorLine, make_doors
from helpers.governance.authority import Authority
from helpers.nets import SITES

from fedlasso.deploy.network import Network
from fedlasso.federation import Ledger
from fedlasso.governance import Door, Policy
from fedlasso.governance.audit_report import write_audit_page
from fedlasso.governance.officer_summary import (
    OFTEN,
    OFTEN_PER_COLUMN,
    find_unusual,
    summarise_files,
)
from fedlasso.models import NetworkSource
from fedlasso.sites import GradientAt, standardise

# Answers of one kind in usual fits of ten columns.
USUAL = OFTEN + 10 * OFTEN_PER_COLUMN


def unusual(door: Door) -> list[str]:
    return list(find_unusual(list(door.audit.entries())))


def page(door: Door) -> str:
    return write_audit_page(door.name, "trial", door.audit, Policy())


def doors_of(study: str, folder: Path, masked: bool = True) -> dict[str, Door]:
    tables = STUDIES[study]().write(folder / "tables")
    return make_doors(tables, None, Authority(folder / "authority") if masked else None)


def check_percent(doors: Mapping[str, Door]) -> None:
    """The report and the guard compare numbers with the same."""
    for door in doors.values():
        (file,) = summarise_files(door.audit.entries())
        assert file.percent == pytest.approx(100 * door.lifetime.used("numbers"))


@pytest.mark.parametrize("compare", [False, True])
@pytest.mark.parametrize(
    ("study", "columns"), [("diabetes, linear", 10), ("breast cancer, two classes", 31)]
)
def test_ordinary_fits_are_not_unusual(
    study: str, columns: int, compare: bool, tmp_path: Path, no_charts: None
) -> None:
    doors = doors_of(study, tmp_path)
    fit_by_default(STUDIES[study](), doors, compare=compare)
    check_percent(doors)
    rows = {name: door.records.rows for name, door in doors.items()}
    for name, door in doors.items():
        assert unusual(door) == []
        shown = page(door)
        assert "Nothing unusual was asked" in shown
        # Another site has at most one record more here.
        total = sum(min(count, rows[name]) for count in rows.values())
        values = f"{total:,} records in {columns} columns, which are {total * columns:,} values"
        assert values in shown
        assert "is about the records of all sites" in shown


def test_the_same_fit_again_counts_once(tmp_path: Path) -> None:
    study = "diabetes, linear"
    doors = doors_of(study, tmp_path)
    fit_by_default(STUDIES[study](), doors)
    (before,) = summarise_files(doors["a"].audit.entries())
    fit_by_default(STUDIES[study](), doors)
    (after,) = summarise_files(doors["a"].audit.entries())
    assert (after.numbers, after.percent) == (before.numbers, before.percent)
    assert after.again == before.numbers
    assert f"Another {after.again:,} numbers had been sent before" in page(doors["a"])


def test_clear_sums_are_compared_with_the_records_of_the_site_alone(tmp_path: Path) -> None:
    study = "diabetes, linear"
    doors = doors_of(study, tmp_path, masked=False)
    fit_by_default(STUDIES[study](), doors)
    check_percent(doors)
    rows = doors["a"].records.rows
    values = f"{rows} records in 10 columns, which are {rows * 10:,} values"
    assert f"Every number is about the records of this site alone: {values}" in page(doors["a"])


@pytest.mark.parametrize(("fits", "times"), [(1, USUAL + 1), (4, USUAL // 2 + 1)])
def test_many_questions_at_chosen_models_are_unusual(fits: int, times: int, tmp_path: Path) -> None:
    """Also if the coordinator distributes them over several fits."""
    study = "diabetes, linear"
    doors = doors_of(study, tmp_path)
    rng = np.random.default_rng(0)
    for _ in range(fits):
        network = Network(DoorLine(doors), list(SITES), 10.0)
        network.open(NetworkSource("project", secrets.token_hex(16), "y"))
        view, _ = standardise(Ledger(network))
        for b in rng.normal(0.0, 0.1, (times, 10)):
            view.total(GradientAt(b))
    where = "data file" if fits > 1 else "fit"
    for door in doors.values():
        check_percent(doors)
        lines = unusual(door)
        assert len(lines) == 1
        assert lines[0].startswith(where)
        assert "answers at models that the coordinator chose (GradientAt)" in lines[0]
        assert "Unusual: " in page(door)
