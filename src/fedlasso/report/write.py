"""The whole report: every table, figure and page, from one reading of the records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fedlasso.errors import FedLassoError
from fedlasso.report.cost_tables import (
    candidate_table,
    diagnostic_table,
    reference_table,
    resource_table,
    scenario_table,
)
from fedlasso.report.figure_baseline import baseline_figure
from fedlasso.report.figure_contrasts import contrast_figure
from fedlasso.report.figure_theory import theory_figure
from fedlasso.report.figure_uploads import upload_figure
from fedlasso.report.figures import Figure
from fedlasso.report.page import write_page
from fedlasso.report.paper_tables import (
    cutoff_table,
    difference_tables,
    empty_table,
    grid_table,
    main_table,
)
from fedlasso.report.records import Results, read_results
from fedlasso.report.supplement import write_supplement
from fedlasso.report.tables import Table


def make_tables(results: Results) -> list[Table]:
    """Every table these records can fill, in the supplement's order."""
    tables = [
        main_table(results),
        scenario_table(results),
        reference_table(results),
        grid_table(results),
        *difference_tables(results),
        cutoff_table(results),
        empty_table(results),
        candidate_table(results),
        resource_table(results),
        diagnostic_table(results),
    ]
    return [table for table in tables if table is not None]


def make_figures(results: Results) -> list[Figure]:
    """Every figure these records can fill."""
    figures = [
        theory_figure(),
        baseline_figure(results),
        contrast_figure(results),
        upload_figure(results),
    ]
    return [figure for figure in figures if figure is not None]


def borrow_tables(folder: Path) -> list[Table]:
    """Another study's grid and resources, for this study's supplement."""
    other = read_results(folder)
    return [
        replace(table, name=f"{other.study}-{table.name}", title=f"{other.study}: {table.title}")
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
        tables, figures = make_tables(results), make_figures(results)
        tables += [table for other in also for table in borrow_tables(other)]
        for table in tables:
            table.write(out / "tables")
        for figure in figures:
            figure.write(out / "figures")
        write_supplement(results, tables, figures, out / "supplement")
        write_page(results, tables[0], figures, out / "figures", out / "index.html")
    except OSError as error:
        raise FedLassoError(f"cannot write the report to {out}: {error.strerror}") from error
    return results
