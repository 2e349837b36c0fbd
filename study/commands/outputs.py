"""What a study leaves at its end: the best as a file, or models with their card, the report, the registered model."""

from collections.abc import Mapping
from pathlib import Path

from study import ranking
from study.commands.export import export
from study.commands.report import report_files
from study.data import Dataset
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.spec import StudySpec
from study.tracking.registry import register
from study.trained.model_files import best_model
from study.trained.model_files import write as write_models


def outputs(
    folder: StudyFolder,
    spec: StudySpec,
    record: StudyRecord,
    datasets: Mapping[str, Dataset] | None = None,
    report: bool = True,
) -> dict[Path, str | None]:
    """Write the report and best.yaml, or descriptions and card of a final training. Gives the files and the artifact
    folder that each belongs to.

    Args:
        datasets: of the study; None: what tells of them was written before.
        report: whether the report is written.
    """
    if spec.final_seeds is None and ranking.best(record, spec):
        export(folder, spec, record, folder.best_file)
    if spec.final_seeds is not None and datasets is not None and not spec.function:
        write_models(folder, spec, record, datasets)
    if report:
        from study.analysis.report.report import write_report

        write_report(spec, record, folder.report)
    files: dict[Path, str | None] = {file: None for file in (folder.best_file, folder.card_file) if file.exists()}
    for trial in record.by_stage("final") if not spec.function else ():
        files |= {folder.model_file(trial.number): "models", folder.description_file(trial.number): "models"}
    return {**{file: place for file, place in files.items() if file.exists()}, **report_files(folder)}


def lead_parts(spec: StudySpec, record: StudyRecord) -> dict[str, tuple[str, ...]]:
    """The sentences of the report's lead by title, as the study's run in MLflow shows them."""
    from study.analysis.report.lead import lead

    with ranking.ranked_once(record):
        return {part.title: part.sentences for part in lead(spec, record)}


def registered(home: Home, folder: StudyFolder, spec: StudySpec, record: StudyRecord) -> str | None:
    """Have MLflow register the model of a final training. Gives what went wrong, if anything did."""
    if spec.final_seeds is None or not (model := best_model(folder, spec, record)):
        return None
    return register(home, folder, spec.name, model)
