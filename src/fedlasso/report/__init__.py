"""From a results folder to what a reader looks at: tables, figures, supplement and a page."""

from fedlasso.report.compare import Comparison, compare
from fedlasso.report.every_figure import FIGURES
from fedlasso.report.every_table import TABLES
from fedlasso.report.records import Results, read_results
from fedlasso.report.write import write_report

__all__ = ["FIGURES", "TABLES", "Comparison", "Results", "compare", "read_results", "write_report"]
