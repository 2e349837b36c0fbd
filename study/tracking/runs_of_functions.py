"""The runs that a user's training function logged in its trial's folder, as children of the trial's run.

MLflow kept them there in files, see `study.sweep.job_execution.log_mlflow_into_trial_folder`. They stay as long as
their study, so that they can be brought again; their artifacts are removed once MLflow has them.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mlflow import MlflowClient
from mlflow.entities import Run

from study.tracking.connection import iterate_search_pages
from study.tracking.mlflow_runs import FUNCTION_RUN_TAG, MetricValue, RunUpdate, truncate_value
from study.upstream.environment import ProcessKind, restore_variables_after, variables_of_processes

MLFLOW_SYSTEM_TAGS = (
    "mlflow.parentRunId",
    "mlflow.runName",
    "mlflow.source.",
    "mlflow.user",
    "mlflow.log-model.history",
    "study.",
)
"""Prefixes of tags that are left out: those that describe the new run, and those of this package."""


def read_runs_logged_by_function(folder: Path, trial: int, status: str, end: int) -> list[RunUpdate]:
    """Return the runs in a trial's folder; none where there is no folder.

    Args:
        trial: number of the trial whose run they are nested under.
        status: of the trial's run, for runs that did not end or were cut off.
        end: when the trial's run ended, in milliseconds since the epoch.

    Raises:
        Exception: whatever MLflow raises for damaged files.
    """
    if not folder.is_dir():
        return []
    with _allow_file_store():
        client = MlflowClient(folder.as_uri())
        found = _MlflowFolderContent(client)
        return [_run_update_of_logged_run(found, run, trial, status, end) for run in found.runs]


class _MlflowFolderContent:
    """The content of a folder: `runs` in the order of their making, and `models`."""

    def __init__(self, client: MlflowClient) -> None:
        self.client = client
        pages = iterate_search_pages(lambda token: client.search_experiments(page_token=token))
        experiments = [one.experiment_id for one in pages]
        runs = iterate_search_pages(lambda token: client.search_runs(experiments, page_token=token))
        models = iterate_search_pages(lambda token: client.search_logged_models(experiments, page_token=token))
        self.runs = sorted(runs, key=lambda run: int(run.info.start_time)) if experiments else []
        self.ids = {run.info.run_id for run in self.runs}
        self.models = [*models] if experiments else []


def _run_update_of_logged_run(found: _MlflowFolderContent, run: Run, trial: int, status: str, end: int) -> RunUpdate:
    """Return everything of one run."""
    info, above = run.info, run.data.tags.get("mlflow.parentRunId")
    is_nested = above in found.ids - {info.run_id}
    files: list[tuple[Path, str | None]] = [(_file_uri_to_path(info.artifact_uri), None)]
    models = [one for one in found.models if one.source_run_id == info.run_id]
    files += [(_file_uri_to_path(one.artifact_location), one.name) for one in models]
    given = {name: text for name, text in run.data.tags.items() if not name.startswith(MLFLOW_SYSTEM_TAGS)}
    tags = {name: truncate_value(text) for name, text in given.items()}
    points = [
        MetricValue(name, metric.value, metric.timestamp, metric.step)
        for name in run.data.metrics
        for metric in found.client.get_metric_history(info.run_id, name)
    ]
    return RunUpdate(
        run_key=f"{trial}/{info.run_id}",
        parent_key=f"{trial}/{above}" if is_nested else str(trial),
        name=truncate_value(info.run_name),
        start_ms=info.start_time,
        tags=tags | {FUNCTION_RUN_TAG: f"{trial}/{info.run_id}"},
        params={name: truncate_value(text) for name, text in run.data.params.items()},
        metric_values=list(dict.fromkeys(points)),  # MLflow repeats one where a model was logged with it
        status="FINISHED" if info.status == "FINISHED" else status,
        end_ms=info.end_time or end,
        files=[(path, place) for path, place in files if path.is_dir() and any(path.iterdir())],
    )


@contextmanager
def _allow_file_store() -> Iterator[None]:
    """Let MLflow read such a folder in the block, which it does only where the environment says so."""
    with restore_variables_after(allowed := variables_of_processes(ProcessKind.FUNCTION)):
        os.environ |= allowed
        yield


def _file_uri_to_path(uri: str | None) -> Path:
    return Path(unquote(urlsplit(uri or "").path))
