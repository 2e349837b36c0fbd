"""A study out of MLflow again."""

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

from study.errors import UserError
from study.files import below
from study.home.events import Created, event_of
from study.home.folder import Home, StudyFolder
from study.home.ledger import Tail, empty
from study.tracking.connection import check_database, error_line, is_unknown_to_server, open_mlflow

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import LoggedModel


def remove(home: Home, folder: StudyFolder) -> int:
    """Delete the runs of a study, trials and all.

    From MLflow of the home's own for good, with their artifacts; so is their experiment when nothing else is in it. On
    a server they are marked as deleted: `mlflow gc` there removes them, and their artifacts.

    Returns:
        How many runs that were.

    Raises:
        UserError: the home's database is damaged, MLflow does not answer or does not let them be deleted; calling again
            goes on with the rest. Or the ledger's first line is lost, which tells whose runs they are.
    """
    if home.owns_tracking and not home.database.exists():
        return 0
    if home.owns_tracking:
        check_database(home)
    try:
        created = event_of(next(Tail(folder.ledger_file).new(), {"event": ""}))  # damage behind it does not matter
    except ValueError:
        created = None
    if not isinstance(created, Created):
        raise UserError(f"{empty(folder.ledger_file)}, and so is which runs in MLflow are its own. Remove it by hand")
    try:
        return _remove(home, folder.name, created.id)
    except Exception as error:  # whatever MLflow, its database or the network raise
        raise UserError(
            f"{folder.name}: its runs are still in MLflow: {error_line(error, home.tracking_uri)}"
        ) from None


def _remove(home: Home, name: str, study: str) -> int:
    client = open_mlflow(home)
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        return 0
    runs = list(_runs(client, experiment.experiment_id, f"tags.`study.id` = '{study}'"))
    models = _unregister(client, experiment.experiment_id, study, set(runs))
    for run_id in runs:
        client.delete_run(run_id)
    if home.owns_tracking:
        _purge(home, client, runs, models, experiment.experiment_id)
    return len(runs)


def _unregister(client: "MlflowClient", experiment_id: str, study: str, runs: set[str]) -> list[str]:
    """Take the versions of registered models back that are of these runs, the name with its last one; then delete the
    study's logged models. Gives the ids of these."""
    for version in client.search_model_versions(f"tags.`study.id` = '{study}'"):
        if version.run_id in runs:  # the registry may have those of a copy of this study, too
            client.delete_model_version(version.name, version.version)
            if not client.search_model_versions(f"name = '{version.name}'"):
                client.delete_registered_model(version.name)
    model_ids = [model.model_id for model in _models(client, experiment_id, study)]
    for model_id in model_ids:
        client.delete_logged_model(model_id)
    return model_ids


def _models(client: "MlflowClient", experiment_id: str, study: str) -> Iterator["LoggedModel"]:
    from mlflow.exceptions import MlflowException

    token = None
    while token != "":
        try:
            page = client.search_logged_models([experiment_id], page_token=token)
        except MlflowException as error:
            if is_unknown_to_server(error):
                return
            raise
        yield from (model for model in page if model.tags.get("study.id") == study)
        token = page.token or ""


def _runs(client: "MlflowClient", experiment_id: str, query: str = "") -> Iterator[str]:
    """Every run, also one that was marked as deleted."""
    from mlflow.entities import ViewType

    token = None
    while token != "":
        page = client.search_runs([experiment_id], query, ViewType.ALL, max_results=1000, page_token=token)
        yield from (run.info.run_id for run in page)
        token = page.token or ""


def _purge(home: Home, client: "MlflowClient", runs: list[str], models: list[str], experiment_id: str) -> None:
    """Do what `mlflow gc` does, for these runs and models alone."""
    from study.tracking.database import Database

    database = Database(client, home)
    folder = below(home.artifacts, client.get_experiment(experiment_id).name)
    for name in (*(f"models/{model_id}" for model_id in models), *runs):
        shutil.rmtree(below(folder, name), ignore_errors=True)
    database.purge(models, runs)
    if next(_runs(client, experiment_id), None) is None:
        client.delete_experiment(experiment_id)
        database.purge(experiment=experiment_id)
        shutil.rmtree(folder, ignore_errors=True)
