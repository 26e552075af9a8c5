"""A check of the sites' tables across a network: their columns, and Table 1 from sums."""

import secrets

from msgspec.structs import replace

from fedlasso.deploy.network import Network
from fedlasso.errors import FedLassoError
from fedlasso.fitting import Settings
from fedlasso.fitting.examination.table_one import TableOne, ask_table
from fedlasso.models import NetworkSource
from fedlasso.models.checkup import Checked, find_in_table
from fedlasso.models.table_one_cells import describe_schema
from fedlasso.tables.held import TableFinding, align, found_identifier


def check_network(network: Network, source: NetworkSource, settings: Settings) -> Checked:
    """Return how the sites' columns differ, and Table 1 of those that all have.

    Rows with missing values are counted. Each site is described only if its policy answers
    ``SummariseTable`` alone; otherwise Table 1 is of all sites together.
    """
    outcome = source.outcome(settings)
    network.introduce()
    named = {i.site: [c for c in i.columns if c not in source.drop] for i in network.introductions}
    _, findings = align(named, outcome.names)
    common = set.intersection(*map(set, named.values()))
    everything = {name for names in named.values() for name in names}
    drop = (*source.drop, *sorted(everything - common - set(outcome.names)))
    opened = replace(source, fit=secrets.token_hex(16), drop=drop, missing="mean")
    table: TableOne | None = None
    try:
        schema = network.open(opened, settings).schema
        assert schema is not None
        table = describe_schema(ask_table(network), schema)
        findings += find_in_table(table, source.missing == "mean")
    except FedLassoError as error:
        findings.append(TableFinding(True, (), "", str(error)))
    findings += map(found_identifier, network.left_out)
    if network.classes_chosen:
        text = network.classes_chosen.removeprefix("notice: ")
        findings.append(TableFinding(False, (), outcome.target, text))
    findings.sort(key=lambda finding: not finding.mend)
    return Checked(tuple(findings), table)
