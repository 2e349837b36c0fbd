"""The end of a run: its result, and the lines that a user is shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from study import ranking
from study.analysis.report import lead
from study.analysis.report.lead import wrapped
from study.commands import extend_search, final_training
from study.commands.export import export
from study.commands.report import report_files
from study.data import Dataset
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.ranking import summary
from study.spec import StudySpec
from study.text import typed
from study.tracking.pages import experiments_page, is_server
from study.tracking.registry import register
from study.trained.model_files import best_model
from study.trained.model_files import write as write_models
from study.upstream.ray_internals import is_job


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

        write_report(spec, record, folder.report, beside=final_training.beside_baseline(folder, spec, record))
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


TRACEBACK = 30
"""Lines of a traceback that are shown, counted from its end."""


@dataclass(frozen=True)
class RunEnd:
    """The result of a run.

    Attributes:
        untracked: why MLflow lacks something, None if it has everything.
        mended: what was wrong with MLflow and was mended.
        unnotified: why somebody who was to be told of the end was not.
        ran: whether there was more to do than to bring MLflow up to date.
    """

    folder: StudyFolder
    spec: StudySpec
    record: StudyRecord
    untracked: str | None
    mended: Sequence[str] = ()
    ran: bool = True
    unnotified: str | None = None


def closing_lines(end: RunEnd) -> list[str]:
    """Return how a run ended, its results, where things are and the next command.

    In a job of a cluster, whose log is read elsewhere, paths are left out: whoever follows it is told how to have what
    lies there, see `study.commands.on_cluster`.
    """
    folder, spec, record = end.folder, end.spec, end.record
    with ranking.ranked_once(record):
        lines = ["", *summary.lines(summary.summary(spec, record))]
        told = lead.document(spec, record)
    if not end.ran:
        lines.insert(0, f"{spec.name} ran already: no trial ran now. To run it anew, give it another name: --name")
    lines += ["", *lead.lines(told, but=("Next",))]
    beside = final_training.beside_baseline(folder, spec, record)
    if beside is not None:
        from study.analysis.report.page import markdown_table

        lines += ["", markdown_table(beside)]
    if record.state == "complete":
        lines += ["", *([] if is_job() else _places(end))]
        if spec.final_seeds is None and ranking.confirm(record, spec).rules:
            lines.append("rules      what each selection rule would have picked, on fresh seeds: in the report")
        if record.ablating is not None:
            lines.append(f"ablation   from the baseline to trial {record.ablating.trial}, step by step: in the report")
        lines += [
            *_mlflow(folder.tracking_uri),
            *_failed(end),
            "",
            *_next_commands(end, told["next"], beside is not None),
        ]
    else:
        lines += [*_first_failure(end), *_how_it_goes_on(end)]
    if end.mended:
        lines += ["", *end.mended]
    if end.untracked:
        lines += ["", f"not everything is in MLflow: {end.untracked}"]
        lines.append(f"nothing is lost; once MLflow answers again: study resume {spec.name}")
    if end.unnotified:
        lines += ["", f"not everybody was told of this: {end.unnotified}"]
    return lines


def _places(end: RunEnd) -> list[str]:
    """Return where on this machine the files of a complete study are."""
    folder, spec = end.folder, end.spec
    lines = [f"report     {folder.report / 'report.html'}"]
    if spec.final_seeds is not None and not spec.function:
        lines += [f"models     {folder.model_file(0).parent}", f"card       {folder.card_file}"]
    return [*lines, f"best       {folder.best_file}"] if folder.best_file.exists() else lines


def _mlflow(uri: str) -> list[str]:
    """Return how MLflow's pages are opened; a job's own database, from here."""
    if not is_job():
        return ["MLflow UI  study ui"]
    return [f"MLflow UI  {experiments_page(uri)}"] if is_server(uri) else []


def _first_failure(end: RunEnd) -> list[str]:
    """Why the first failed trial failed, its traceback, and where all tracebacks are."""
    folder, trials = end.folder, end.record.trials.values()
    first = next((trial for trial in trials if trial.state == "failed"), None)
    if first is None:
        return []
    lines = [f"trial {first.number} failed, {first.why}"]
    file = folder.error_file(first.number)
    if end.record.state == "failed" and file.exists():
        lines += ["", *file.read_text(encoding="utf-8").splitlines()[-TRACEBACK:], ""]
    if is_job():
        return [*lines, f"its traceback: {typed('logs', end.spec.name, '--trial', first.number)}"]
    return [*lines, f"tracebacks: {file.parent}"] if file.parent.exists() else lines


def _how_it_goes_on(end: RunEnd) -> list[str]:
    """Return what has a study that is not complete go on."""
    spec, record = end.spec, end.record
    if record.state != "failed" or spec.final_seeds is not None:  # a final training tries again what failed
        return [f"go on with it: study resume {spec.name}"]
    lines = [f"once its cause is mended: study resume {spec.name} --failed"]
    return lines if extend_search.is_spent(record, spec) else [*lines, f"without what failed: study resume {spec.name}"]


def _failed(end: RunEnd) -> list[str]:
    """Return what failed of a study that is complete, and how it runs again; nothing where it is searched
    configurations that diverged: they would do so again."""
    trials = [end.record.trials[number] for number in extend_search.failed_trials(end.record)]
    failed = [trial for trial in trials if trial.state == "failed"]
    mendable = [trial for trial in failed if trial.kind != "DIVERGED" or trial.stage == "baseline"]
    if not mendable:
        return []
    first = mendable[0]
    whose = "the baseline" if first.stage == "baseline" else f"trial {first.number}"
    count = "" if len(failed) == 1 else f" and {len(failed) - 1} more"
    told = f"failed     {whose}{count}, {first.why}"
    return [told, f"           once its cause is mended: study resume {end.spec.name} --failed"]


def _next_commands(end: RunEnd, steps: Sequence[Mapping[str, Any]], has_baseline: bool) -> list[str]:
    """Return what the numbers ask for, where they do, and the final training, or that of its baseline as well.

    Args:
        has_baseline: whether a final training stands beside that of its baseline already.
    """
    folder, spec = end.folder, end.spec
    if spec.final_seeds is not None:
        uses = [] if spec.function else [f"predict {spec.name} INPUTS", f"evaluate {spec.name} --split test"]
        uses = [f"study {use}" for use in uses] + ([] if has_baseline else _baseline_as_well(spec))
        return [f"{'      ' if place else 'next: '}{use}" for place, use in enumerate(uses)]
    if spec.varied_data:
        return []
    train = typed("train", folder.best_file.name if is_job() else _relative(folder.best_file))
    why = wrapped("advice", steps[0]["why"]) if steps else []
    if steps and steps[0]["command"]:
        return [*why, f"next: {steps[0]['command']}", f"or:   {train}"]
    return [*why, f"next: {train}"]


def _baseline_as_well(spec: StudySpec) -> list[str]:
    """Return how the baseline is trained on the seeds of a final training of what a study found."""
    origin, seeds = spec.origin or {}, ",".join(map(str, spec.final_seeds or ()))
    if "study" not in origin or origin.get("baseline"):
        return []
    return [f"{typed('train', origin['study'], '--baseline', '--seeds', seeds)}   what it is to be compared with"]


def _relative(path: Path) -> Path:
    try:
        here = Path.cwd()
    except FileNotFoundError:  # the folder of a job, removed by Ray
        return path
    return path.relative_to(here) if path.is_relative_to(here) else path
