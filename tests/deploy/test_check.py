"""`federation check`: how sites' columns differ, and Table 1 from sums, masked or not."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.deploy.doors import join_doors, make_doors
from helpers.governance.authority import Authority

from fedlasso.deploy.check_network import check_network
from fedlasso.fitting import Settings
from fedlasso.governance import Policy
from fedlasso.models import FileSource, NetworkSource
from fedlasso.models.checkup import check_files

BINOMIAL = Settings(family="binomial")
SITES = ("a", "b", "c")


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    paths = {}
    for k, name in enumerate(SITES):
        rng = np.random.default_rng(k)
        rows = 60 + 10 * k
        frame = pd.DataFrame({"age": rng.normal(60, 9, rows).round(1)})
        frame["ward"] = rng.choice(["east", "west", "main"], rows)
        frame["relapse"] = rng.choice(["yes", "no"], rows)
        frame["patient"] = np.arange(100 * k, 100 * k + rows)
        paths[name] = tmp_path / f"{name}.csv"
        frame.to_csv(paths[name], index=False)
    return paths


def source(**more: Any) -> NetworkSource:
    return NetworkSource(**{"project": "project", "fit": "", "target": "relapse"} | more)


@pytest.mark.parametrize("masked", [False, True], ids=["clear", "masked"])
@pytest.mark.parametrize("alone", [False, True], ids=["in sums", "each alone"])
def test_table_one_across_doors_is_that_of_the_files(
    masked: bool, alone: bool, tables: dict[str, Path], tmp_path: Path
) -> None:
    policy = Policy()
    if alone:
        policy = replace(policy, single=(*policy.single, "SummariseTable"))
    authority = Authority(tmp_path / "ca") if masked else None
    network = join_doors(make_doors(tables, policy, authority))
    checked = check_network(network, source(), BINOMIAL)
    files = tuple(map(str, tables.values()))
    here = check_files(FileSource(files=files, target="relapse"), BINOMIAL)
    assert checked.table is not None
    assert here.table is not None
    # Doors without an identity send clear sums, and each its own.
    each = alone or not masked
    assert checked.table.sites == (SITES if each else ())
    assert checked.table.events == (here.table.events if each else None)
    assert [column.pooled for column in checked.table.columns] == [
        column.pooled for column in here.table.columns
    ]
    if each:
        assert checked.table == here.table
    assert {f.column for f in checked.findings} == {"patient", "relapse"}
    assert checked.mends == 0


def test_names_that_differ_are_found_and_the_others_described(tables: dict[str, Path]) -> None:
    frame = pd.read_csv(tables["b"]).rename(columns={"age": "AGE"})
    frame.assign(extra=1.5).to_csv(tables["b"], index=False)
    checked = check_network(join_doors(make_doors(tables)), source(), BINOMIAL)
    mends = [str(finding) for finding in checked.findings if finding.mend]
    assert mends == [
        "site b, column 'AGE': is called 'age' at other sites; rename it",
        "site b, column 'extra': is not at a, c; add it there, or leave it out (--drop=extra)",
    ]
    assert checked.table is not None
    assert [column.name for column in checked.table.columns] == ["relapse", "ward"]


def test_a_refusal_is_a_finding(tables: dict[str, Path]) -> None:
    frame = pd.read_csv(tables["b"])
    frame["ward"] = np.arange(len(frame)) % 4
    frame.to_csv(tables["b"], index=False)
    checked = check_network(join_doors(make_doors(tables)), source(), BINOMIAL)
    (finding,) = [finding for finding in checked.findings if finding.mend]
    assert "column 'ward' holds texts at site 'a' but numbers at site 'b'" in str(finding)
    assert checked.table is None
