"""Analysis of a study's trials: one pandas frame, and tables, figures and a report made from it.

Reads `study.home.record` and never trains, schedules or writes to MLflow.
"""

from study.analysis.report.report import write_report
from study.analysis.statistics.cell_tables import ablation, sensitivity
from study.analysis.statistics.frame import epochs_frame, load, trials_frame
from study.analysis.tables.formats import to_csv, to_latex, to_markdown

__all__ = [
    "ablation",
    "epochs_frame",
    "load",
    "sensitivity",
    "to_csv",
    "to_latex",
    "to_markdown",
    "trials_frame",
    "write_report",
]
