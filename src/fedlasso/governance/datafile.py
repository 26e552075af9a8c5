"""A site's data file as its door sees it, and which of its columns may be asked about."""

from typing import Protocol

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.governance.door_messages import (
    AboutColumns,
    DescribeColumns,
    Described,
    FindOthers,
    Open,
)
from fedlasso.governance.entries import list_names
from fedlasso.governance.policy import Policy, Rare
from fedlasso.governance.refusals import CorrectableRefusal
from fedlasso.numerics import Table
from fedlasso.sites import Site
from fedlasso.sites.fold_assignment import few_apart


class DataFile(Protocol):
    """A site's data file: names of all columns, number of rows, a keyed hash as it was read.

    What is `rare` is read as one.
    """

    columns: tuple[str, ...]
    rows: int
    fingerprint: str

    def check_unchanged(self) -> None:
        """Refuse if the file is not what was read."""

    def describe(self, name: str, asked: DescribeColumns, fewest: int, rare: Rare) -> Described:
        """What columns hold, with the levels that so many rows have at least."""

    def find_others(self, name: str, asked: FindOthers, rare: Rare) -> tuple[str, ...]:
        """Text columns with rows at none of the levels named."""

    def site(self, name: str, opening: Open, rare: Rare) -> Site:
        """All records of some columns as a site, which draws its splits with a secret."""


def check_columns(records: DataFile, policy: Policy, asked: AboutColumns) -> None:
    """Refuse what the policy does not show, and what few rows would be told by."""
    policy.check_rows(records.rows, "here")
    wanted = (*asked.outcome, *asked.columns)
    here = set(records.columns)
    for column in wanted:
        if column not in here or not policy.shows(column):
            raise FedLassoError(f"there is no column {column!r} here")
    if len(set(wanted)) < len(wanted):
        raise FedLassoError("a column is named twice; name each once")
    for code in asked.na:
        # Whoever may call any value missing learns how many rows hold it.
        if code not in policy.na_codes:
            raise FedLassoError(
                f"the policy here does not let {code!r} count as missing; add it to na_codes"
            )


def check_cells(site: Site, asked: Open, policy: Policy) -> None:
    """Refuse columns in which a few rows stand apart: sums would tell of those few.

    Of survival times it is the events that are told. Weights may single out rows as well, all the
    more where they are so uneven that few rows make up all sums.
    """
    cell = policy.min_cell_rows
    everybody = np.arange(site.table.n)
    apart = few_apart(site.table, everybody, cell)
    found = [name for name, few in zip(site.columns, apart, strict=True) if few]
    response = site.response
    told = {asked.event or asked.target: site.training.loss.disclosed_response(response.y)}
    if asked.offset:
        told |= {asked.offset: response.offset, f"{asked.target} - {asked.offset}": site.told}
    told |= {asked.weights: response.weights} if asked.weights else {}
    for name, numbers in told.items():
        found += [name] if few_apart(Table(numbers[:, None]), everybody, cell)[0] else []
    if found:
        raise CorrectableRefusal(
            f"{list_names(found)} differ from their commonest value in fewer than {cell} rows "
            "here; leave them out with --drop, or group their values"
        )
    share = response.weights / response.weights.max()
    if share.sum() ** 2 < policy.min_rows * float(share @ share):
        raise CorrectableRefusal(
            f"weights in {asked.weights!r} are so uneven that sums here would be those of fewer "
            f"than {policy.min_rows} rows; give others, or none"
        )
    holes = site.table.missing(np.ones(site.table.n))
    found = [n for n, k in zip(site.columns, holes, strict=True) if 0 < k < cell]
    if found:
        raise CorrectableRefusal(
            f"{list_names(found)} are missing in fewer than {cell} rows here; leave them out with "
            "--drop, or fill them in there"
        )
