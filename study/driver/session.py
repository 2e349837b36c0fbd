"""One session of a study: its driver, MLflow beside it, its report and files, and the lines shown to the user."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from study import data
from study.analysis.report import report_lead
from study.analysis.report.report_lead import wrap_for_terminal
from study.analysis.statistics.next_step import (
    NextStep,
    evaluate_command,
    is_best_better_than_baseline,
    predict_command,
)
from study.cluster.log_share import share_study_while_running
from study.commands import extend_study, final_training
from study.commands.export_configurations import export_best
from study.commands.report import artifact_folder_by_result_file, lead_sentences_by_title
from study.data import Dataset
from study.driver.interrupt_messages import (
    STOPPED_RESUMABLE_MESSAGE,
    explain_resume_on_disk_error,
    message_on_interrupt,
)
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.ranking import Results, study_summary
from study.spec import StudySpec
from study.sweep import LOADING_DATA_STEP, WRITING_REPORT_STEP
from study.sweep.ray_runtime import SharedRay, start_or_join_ray
from study.text import print_text, study_command
from study.tracking import MlflowTracker
from study.tracking.mlflow_urls import experiments_page_url, is_mlflow_server
from study.tracking.registry import register_model_version
from study.tracking.tracker import MAX_MLFLOW_START_DELAY_S
from study.trained.model_files import find_model, write_descriptions_and_card
from study.upstream.ray_internals import is_ray_job


def write_study_outputs(
    folder: StudyFolder, results: Results, datasets: Mapping[str, Dataset] | None = None, report: bool = True
) -> dict[Path, str | None]:
    """Write the report and best.yaml, or the descriptions and card of a final training.

    Args:
        datasets: of the study; None: the descriptions and card were written before.
        report: whether the report is written.

    Returns:
        The files, each with the artifact folder that it belongs to.
    """
    if results.spec.final_seeds is None and results.best:
        export_best(folder, results, folder.best_file)
    if results.spec.final_seeds is not None and datasets is not None and not results.spec.training_function:
        write_descriptions_and_card(folder, results, datasets)
    if report:
        from study.analysis.report.write_report import write_report

        beside = final_training.compare_with_baseline_training(folder, results)
        write_report(results, folder.report_folder, beside=beside)
    models = [folder.ensemble_description_file]
    for trial in results.record.trials_of_stages("final") if not results.spec.training_function else ():
        models += [folder.model_file(trial.number), folder.model_description_file(trial.number)]
    return {**{file: "models" for file in models if file.exists()}, **artifact_folder_by_result_file(folder)}


def register_model(home: Home, folder: StudyFolder, results: Results) -> str | None:
    """Have MLflow register the model of a final training; return what went wrong, if anything did."""
    if results.spec.final_seeds is None or not (model := find_model(folder, results)):
        return None
    return register_model_version(home, folder, results.spec.name, model)


MAX_TRACEBACK_LINES = 30
"""Lines of a traceback that are shown, counted from its end."""


@dataclass(frozen=True)
class RunEnd:
    """Result of a run.

    Attributes:
        untracked_reason: why MLflow lacks something, None if it has everything.
        mended_problems: what was wrong with MLflow and was mended.
        has_run_trials: whether there was more to do than to bring MLflow up to date.
    """

    folder: StudyFolder
    spec: StudySpec
    record: StudyRecord
    untracked_reason: str | None
    mended_problems: Sequence[str] = ()
    has_run_trials: bool = True

    @cached_property
    def results(self) -> Results:
        """What the study found; no driver runs it any more."""
        return Results(self.spec, self.record)


def run_end_lines(end: RunEnd) -> list[str]:
    """Return how a run ended, its results, where things are and the next command.

    In a job of a cluster, whose log is read elsewhere, paths are left out: whoever follows it is told how to get those
    files, see `study.commands.remote_studies`.
    """
    folder, spec, record = end.folder, end.spec, end.record
    lines = ["", *study_summary.summary_lines(study_summary.summarise_study(end.results))]
    told = report_lead.build_report_lead(end.results)
    if not end.has_run_trials:
        lines.insert(0, f"{spec.name} ran already: no trial ran now. To run it anew, give it another name: --name")
    lines += ["", *report_lead.report_lead_lines(told, without=("Next",))]
    beside = final_training.compare_with_baseline_training(folder, end.results)
    if beside is not None:
        from study.analysis.report.page_formats import frame_to_markdown
        from study.analysis.statistics.compare_studies import comparison_table

        lines += ["", frame_to_markdown(comparison_table(beside))]
    if record.state == "complete":
        lines += ["", *([] if is_ray_job() else _output_file_lines(end))]
        if spec.final_seeds is None and end.results.confirmation.settings.rules:
            lines.append("rules      what each selection rule would have picked, on fresh seeds: in the report")
        if record.ablation_request is not None:
            best = record.ablation_request.trial
            lines.append(f"ablation   from the baseline to trial {best}, step by step: in the report")
        lines += [*_mlflow_address_lines(folder.tracking_uri), *_failed_trials_lines(end), ""]
        lines += _next_command_lines(end, told.next, beside is not None)
    else:
        lines += [*_first_failure_lines(end), *_resume_commands(end)]
    if end.mended_problems:
        lines += ["", *end.mended_problems]
    if end.untracked_reason:
        lines += ["", f"not everything is in MLflow: {end.untracked_reason}"]
        lines.append(f"nothing is lost; once MLflow answers again: study resume {spec.name}")
    return lines


def _output_file_lines(end: RunEnd) -> list[str]:
    """Return where on this machine the files of a complete study are."""
    folder, spec = end.folder, end.spec
    lines = [f"report     {folder.report_page}"]
    if spec.final_seeds is not None and not spec.training_function:
        lines += [f"models     {folder.model_file(0).parent}", f"card       {folder.model_card_file}"]
    return [*lines, f"best       {folder.best_file}"] if folder.best_file.exists() else lines


def _mlflow_address_lines(uri: str) -> list[str]:
    """Return how to open MLflow's pages; nothing in a job that has a database instead of a server."""
    if not is_ray_job():
        return ["MLflow UI  study ui"]
    return [f"MLflow UI  {experiments_page_url(uri)}"] if is_mlflow_server(uri) else []


def _first_failure_lines(end: RunEnd) -> list[str]:
    """Return why the first failed trial failed, its traceback, and where all tracebacks are."""
    folder = end.folder
    if (first := end.record.first_failed_trial) is None:
        return []
    lines = [f"trial {first.number} failed, {first.end_reason}"]
    file = folder.error_file(first.number)
    if end.record.state == "failed" and file.exists():
        lines += ["", *file.read_text(encoding="utf-8").splitlines()[-MAX_TRACEBACK_LINES:], ""]
    if is_ray_job():
        return [*lines, f"its traceback: {study_command('logs', end.spec.name, '--trial', first.number)}"]
    return [*lines, f"tracebacks: {file.parent}"] if file.parent.exists() else lines


def _resume_commands(end: RunEnd) -> list[str]:
    """Return the commands with which a study that is not complete goes on."""
    spec, record = end.spec, end.record
    if record.state != "failed" or spec.final_seeds is not None:  # a final training tries again what failed
        return [f"go on with it: study resume {spec.name}"]
    lines = [f"once its cause is mended: study resume {spec.name} --failed"]
    if not extend_study.has_only_failures_left(end.results):
        lines.append(f"without what failed: study resume {spec.name}")
    return lines


def _failed_trials_lines(end: RunEnd) -> list[str]:
    """Return what failed in a complete study, and how it runs again.

    Searched configurations that diverged are left out: they would diverge again.
    """
    trials = [end.record.trials[number] for number in extend_study.failed_trial_numbers(end.record)]
    failed = [trial for trial in trials if trial.state == "failed"]
    mendable = [trial for trial in failed if trial.failure_kind != "DIVERGED" or trial.stage == "baseline"]
    if not mendable:
        return []
    first = mendable[0]
    whose = "the baseline" if first.stage == "baseline" else f"trial {first.number}"
    count = "" if len(failed) == 1 else f" and {len(failed) - 1} more"
    told = f"failed     {whose}{count}, {first.end_reason}"
    return [told, f"           once its cause is mended: study resume {end.spec.name} --failed"]


def _next_command_lines(end: RunEnd, steps: Sequence[NextStep], has_baseline: bool) -> list[str]:
    """Return the next commands: what the numbers ask for, the final training, and that of the baseline.

    Args:
        has_baseline: whether a final training stands beside that of its baseline already.
    """
    folder, spec = end.folder, end.spec
    if spec.final_seeds is not None:
        commands = [] if spec.training_function else [predict_command(spec), evaluate_command(spec)]
        uses = [command for command in commands if command]
        uses += [] if has_baseline else _train_baseline_command(folder, spec)
        return [f"{'      ' if place else 'next: '}{use}" for place, use in enumerate(uses)]
    if spec.varied_data_keys:
        return []
    uses = [study_command("train", _train_command_argument(folder))]
    is_over = is_best_better_than_baseline(end.results)
    if reference := end.results.reference_as_result:
        uses = [f"{uses[0]}   {reference.name_in_sentence}, which needs no search"]
    elif is_over is False:
        uses = ["keep the baseline, which best.yaml holds", f"{uses[0]}   the baseline on new seeds"]
    elif is_over is None:
        uses.append("keep the baseline, as the best may be no better")
    why = wrap_for_terminal("advice", str(steps[0].why)) if steps else []
    if steps and not steps[0].may_train_instead:
        return why
    if steps and steps[0].command:
        uses.insert(0, steps[0].command)
    return [*why, *(f"{'or:   ' if place else 'next: '}{use}" for place, use in enumerate(uses))]


def _train_command_argument(folder: StudyFolder) -> str | Path:
    """Return what `study train` takes: the study's name, here or on a cluster; its file in a home of another place."""
    is_found = is_ray_job() or folder.path.parent == Home.locate().path
    return folder.name if is_found else _relative_to_working_folder(folder.best_file)


def _train_baseline_command(folder: StudyFolder, spec: StudySpec) -> list[str]:
    """Return the command to train the baseline on a final training's seeds; none if that is the baseline's own."""
    origin, seeds = spec.origin or {}, ",".join(map(str, spec.final_seeds or ()))
    if "study" not in origin or final_training.is_baseline_training(Home(folder.path.parent), spec):
        return []
    command = study_command("train", origin["study"], "--baseline", "--seeds", seeds)
    return [f"{command}   what it is to be compared with"]


def _relative_to_working_folder(path: Path) -> Path:
    try:
        here = Path.cwd()
    except FileNotFoundError:  # the folder of a job, removed by Ray
        return path
    return path.relative_to(here) if path.is_relative_to(here) else path


class StudyView(Protocol):
    """Shows a study while it runs, reading the record from a thread; yields a function that shows a line at once."""

    def __call__(self, spec: StudySpec, record: StudyRecord) -> AbstractContextManager[Callable[[str], None]]: ...


def load_study_datasets(spec: StudySpec, view: StudyView) -> dict[str, Dataset]:
    """Load a study's data sets, before anything starts.

    Raises:
        UserError: data cannot be loaded, or the weights that trials begin from are not there or are not those of the
            configuration's study.
    """
    from study.sweep.driver import check_initial_weights

    check_initial_weights(spec, StudyRecord())
    with view(spec, StudyRecord()) as tell:
        tell(LOADING_DATA_STEP)
        datasets = data.load_datasets(spec.trial_data_sections)
        _compute_frozen_features(spec, datasets, tell)
        return datasets


FEATURE_PROGRESS_INTERVAL_S = 10.0
"""Seconds between lines on how far features are."""


def _compute_frozen_features(spec: StudySpec, datasets: Mapping[str, Dataset], tell: Callable[[str], None]) -> None:
    """Compute the features of frozen networks before trials wait for them.

    Where trials take a GPU and this machine has none they are left: to a task of the cluster, else to the trials.
    """
    sections = [model for model in spec.model_sections if model.get("frozen")]
    if not sections:
        return
    import torch

    from study.training import features
    from study.training.device import best_available_device

    device = best_available_device() if spec.resources.gpu else torch.device("cpu")
    if spec.resources.gpu and device.type == "cpu":
        return
    said = -FEATURE_PROGRESS_INTERVAL_S

    def on_progress(done: int, total: int) -> None:
        nonlocal said
        if done == total or time.monotonic() - said >= FEATURE_PROGRESS_INTERVAL_S:
            said = time.monotonic()
            tell(f"features of the pictures, computed once and kept: {done} of {total}")

    for model in sections:
        for dataset in datasets.values():
            features.replace_inputs_with_frozen_features(model, dataset, device, on_progress)


def run_session(
    home: Home,
    folder: StudyFolder,
    datasets: Mapping[str, Dataset],
    view: StudyView,
    address: str | None,
    shared: SharedRay | None = None,
    placement: Mapping[str, Any] | None = None,
) -> RunEnd:
    """Run a study that is in the home: drive it, write its report and files, and bring everything into MLflow.

    Args:
        placement: see `study.spec.study_spec.StudySpec.replace_placement`; None: that of its last driver.

    Raises:
        StudyStoppedError, StartInterruptedError, UserError: see `study.driver.run.run_new_study`.
    """
    from study.sweep.driver import drive_study

    with (
        message_on_interrupt(STOPPED_RESUMABLE_MESSAGE.format(folder.name)),
        share_study_while_running(folder),
        explain_resume_on_disk_error(folder),
        closing(Ledger(folder.ledger_file)) as ledger,
    ):
        spec, record = folder.load_checked_spec(), StudyRecord.load_without_closing(folder.ledger_file)
        placed = spec.replace_placement(record.placement if placement is None else placement)
        tracker = MlflowTracker(home, folder, spec)
        say: Callable[[str], object] = print_text  # until the view is there
        tracker.start_following(MAX_MLFLOW_START_DELAY_S, lambda text: say(text))
        try:
            files = {}
            with view(placed, record) as say:
                sessions = len(record.sessions)
                try:
                    drive_study(folder, placed, datasets, ledger, record, address, say, shared or start_or_join_ray)
                except KeyboardInterrupt:  # which the ledger records
                    if len(record.sessions) == sessions:  # unless it came before this session was recorded
                        raise
                if record.state == "complete":
                    say(WRITING_REPORT_STEP)
                    files = write_study_outputs(folder, Results(spec, record), datasets, report=shared is None)
        finally:
            if ledger.is_taken_over:
                tracker.give_up_writing()
            untracked = tracker.finish_writing(say)
        results = Results(spec, record)
        if files:
            untracked = untracked or tracker.log_artifacts(files, lead_sentences_by_title(results))
            untracked = untracked or register_model(home, folder, results)
    return RunEnd(folder, spec, record, untracked, tracker.notes)
