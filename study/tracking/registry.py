"""Final models in MLflow: logged on their study's run, and registered."""

import re
import shutil
import tempfile
import warnings
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, cast

from study.catalogue import REFERENCE_METHOD
from study.data.table_columns import ColumnEncoding
from study.errors import UserError, suggest_or_list
from study.files import sha256_of_values
from study.home.folder import Home, StudyFolder
from study.models.published_weights import PACKAGED_WEIGHTS, weights_names_of
from study.tracking.connection import format_mlflow_error, is_unknown_route, open_mlflow_of_home
from study.tracking.tracking_state import STUDY_RUN_KEY, TrackingState
from study.trained import ModelDescription
from study.trained.model_files import ModelFiles

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.models import Model as Form
    from mlflow.models import ModelSignature
    from mlflow.types.schema import ColSpec

BASE_MODEL_REQUIREMENTS = ("mlflow", "numpy", "pandas", "pillow", "safetensors", "torch", "torchvision")
"""Libraries that a model needs where it is loaded; the package's code is saved with it."""


def save_pyfunc_model(path: Path, model: ModelFiles, description: ModelDescription, form: "Form") -> None:
    """Write a model: weights and description, the package's code, signature and requirements.

    Args:
        path: a folder that does not exist yet.
        form: MLflow's own record of the model, with its ids.
    """
    import mlflow.pyfunc

    files = {"description": model.description, "network": model.frozen_network}
    files |= {f"weights-{place}": path for place, path in enumerate(model.weights)}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*An input example was not provided")  # the signature replaces it
        mlflow.pyfunc.save_model(
            path=str(path),
            mlflow_model=form,
            python_model=str(Path(__file__).with_name("pyfunc_model.py")),
            artifacts={name: file.as_uri() for name, file in files.items() if file},
            code_paths=[str(Path(__file__).parents[1])],
            signature=_model_signature(description),
            pip_requirements=[
                f"{library}=={version(library).partition('+')[0]}"
                for library in _model_requirements(description, model.frozen_network is not None)
            ],
        )
    for cache in path.rglob("__pycache__"):
        shutil.rmtree(cache)


def _model_requirements(description: ModelDescription, whole: bool) -> list[str]:
    """Return the libraries that the model needs, also for a frozen network's weights and for scikit-learn's models.

    Args:
        whole: the weights are among the model's files.
    """
    model = description.config["model"]
    fitted = ["scikit-learn", "skops"] if description.config["method"]["name"] == REFERENCE_METHOD else []
    package = PACKAGED_WEIGHTS[model["name"]].package if model["name"] in PACKAGED_WEIGHTS else ""
    brings = package and not whole and model.get("frozen") and model["weights"] in weights_names_of(model["name"])
    return [*BASE_MODEL_REQUIREMENTS, *fitted, *([package.replace("_", "-")] if brings and find_spec(package) else [])]


def _model_signature(description: ModelDescription) -> "ModelSignature":
    """Return the columns in and out, by name."""
    from mlflow.models import ModelSignature
    from mlflow.types.schema import ColSpec, DataType, Schema

    if description.encoding is None:
        kind = ColSpec(DataType.string, "file")
        inputs = Schema([kind])
    else:
        kind = ColSpec(DataType.long, "row")
        inputs = Schema([_column_spec_of_encoding(column) for column in description.encoding])
    numbers = ["confidence", *(f"p({name})" for name in description.class_names_or_numbers)]
    chosen, problem = ColSpec(DataType.string, "class"), ColSpec(DataType.string, "problem")
    outputs = Schema([kind, chosen, *(ColSpec(DataType.double, name) for name in numbers), problem])
    return ModelSignature(inputs, outputs)


def _column_spec_of_encoding(column: ColumnEncoding) -> "ColSpec":
    """Return the type of a column: any type for numbers and truth values, else text.

    MLflow refuses whole numbers where fractions are declared; the model itself reports what is no number.
    """
    from mlflow.types.schema import AnyType, ColSpec, DataType

    any_type = cast(DataType, AnyType())  # MLflow's own type leaves it out
    return ColSpec(any_type if column.values is None or column.is_boolean else DataType.string, column.name)


CANDIDATE_ALIAS = "candidate"
"""Alias of the newest version; whoever puts a model into service gives it another."""

REGISTERED_MODEL_URI = re.compile(r"models:/([^/@]+)(?:@([^/@]+)|/(\d+))")


def register_model_version(home: Home, folder: StudyFolder, name: str, model: ModelFiles) -> str | None:
    """Log a model on its study's run and register it as a version of `name`, with the alias `candidate`.

    A model that is registered already stays as it is.

    Returns:
        What went wrong, else None; nothing is done for a study that MLflow does not have.
    """
    progress = TrackingState.load(folder.tracking_state_file, home.tracking_uri)
    if STUDY_RUN_KEY not in progress.runs:
        return None
    try:
        client = open_mlflow_of_home(home)
        description = ModelDescription.read_file(model.description)
        if not _is_model_registered(client, name, description, model):
            _log_and_register_version(client, name, progress, model, description)
    except UserError as error:
        return str(error)
    except Exception as error:  # whatever MLflow, its database or the network raise
        return format_mlflow_error(error, home.tracking_uri)
    return None


def download_registered_model(home: Home, uri: str, folder: Path) -> Path:
    """Fetch a registered model into a folder.

    Args:
        uri: `models:/NAME@ALIAS` or `models:/NAME/VERSION`.

    Returns:
        The path of its description, the weights beside it.

    Raises:
        UserError: MLflow does not have it, does not answer, or it is not one of this project's.
    """
    named = REGISTERED_MODEL_URI.fullmatch(uri)
    if named is None:
        raise UserError(f"{uri}: not of the form models:/NAME@ALIAS or models:/NAME/VERSION")
    name, alias, number = named.groups()
    client, registered = None, None
    try:
        client = open_mlflow_of_home(home)
        from mlflow.artifacts import download_artifacts

        registered = client.get_model_version_by_alias(name, alias) if alias else client.get_model_version(name, number)
        place = Path(download_artifacts(registered.source, dst_path=str(folder), tracking_uri=home.tracking_uri))
    except Exception as error:  # whatever MLflow, its database or the network raise
        absent = _missing_model_message(error, client, name) if client and not registered else None
        raise UserError(f"{uri}: {absent or format_mlflow_error(error, home.tracking_uri)}") from None
    descriptions = sorted((place / "artifacts").glob("*.json"))
    if len(descriptions) != 1:
        raise UserError(f"{uri}: is not a model that study train registered")
    return descriptions[0]


def _missing_model_message(error: Exception, client: "MlflowClient", name: str) -> str | None:
    """Return what exists in place of a model, version or alias that MLflow lacks; None for any other error."""
    if getattr(error, "error_code", None) not in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
        return None
    found = client.search_registered_models(f"name = '{name}'")
    if not found:
        names = [model.name for model in client.search_registered_models(max_results=20)]
        return f"no registered model of this name. {suggest_or_list(name, names, 'Registered')}"
    aliases, versions = sorted(found[0].aliases), client.search_model_versions(f"name = '{name}'")
    numbers = ", ".join(sorted((str(version.version) for version in versions), key=int))
    return f"not in the registry. {name} has the aliases: {', '.join(aliases) or 'none'}; versions: {numbers or 'none'}"


def _is_model_registered(client: "MlflowClient", name: str, description: ModelDescription, model: ModelFiles) -> bool:
    tags = {"study.model": _weights_digest(description), "study.id": description.told["study_id"]}
    tags |= _frozen_network_tag(model)
    versions = client.search_model_versions(f"name = '{name}'")
    return any(tags.items() <= version.tags.items() for version in versions)


def _weights_digest(description: ModelDescription) -> str:
    """Return the SHA-256 of the weights; of an ensemble that of its networks' digests."""
    digests = description.digest_by_weights_file
    return description.weights_digest if len(digests) == 1 else sha256_of_values(digests)


def _frozen_network_tag(model: ModelFiles) -> dict[str, str]:
    """Return the tag of a model with the weights of its frozen network inside."""
    return {} if model.frozen_network is None else {"study.network": model.frozen_network.name}


def _log_and_register_version(
    client: "MlflowClient", name: str, progress: TrackingState, model: ModelFiles, description: ModelDescription
) -> None:
    from mlflow.exceptions import MlflowException

    run_id = progress.runs[STUDY_RUN_KEY]
    tags = {
        "study.id": description.told["study_id"],
        "study.name": description.told["study"],
        "study.seed": description.seeds_text,
        "study.model": _weights_digest(description),
        **_frozen_network_tag(model),
    }
    if worst := description.worst_groups:
        tags["study.worst_group"] = " ".join(worst.sentences())[:MAX_VERSION_DESCRIPTION_CHARACTERS]
    source, model_id = _log_model(client, name, progress.experiment, run_id, model, description, tags)
    try:
        client.create_registered_model(name)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    card = model.card.read_text(encoding="utf-8")
    version = client.create_model_version(
        name, source, run_id, tags, description=card[:MAX_VERSION_DESCRIPTION_CHARACTERS], model_id=model_id
    )
    client.set_registered_model_alias(name, CANDIDATE_ALIAS, version.version)


def _log_model(
    client: "MlflowClient",
    name: str,
    experiment: str,
    run_id: str,
    model: ModelFiles,
    description: ModelDescription,
    tags: dict[str, str],
) -> tuple[str, str | None]:
    """Log a model on a run; return where its files are, and its id.

    The client is used alone: MLflow's functions for it change the server and experiment of the whole process. A server
    of MLflow 2 knows no logged models: there the files are artifacts of the run, and the id is None.
    """
    from mlflow.entities import LoggedModelOutput, LoggedModelStatus
    from mlflow.exceptions import MlflowException
    from mlflow.models import Model as Form

    try:
        logged = client.create_logged_model(experiment, name, run_id, tags, model_type="classifier")
    except MlflowException as error:
        if not is_unknown_route(error):
            raise
        with tempfile.TemporaryDirectory(prefix="study-model-") as folder:
            save_pyfunc_model(Path(folder) / "model", model, description, Form("model", run_id))
            client.log_artifacts(run_id, str(Path(folder) / "model"), "model")
        return f"{client.get_run(run_id).info.artifact_uri}/model", None
    try:
        with tempfile.TemporaryDirectory(prefix="study-model-") as folder:
            form = Form(logged.artifact_location, run_id, model_uuid=logged.model_id, model_id=logged.model_id)
            save_pyfunc_model(Path(folder) / "model", model, description, form)
            client.log_model_artifacts(logged.model_id, str(Path(folder) / "model"))
        client.finalize_logged_model(logged.model_id, LoggedModelStatus.READY)
        client.log_outputs(run_id, [LoggedModelOutput(logged.model_id, step=0)])
    except BaseException:
        client.finalize_logged_model(logged.model_id, LoggedModelStatus.FAILED)
        raise
    return logged.artifact_location, logged.model_id


MAX_VERSION_DESCRIPTION_CHARACTERS = 5000
"""Most characters of a description that every MLflow takes."""
