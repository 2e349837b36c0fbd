"""Final models in MLflow: logged on their study's run, and registered."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from study.errors import UserError
from study.home import Home, StudyFolder
from study.tracking.connection import connect, told
from study.tracking.progress import STUDY, Progress
from study.trained import Description, Model

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.models import ModelSignature

ALIAS = "candidate"
"""Of the newest version: whoever puts a model into service gives it another."""

REQUIREMENTS = ("mlflow", "numpy", "pillow", "safetensors", "scipy", "torch", "torchvision")
"""Libraries that a model needs where it is loaded."""


def register(home: Home, folder: StudyFolder, name: str, model: Model) -> str | None:
    """Log a model on its study's run and register it as a version of `name`, with the alias `candidate`. A model that
    is registered already stays as it is.

    Returns:
        What went wrong, else None; nothing is done for a study that MLflow does not have.
    """
    progress = Progress.load(folder.tracking_file, home.tracking_uri)
    if STUDY not in progress.runs:
        return None
    try:
        client = connect(home.tracking_uri)
        description = Description.read(model.description)
        if not _is_registered(client, name, description):
            with _spoken_to(home.tracking_uri):
                _register(client, name, progress, model, description)
    except UserError as error:
        return str(error)
    except Exception as error:  # whatever MLflow, its database or the network raise
        return told(error, home.tracking_uri)
    return None


def download(home: Home, uri: str, folder: Path) -> Path:
    """Fetch a registered model into a folder.

    Args:
        uri: `models:/NAME@ALIAS` or `models:/NAME/VERSION`.

    Returns:
        The path of its description, the weights beside it.

    Raises:
        UserError: MLflow does not have it, does not answer, or it is not one of this project's.
    """
    try:
        connect(home.tracking_uri)
        with _spoken_to(home.tracking_uri):
            from mlflow.artifacts import download_artifacts

            place = Path(download_artifacts(artifact_uri=uri, dst_path=str(folder)))
    except Exception as error:  # whatever MLflow, its database or the network raise
        raise UserError(f"{uri}: {told(error, home.tracking_uri)}") from None
    found = sorted((place / "artifacts").glob("*.json"))
    if len(found) != 1:
        raise UserError(f"{uri}: is no model that study train registered")
    return found[0]


def _is_registered(client: "MlflowClient", name: str, description: Description) -> bool:
    tag = {"study.model": description.weights_digest, "study.id": description.told["study_id"]}
    found = client.search_model_versions(f"name = '{name}'")
    return any(tag.items() <= one.tags.items() for one in found)


def _register(client: "MlflowClient", name: str, progress: Progress, model: Model, description: Description) -> None:
    import mlflow
    from mlflow.exceptions import MlflowException
    from mlflow.models import Model as Logged

    facts = description.facts
    example = np.zeros((1, *facts.shape), dtype=np.float32 if facts.is_table else np.uint8)
    tags = {
        "study.id": description.told["study_id"],
        "study.name": description.told["study"],
        "study.seed": str(description.told["seed"]),
        "study.model": description.weights_digest,
    }
    logged = Logged.log(
        artifact_path=None,
        name=name,
        flavor=mlflow.pyfunc,
        run_id=progress.runs[STUDY],
        tags=tags,
        python_model=str(Path(__file__).with_name("pyfunc_model.py")),
        artifacts={"description": str(model.description), "weights": str(model.weights)},
        code_paths=[str(Path(__file__).parents[1])],
        signature=_signature(facts.shape, facts.classes, example.dtype),
        input_example=example,
        validate_serving_input=False,
        pip_requirements=[f"{one}=={version(one).partition('+')[0]}" for one in REQUIREMENTS],
    )
    try:
        client.create_registered_model(name)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    card = model.card.read_text(encoding="utf-8")
    made = client.create_model_version(
        name, logged.model_uri, progress.runs[STUDY], tags, description=card[:LONGEST], model_id=logged.model_id
    )
    client.set_registered_model_alias(name, ALIAS, made.version)


LONGEST = 5000
"""Characters of a description that every MLflow takes."""


def _signature(shape: tuple[int, ...], classes: int, kind: np.dtype) -> "ModelSignature":
    from mlflow.models import ModelSignature
    from mlflow.types.schema import Schema, TensorSpec

    probabilities = TensorSpec(np.dtype(np.float32), (-1, classes))
    return ModelSignature(Schema([TensorSpec(kind, (-1, *shape))]), Schema([probabilities]))


@contextmanager
def _spoken_to(uri: str) -> Iterator[None]:
    """Have MLflow's module-level functions speak to this server."""
    import mlflow

    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(uri)
    try:
        yield
    finally:
        mlflow.set_tracking_uri(before)
