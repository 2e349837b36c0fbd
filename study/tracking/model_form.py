"""A model in MLflow's own form: it takes image files or rows, and brings the code that it needs."""

import shutil
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from study.data.columns import MISSING, Column
from study.trained import Description
from study.trained.model_files import Model

if TYPE_CHECKING:
    import pandas as pd
    from mlflow.models import Model as Form
    from mlflow.models import ModelSignature
    from mlflow.types.schema import ColSpec

REQUIREMENTS = ("mlflow", "numpy", "pandas", "pillow", "safetensors", "torch", "torchvision")
"""Libraries that a model needs where it is loaded; its code comes with it."""


def save(path: Path, model: Model, description: Description, form: "Form") -> None:
    """Write a model: weights and description, the package's code, signature, example and requirements.

    Args:
        path: a folder that is not there yet.
        form: with what MLflow calls the model.
    """
    import mlflow.pyfunc

    mlflow.pyfunc.save_model(
        path=str(path),
        mlflow_model=form,
        python_model=str(Path(__file__).with_name("pyfunc_model.py")),
        artifacts={"description": model.description.as_uri(), "weights": model.weights.as_uri()},  # read as addresses
        code_paths=[str(Path(__file__).parents[1])],
        signature=_signature(description),
        input_example=_example(description),
        pip_requirements=[f"{library}=={version(library).partition('+')[0]}" for library in REQUIREMENTS],
    )
    for cache in path.rglob("__pycache__"):
        shutil.rmtree(cache)


def _signature(description: Description) -> "ModelSignature":
    """Columns in and out, by name."""
    from mlflow.models import ModelSignature
    from mlflow.types.schema import ColSpec, DataType, Schema

    if description.encoding is None:
        kind = ColSpec(DataType.string, "file")
        inputs = Schema([kind])
    else:
        kind = ColSpec(DataType.long, "row")
        inputs = Schema([_column(column) for column in description.encoding])
    numbers = ["confidence", *(f"p({name})" for name in description.classes)]
    chosen, problem = ColSpec(DataType.string, "class"), ColSpec(DataType.string, "problem")
    outputs = Schema([kind, chosen, *(ColSpec(DataType.double, name) for name in numbers), problem])
    return ModelSignature(inputs, outputs)


def _column(column: Column) -> "ColSpec":
    """Of a number any type, as MLflow refuses whole numbers where a column of fractions is declared; what is no number
    the model itself tells. So with yes and no."""
    from mlflow.types.schema import AnyType, ColSpec, DataType

    any_type: Any = AnyType()
    return ColSpec(any_type if column.values is None or column.is_truth else DataType.string, column.name)


def _example(description: Description) -> "pd.DataFrame":
    import pandas as pd

    if description.encoding is None:
        return pd.DataFrame({"file": ["photos/0001.jpg"]})
    return pd.DataFrame([{column.name: _value(column) for column in description.encoding}])


def _value(column: Column) -> str | float:
    if column.values is None:
        return column.mean
    return next((value for value in column.values if value != MISSING), MISSING)
