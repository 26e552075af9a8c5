"""The interface to a site's data file, and checks of which columns a fit may use."""

from typing import Protocol

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.governance.consent import list_names
from fedlasso.governance.door_messages import (
    AboutColumns,
    DescribeColumns,
    Described,
    FindOthers,
    Open,
)
from fedlasso.governance.policy import Policy, Rare
from fedlasso.governance.refusals import CorrectableRefusal
from fedlasso.numerics import Table
from fedlasso.sites import Site
from fedlasso.sites.fold_assignment import few_apart


class DataFile(Protocol):
    """A site's data file: names of all columns, number of rows, a keyed hash of its contents.

    Levels that are `rare` are read as one.
    """

    columns: tuple[str, ...]
    rows: int
    fingerprint: str

    def check_unchanged(self) -> None:
        """Raise an error if the file has changed since it was read."""

    def describe(self, name: str, asked: DescribeColumns, fewest: int, rare: Rare) -> Described:
        """Return the types of columns, with the levels that at least `fewest` rows have."""

    def find_others(self, name: str, asked: FindOthers, rare: Rare) -> tuple[str, ...]:
        """Return text columns with rows at none of the levels named."""

    def site(self, name: str, opening: Open, rare: Rare) -> Site:
        """Return all records of some columns as a site with secret splits."""


def check_columns(records: DataFile, policy: Policy, asked: AboutColumns) -> None:
    """Refuse columns that the policy does not show, and data files with few rows."""
    policy.check_rows(records.rows, "here")
    wanted = (*asked.outcome, *asked.columns)
    here = set(records.columns)
    for column in wanted:
        if column not in here or not policy.shows(column):
            raise FedLassoError(f"there is no column {column!r} here")
    if len(set(wanted)) < len(wanted):
        raise FedLassoError("a column is named twice; name each once")
    for code in asked.na:
        # With any value as a missing code the coordinator could count the rows that have it.
        if code not in policy.na_codes:
            raise FedLassoError(
                f"the policy here does not let {code!r} count as missing; add it to na_codes"
            )


def check_cells(site: Site, asked: Open, policy: Policy) -> None:
    """Refuse columns in which only a few rows differ: sums would disclose those rows.

    Survival times disclose events. Weights may single out rows as well, especially if they are so
    uneven that a few rows make up all sums.
    """
    cell = policy.min_cell_rows
    everybody = np.arange(site.table.n)
    apart = few_apart(site.table, everybody, cell)
    rare = [name for name, few in zip(site.columns, apart, strict=True) if few]
    response = site.response
    disclosed = {asked.event or asked.target: site.training.loss.told(response.y)}
    if asked.offset:
        disclosed[asked.offset] = response.offset
        disclosed[f"{asked.target} - {asked.offset}"] = site.disclosed_response
    if asked.weights:
        disclosed[asked.weights] = response.weights
    for name, numbers in disclosed.items():
        rare += [name] if few_apart(Table(numbers[:, None]), everybody, cell)[0] else []
    if rare:
        raise CorrectableRefusal(
            f"{list_names(rare)} differ from their commonest value in fewer than {cell} rows here; "
            "leave them out with --drop, or group their values"
        )
    relative = response.weights / response.weights.max()
    if relative.sum() ** 2 < policy.min_rows * float(relative @ relative):
        raise CorrectableRefusal(
            f"weights in {asked.weights!r} are so uneven that sums here would be those of fewer "
            f"than {policy.min_rows} rows; give others, or none"
        )
    holes = site.table.missing(np.ones(site.table.n))
    rare = [n for n, k in zip(site.columns, holes, strict=True) if 0 < k < cell]
    if rare:
        raise CorrectableRefusal(
            f"{list_names(rare)} are missing in fewer than {cell} rows here; leave them out with "
            "--drop, or fill them in there"
        )
