"""Runs in MLflow, through its client: any server or database."""

import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from mlflow import MlflowClient
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag, ViewType
from mlflow.exceptions import MlflowException

from study.data.dataset import DatasetSummary, fingerprint_without_fold, original_fingerprint
from study.knobs import Section
from study.spec import StudySpec
from study.text import escape_control
from study.tracking.connection import iterate_search_pages
from study.tracking.saved_views import experiment_description, saved_view_tags
from study.tracking.tracking_state import STUDY_RUN_KEY


class MetricValue(NamedTuple):
    """One value of a metric.

    Attributes:
        time_ms: in milliseconds since the epoch.
        step: the epoch of training; for results of a whole study, how many trials had ended.
    """

    name: str
    value: float
    time_ms: int
    step: int


@dataclass
class RunUpdate:
    """All changes of one run by several events of a ledger, so that it takes as few requests as can be.

    Applying it twice is the same as once.

    Attributes:
        run_key: see `TrackingState.runs`.
        parent_key: key of the run that it is nested under, None for the study's.
        name: of the run, if it does not exist yet; `new_name`: its new name, None: as it is.
        start_ms: when it began, in milliseconds since the epoch, if it does not exist yet.
        dataset_inputs: data sets that it reads.
        tags: to set; `removed_tags`: to remove.
        status: one of MLflow's, None: as it is; a new run is RUNNING.
        end_ms: when it ended, in milliseconds since the epoch; None while it runs.
        files: folders whose content becomes its artifacts, each with the artifact folder that it goes to (None: the
            topmost); they are removed then.
    """

    run_key: str
    parent_key: str | None = None
    name: str = ""
    new_name: str | None = None
    start_ms: int = 0
    tags: dict[str, str] = field(default_factory=dict)
    removed_tags: set[str] = field(default_factory=set)
    params: dict[str, str] = field(default_factory=dict)
    metric_values: list[MetricValue] = field(default_factory=list)
    dataset_inputs: list[DatasetInput] = field(default_factory=list)
    status: str | None = None
    end_ms: int | None = None
    files: list[tuple[Path, str | None]] = field(default_factory=list)


MAX_PARAM_CHARACTERS = 5000
"""Most characters of a parameter or tag that every MLflow takes."""


def truncate_value(value: object) -> str:
    """Return a value as text that every MLflow takes, cut to `MAX_PARAM_CHARACTERS` with a note of its length."""
    text = escape_control(str(value))
    if len(text) <= MAX_PARAM_CHARACTERS:
        return text
    end = f" ... (cut: {len(text)} characters in all)"
    return text[: MAX_PARAM_CHARACTERS - len(end)] + end


def to_milliseconds(time: float) -> int:
    """Convert seconds since the epoch to milliseconds."""
    return int(time * 1000)


MAX_DATASET_NAME_CHARACTERS, MAX_DATASET_DIGEST_CHARACTERS = 500, 36
"""Most characters of a data set's name and digest that MLflow takes."""


def to_dataset_input(section: Section, summary: DatasetSummary) -> DatasetInput:
    """Return a data set for MLflow's column of them.

    Args:
        section: the `data` section of a study or trial.
        summary: what the ledger says of it, see `study.data.summarise_datasets`.
    """
    kind, source = _dataset_source(str(section["name"]), summary["sources"])
    rows, is_folded = summary["rows"], fingerprint_without_fold(summary["digest"]) != summary["digest"]
    if is_folded:  # MLflow keeps what the first run says for all that name the same data, of any fold
        in_test = {name: count for name, count in rows.items() if name not in ("train", "val")}
        rows = {"folds": sum(rows.values()) - sum(in_test.values()), **in_test}
    profile = json.dumps({"rows": rows, "shape": summary.get("shape")})
    title = summary["title"][:MAX_DATASET_NAME_CHARACTERS]
    digest = original_fingerprint(summary["digest"])[:MAX_DATASET_DIGEST_CHARACTERS]
    found = Dataset(title, digest, kind, source, profile=profile)
    return DatasetInput(found, [InputTag("mlflow.data.context", ", ".join(summary["rows"]))])


def _dataset_source(name: str, sources: list[str]) -> tuple[str, str]:
    """Return the kind of a data set's source, in MLflow's words, and JSON with its first address, and all if more."""
    if not sources:
        return "code", json.dumps({"tags": {"mlflow.source.name": f"study.data.sets.{name}"}})
    several = {"files": sources} if len(sources) > 1 else {}
    if sources[0].startswith(("http://", "https://")):
        return "http", json.dumps({"url": sources[0], **several})
    return "local", json.dumps({"uri": sources[0], **several})


FUNCTION_RUN_TAG = "study.own_run"
"""Tag of a run that a training function logged itself: its key, see `study.tracking.runs_of_functions`."""

REFERENCE_TAG = "study.reference"
"""Tag of a reference's run: its name."""


RESULT_ARM_TAG = "study.arm"
"""Tag of the run of a result: what of a summary's arms it is."""


def reference_run_key(name: str) -> str:
    """Return the key of a reference's run."""
    return f"reference {name}"


RESULT_TRIAL_TAG = "study.result_trial"
"""Tag of the run of a result that is a configuration: its trial. Another best has another run, as params stay."""

RESULT_RUN_KEY_PREFIX = "result "
"""What keys of the runs of results begin with."""


def result_run_key(who: str, trial: object = None) -> str:
    """Return the key of the run of a result, of this configuration."""
    return f"{RESULT_RUN_KEY_PREFIX}{who}" + ("" if trial is None else f" {trial}")


EXPERIMENT_KIND_TAGS = {"mlflow.experimentKind": "custom_model_development"}
"""Tags that make the MLflow UI open an experiment on its training runs."""

NOTE_TAG = "mlflow.note.content"
"""Tag that MLflow's UI shows as the description of a run or an experiment, as Markdown."""

PRIMARY_METRIC_TAG = "mlflow.experiment.primaryMetric.name"
"""Tag of an experiment: the metric of the UI's first charts and of its parallel coordinates."""

MAX_PARALLEL_REQUESTS = 8
"""Requests that a server gets at the same time, each for another run."""


class MlflowRunStore:
    """Runs, each known by its key; see `TrackingState.runs`.

    Args:
        at_once: requests at the same time.
    """

    def __init__(self, client: MlflowClient, at_once: int = MAX_PARALLEL_REQUESTS) -> None:
        self.client, self._at_once = client, at_once

    def find_or_make_experiment(self, spec: StudySpec, artifacts: str | None) -> str:
        """Return the id of a study's experiment; make it if there is none, restore it if it was marked as deleted.

        The UI's charts begin with the study's metric.

        Args:
            artifacts: where those of its runs are kept, None: where MLflow puts them.
        """
        experiment = self.client.get_experiment_by_name(spec.name)
        if experiment is None:
            tags = {PRIMARY_METRIC_TAG: spec.metric, **saved_view_tags(spec)}
            made = str(self.client.create_experiment(spec.name, artifacts, EXPERIMENT_KIND_TAGS | tags))
            self.client.set_experiment_tag(made, NOTE_TAG, experiment_description(spec, made))
            return made
        if experiment.lifecycle_stage == "deleted":
            self.client.restore_experiment(experiment.experiment_id)
        for tag, view in saved_view_tags(spec).items():
            self.client.set_experiment_tag(experiment.experiment_id, tag, view)
        return str(experiment.experiment_id)

    def has_lost_runs(self, runs: Mapping[str, str]) -> bool:
        """Return whether the first or the last run that was made is missing: the study's own, or its last trial's.

        That is enough, as an experiment vanishes as a whole, or an older copy of everything takes its place.

        Args:
            runs: id by key, in the order of their making.
        """
        return any(self._is_run_deleted(run_id) for run_id in {*list(runs.values())[:1], *list(runs.values())[-1:]})

    def _is_run_deleted(self, run_id: str) -> bool:
        try:
            return self.client.get_run(run_id).info.lifecycle_stage == "deleted"
        except MlflowException as error:
            if error.error_code == "RESOURCE_DOES_NOT_EXIST":
                return True
            raise

    def find_runs(self, experiment: str, study: str, since: int = 0) -> Iterator[tuple[str, str]]:
        """Yield key and id of a study's runs, in the order of their making.

        Args:
            study: the id in its ledger.
            since: leave out runs that began before, in milliseconds since the epoch.
        """
        query = f"tags.`study.id` = '{study}' and attributes.start_time >= {since}"
        of = [experiment], query, ViewType.ACTIVE_ONLY, 1000, ["attributes.start_time ASC"]
        for run in iterate_search_pages(lambda token: self.client.search_runs(*of, page_token=token)):
            yield _run_key_of_tags(run.data.tags), run.info.run_id

    def log_artifacts(self, run_id: str, path: Path, folder: str | None) -> None:
        """Log a file, or all in a folder, as artifacts of a run."""
        log = self.client.log_artifacts if path.is_dir() else self.client.log_artifact
        log(run_id, str(path), folder)

    def apply_run_updates(self, experiment: str, changes: list[RunUpdate], runs: dict[str, str]) -> None:
        """Apply changes: runs are made after those that they are nested under, and the study's run ends last.

        Args:
            runs: id by key of the runs that exist; the new ones are added.
        """
        study = [change for change in changes if change.run_key == STUDY_RUN_KEY]
        for change in study:
            self._create_run(experiment, change, runs)
            self._log_inputs(change, runs)  # before those of trials: of two requests that make one at once, one fails
        left = {change.run_key: change for change in changes if change.run_key != STUDY_RUN_KEY}
        while left:
            level = [change for change in left.values() if change.parent_key not in left] or [*left.values()]
            apply_in_parallel(lambda change: self._apply_update(experiment, change, runs), level, self._at_once)
            left = {key: change for key, change in left.items() if change not in level}
        apply_in_parallel(lambda change: self._apply_update(experiment, change, runs), study, self._at_once)

    def _create_run(self, experiment: str, change: RunUpdate, runs: dict[str, str]) -> None:
        if change.run_key not in runs:
            nesting = {"mlflow.parentRunId": runs[change.parent_key]} if change.parent_key else {}
            tags = change.tags | nesting
            made = self.client.create_run(experiment, change.start_ms, tags, change.name)
            runs[change.run_key], change.tags = made.info.run_id, {}
            change.status = None if change.status == "RUNNING" else change.status
            change.removed_tags = set()

    def _log_inputs(self, change: RunUpdate, runs: Mapping[str, str]) -> None:
        if change.dataset_inputs:
            self.client.log_inputs(runs[change.run_key], change.dataset_inputs)

    def _metric_values_to_log(self, change: RunUpdate, run_id: str) -> list[MetricValue]:
        """Return the points but those that are no numbers and there: MLflow below 3.16 fails at a second one."""
        points = change.metric_values
        odd = {point.name for point in points if math.isnan(point.value)}
        known = (point for name in odd for point in self.client.get_metric_history(run_id, name))
        there = {(point.key, point.step) for point in known if math.isnan(point.value)}
        return [point for point in points if not (math.isnan(point.value) and (point.name, point.step) in there)]

    def _apply_update(self, experiment: str, change: RunUpdate, runs: dict[str, str]) -> None:
        is_new = change.run_key not in runs
        self._create_run(experiment, change, runs)
        run_id = runs[change.run_key]
        for name in change.removed_tags & self.client.get_run(run_id).data.tags.keys() if change.removed_tags else ():
            self.client.delete_tag(run_id, name)
        points = change.metric_values if is_new else self._metric_values_to_log(change, run_id)
        self.client.log_batch(
            run_id,
            [Metric(point.name, point.value, point.time_ms, point.step) for point in points],
            [Param(key, value) for key, value in change.params.items()],
            [RunTag(key, value) for key, value in change.tags.items()],
        )
        if change.run_key != STUDY_RUN_KEY:
            self._log_inputs(change, runs)
        if change.new_name is not None:
            self.client.update_run(run_id, name=change.new_name)
        if change.end_ms is not None:
            self.client.set_terminated(run_id, change.status, change.end_ms)
        elif change.status is not None:
            self.client.update_run(run_id, change.status)


def _run_key_of_tags(tags: Mapping[str, str]) -> str:
    """Return the key of a run, by its tags."""
    if REFERENCE_TAG in tags:
        return reference_run_key(tags[REFERENCE_TAG])
    if RESULT_ARM_TAG in tags:
        return result_run_key(tags[RESULT_ARM_TAG], tags.get(RESULT_TRIAL_TAG))
    return tags.get(FUNCTION_RUN_TAG) or tags.get("study.trial", STUDY_RUN_KEY)


def apply_in_parallel(function: Callable[[RunUpdate], None], changes: list[RunUpdate], threads: int) -> None:
    """Call a function for each change, several at a time.

    Raises:
        Exception: the first that a call raised; calls that had not begun are left out then.
    """
    waiting, lock, errors = iter(changes), threading.Lock(), list[Exception]()

    def work() -> None:
        while not errors:
            with lock:
                change = next(waiting, None)
            if change is None:
                return
            try:
                function(change)
            except Exception as error:
                errors.append(error)

    # daemons, unlike those of concurrent.futures, do not keep a process from ending while a server does not answer
    count = min(threads, len(changes))
    workers = [threading.Thread(target=work, name="tracking request", daemon=True) for _ in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]
