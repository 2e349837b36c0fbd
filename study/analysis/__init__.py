"""What a study's trials say: one pandas table, and tables, figures and a report made from it.

Reads `study.record` and never trains, schedules or writes to MLflow.
"""

from study.analysis.cells import ablation, sensitivity
from study.analysis.formats import to_csv, to_latex, to_markdown
from study.analysis.frame import epochs_frame, load, trials_frame
from study.analysis.report import write_report

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
