"""From a results folder to what a reader looks at: tables, figures, supplement and a page."""

from fedlasso.report.compare import Comparison, compare
from fedlasso.report.records import Results, read_results
from fedlasso.report.write import FIGURES, TABLES, write_report

__all__ = ["FIGURES", "TABLES", "Comparison", "Results", "compare", "read_results", "write_report"]
