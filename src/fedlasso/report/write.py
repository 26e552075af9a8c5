"""Write the report: every table, figure and page."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from fedlasso.errors import FedLassoError
from fedlasso.report.drawing import draw_beside
from fedlasso.report.figure_registry import FIGURES
from fedlasso.report.findings import find
from fedlasso.report.pages import write_page
from fedlasso.report.records import Results, read_results
from fedlasso.report.supplement import Supplement, compile_tex, draft_tex
from fedlasso.report.table_registry import TABLES, grid_table, resource_table
from fedlasso.report.tables import ReportTable


def write_report(folder: Path, out: Path, also: Sequence[Path] = ()) -> Results:
    """Write the report of a results folder, and return the records.

    ``out`` gets ``index.html``, ``tables/``, ``figures/`` and ``supplement/``, which includes the
    tables of ``also``, results folders of other studies. The study may still be running.
    """
    results = read_results(folder)
    try:
        for part in ("tables", "figures", "supplement"):
            (out / part).mkdir(parents=True, exist_ok=True)
        with (
            draw_beside(FIGURES, results, out / "figures") as drawings,
            ThreadPoolExecutor() as beside,
        ):
            tables = [table for make in TABLES if (table := make(results))]
            tables += [table for other in also for table in _borrowed_tables(other)]
            for table in tables:
                table.write(out / "tables")
            findings = find(results)
            supplement = Supplement(results, tables, findings, out / "supplement")
            supplement.write("supplement.tex", [])
            drafted = beside.submit(draft_tex, supplement.folder)
            figures = [words for drawing in drawings if (words := drawing.words())]
            drafted.result()
            supplement.write("supplement.tex", figures)
            compiled = beside.submit(compile_tex, supplement.folder)
            supplement.write("index.html", figures)
            for drawing in drawings:
                drawing.finish()
            write_page(results, tables[0], figures, findings, folder, out)
            compiled.result()
    except OSError as error:
        raise FedLassoError(f"cannot write the report to {out}: {error.strerror}") from error
    return results


def _borrowed_tables(folder: Path) -> list[ReportTable]:
    """Return another study's grid and resources, for this study's supplement."""
    other = read_results(folder)
    study = other.manifest.name
    return [
        replace(table, name=f"{study}-{table.name}", title=f"The study {study}: {table.title}")
        for table in (grid_table(other), resource_table(other))
        if table is not None
    ]
