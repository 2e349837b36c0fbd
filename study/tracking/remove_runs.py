"""Removes a study from MLflow."""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from study.errors import UserError
from study.home.folder import Home, StudyFolder
from study.home.ledger import empty_ledger_message
from study.tracking import connection
from study.tracking.tracking_state import TrackingState, study_id_of_ledger

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import LoggedModel


def remove_study_runs(home: Home, folder: StudyFolder) -> int:
    """Delete the runs of a study, trials and all.

    They are marked as deleted: `mlflow gc` removes them for good, where a home or a server calls it. In MLflow of the
    home's own their artifacts are removed at once, and their experiment is deleted too when nothing else is in it.

    Returns:
        The number of runs.

    Raises:
        UserError: the home's database is damaged, MLflow does not answer or does not let them be deleted; calling again
            goes on with the rest. Or the ledger's first line is lost, which tells whose runs they are.
    """
    if home.uses_own_mlflow and not home.database_file.exists():
        return 0
    if home.uses_own_mlflow:
        connection.prepare_mlflow_database(home)
    study = study_id_of_ledger(folder.ledger_file)
    if not study:
        problem = empty_ledger_message(folder.ledger_file)
        raise UserError(f"{problem}, and so is which runs in MLflow are its own. Remove it by hand")
    try:
        return _remove_from_all_experiments(home, folder, study)
    except Exception as error:  # whatever MLflow, its database or the network raise
        raise UserError(
            f"{folder.name}: its runs are still in MLflow: {connection.format_mlflow_error(error, home.tracking_uri)}"
        ) from None


def _remove_from_all_experiments(home: Home, folder: StudyFolder, study: str) -> int:
    client = connection.open_mlflow_of_home(home)
    named = client.get_experiment_by_name(folder.name)
    noted = TrackingState.load(folder.tracking_state_file, home.tracking_uri)
    experiments = {noted.experiment, named.experiment_id if named else ""} - {""}
    return sum(_remove_from_experiment(home, client, experiment, study) for experiment in sorted(experiments))


def _remove_from_experiment(home: Home, client: "MlflowClient", experiment_id: str, study: str) -> int:
    runs = list(_iterate_undeleted_run_ids(client, experiment_id, f"tags.`study.id` = '{study}'"))
    models = _delete_model_versions(client, experiment_id, study, set(runs))
    experiment = client.get_experiment(experiment_id)
    is_whole = len(runs) == sum(1 for _ in _iterate_undeleted_run_ids(client, experiment_id))
    if home.uses_own_mlflow and is_whole and experiment.lifecycle_stage == "active":
        client.rename_experiment(experiment_id, f"{experiment.name[:200]}, deleted, {study}")  # frees the name
        client.delete_experiment(experiment_id)
    elif experiment.lifecycle_stage == "active":
        for run_id in runs:
            client.delete_run(run_id)
    if home.uses_own_mlflow:
        for name in (*(f"models/{model_id}" for model_id in models), *runs):
            for left in home.artifacts_folder.glob(f"*/{name}"):
                shutil.rmtree(left, ignore_errors=True)
        for folder in home.artifacts_folder.glob("*"):
            with suppress(OSError):  # not empty: another study's
                (folder / "models").rmdir()
            with suppress(OSError):
                folder.rmdir()
    return len(runs)


def _delete_model_versions(client: "MlflowClient", experiment_id: str, study: str, runs: set[str]) -> list[str]:
    """Delete the registered versions that are of these runs, then the study's logged models; return their ids.

    A registered name goes with its last version.
    """
    for version in client.search_model_versions(f"tags.`study.id` = '{study}'"):
        if version.run_id in runs:  # a copy of this study may have versions too
            client.delete_model_version(version.name, version.version)
            if not client.search_model_versions(f"name = '{version.name}'"):
                client.delete_registered_model(version.name)
    model_ids = [model.model_id for model in _iterate_logged_models(client, experiment_id, study)]
    for model_id in model_ids:
        client.delete_logged_model(model_id)
    return model_ids


def _iterate_logged_models(client: "MlflowClient", experiment_id: str, study: str) -> Iterator["LoggedModel"]:
    from mlflow.exceptions import MlflowException

    try:
        for model in connection.iterate_search_pages(
            lambda token: client.search_logged_models([experiment_id], page_token=token)
        ):
            if model.tags.get("study.id") == study:
                yield model
    except MlflowException as error:
        if not connection.is_unknown_route(error):
            raise


def _iterate_undeleted_run_ids(client: "MlflowClient", experiment_id: str, query: str = "") -> Iterator[str]:
    """Yield the id of every run that is not marked as deleted."""
    from mlflow.entities import ViewType

    of = [experiment_id], query, ViewType.ACTIVE_ONLY, 1000
    for run in connection.iterate_search_pages(lambda token: client.search_runs(*of, page_token=token)):
        yield run.info.run_id
