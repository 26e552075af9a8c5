"""The whole report: every table, figure and page, from one reading of the records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from fedlasso.errors import FedLassoError
from fedlasso.report.cost_tables import (
    candidate_table,
    diagnostic_table,
    reference_table,
    resource_table,
    scenario_table,
)
from fedlasso.report.figure_epochs import baseline_figure, contrast_figure
from fedlasso.report.figure_theory import theory_figure
from fedlasso.report.figure_uploads import upload_figure
from fedlasso.report.figures import Figure
from fedlasso.report.page import write_page
from fedlasso.report.paper_tables import (
    COMPARISONS,
    cutoff_table,
    difference_table,
    empty_table,
    grid_table,
    main_table,
)
from fedlasso.report.records import Results, read_results
from fedlasso.report.supplement import write_supplement
from fedlasso.report.tables import Table

# What a report is made of, in the supplement's order; append to add one from outside. Each gives
# nothing for records that cannot fill it.
TABLES: list[Callable[[Results], Table | None]] = [
    main_table,
    scenario_table,
    reference_table,
    grid_table,
    *(partial(difference_table, along=axis) for axis in COMPARISONS),
    cutoff_table,
    empty_table,
    candidate_table,
    resource_table,
    diagnostic_table,
]
FIGURES: list[Callable[[Results], Figure | None]] = [
    theory_figure,
    baseline_figure,
    contrast_figure,
    upload_figure,
]


def borrow_tables(folder: Path) -> list[Table]:
    """Another study's grid and resources, for this study's supplement."""
    other = read_results(folder)
    return [
        replace(
            table,
            name=f"{other.manifest.name}-{table.name}",
            title=f"{other.manifest.name}: {table.title}",
        )
        for table in (grid_table(other), resource_table(other))
        if table is not None
    ]


def write_report(folder: Path, out: Path, also: Sequence[Path] = ()) -> Results:
    """Write the report of a results folder; returns what was read.

    Parameters
    ----------
    folder : results folder that ``fedlasso study run`` wrote; it may still be filling
    out : where ``index.html``, ``tables/``, ``figures/`` and ``supplement/`` go
    also : folders of other studies whose tables the supplement takes in
    """
    results = read_results(folder)
    try:
        out.mkdir(parents=True, exist_ok=True)
        made = [make(results) for make in TABLES]
        tables = [table for table in made if table is not None]
        tables += [table for other in also for table in borrow_tables(other)]
        drawn = [draw(results) for draw in FIGURES]
        figures = [figure for figure in drawn if figure is not None]
        for table in tables:
            table.write(out / "tables")
        for figure in figures:
            figure.write(out / "figures")
        write_supplement(results, tables, figures, out / "supplement")
        write_page(results, tables[0], figures, out / "figures", out / "index.html")
    except OSError as error:
        raise FedLassoError(f"cannot write the report to {out}: {error.strerror}") from error
    return results
