"""Reports of a results folder: tables, figures, a supplement and a page."""

from fedlasso.report.compare import Comparison as Comparison
from fedlasso.report.compare import compare as compare
from fedlasso.report.figure_registry import FIGURES as FIGURES
from fedlasso.report.records import Results as Results
from fedlasso.report.records import read_results as read_results
from fedlasso.report.table_registry import TABLES as TABLES
from fedlasso.report.write import write_report as write_report
