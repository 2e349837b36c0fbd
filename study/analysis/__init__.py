"""Analysis of a study's trials: one pandas frame, and tables, figures and a report made from it.

Reads `study.home.record` and never trains, schedules or writes to MLflow.
"""

from typing import TYPE_CHECKING

from study.catalogue import lazy_getattr

if TYPE_CHECKING:
    from study.analysis.report.write_report import write_report
    from study.analysis.statistics.ablation_effects import ablation_frame, load_ablation
    from study.analysis.statistics.parameter_tables import ablation, sensitivity
    from study.analysis.statistics.rule_pick_results import picks_frame
    from study.analysis.statistics.trials_frame import epochs_frame, load, trials_frame
    from study.analysis.tables.table_formats import to_csv, to_latex, to_markdown

__all__ = [
    "ablation",
    "ablation_frame",
    "epochs_frame",
    "load",
    "load_ablation",
    "picks_frame",
    "sensitivity",
    "to_csv",
    "to_latex",
    "to_markdown",
    "trials_frame",
    "write_report",
]

__getattr__ = lazy_getattr(
    {"write_report": "study.analysis.report.write_report"}
    | dict.fromkeys(("ablation", "sensitivity"), "study.analysis.statistics.parameter_tables")
    | dict.fromkeys(("ablation_frame", "load_ablation"), "study.analysis.statistics.ablation_effects")
    | dict.fromkeys(("epochs_frame", "load", "trials_frame"), "study.analysis.statistics.trials_frame")
    | {"picks_frame": "study.analysis.statistics.rule_pick_results"}
    | dict.fromkeys(("to_csv", "to_latex", "to_markdown"), "study.analysis.tables.table_formats")
)
