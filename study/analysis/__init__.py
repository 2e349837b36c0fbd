"""Analysis of a study's trials: one pandas frame, and tables, figures and a report made from it.

Reads `study.home.record` and never trains, schedules or writes to MLflow.
"""

from typing import TYPE_CHECKING

from study.catalogue import lazy_getattr

if TYPE_CHECKING:
    from study.analysis.report.write_report import write_report as write_report
    from study.analysis.statistics.ablation_effects import ablation_frame as ablation_frame
    from study.analysis.statistics.ablation_effects import load_ablation as load_ablation
    from study.analysis.statistics.parameter_tables import ablation as ablation
    from study.analysis.statistics.parameter_tables import sensitivity as sensitivity
    from study.analysis.statistics.rule_pick_results import picks_frame as picks_frame
    from study.analysis.statistics.trials_frame import epochs_frame as epochs_frame
    from study.analysis.statistics.trials_frame import load as load
    from study.analysis.statistics.trials_frame import trials_frame as trials_frame
    from study.analysis.tables.table_formats import to_csv as to_csv
    from study.analysis.tables.table_formats import to_latex as to_latex
    from study.analysis.tables.table_formats import to_markdown as to_markdown

__getattr__ = lazy_getattr(
    {"write_report": "study.analysis.report.write_report"}
    | dict.fromkeys(("ablation", "sensitivity"), "study.analysis.statistics.parameter_tables")
    | dict.fromkeys(("ablation_frame", "load_ablation"), "study.analysis.statistics.ablation_effects")
    | dict.fromkeys(("epochs_frame", "load", "trials_frame"), "study.analysis.statistics.trials_frame")
    | {"picks_frame": "study.analysis.statistics.rule_pick_results"}
    | dict.fromkeys(("to_csv", "to_latex", "to_markdown"), "study.analysis.tables.table_formats")
)
