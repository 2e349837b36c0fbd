"""The code of a model in MLflow: read as a file by whoever loads the model, with nothing pickled."""

from pathlib import Path
from typing import Any

import mlflow
import numpy as np
from mlflow.pyfunc import PythonModel, PythonModelContext

from study.trained import Classifier


class StudyModel(PythonModel):
    """Gives probabilities, float32 (N, classes), for samples as `Classifier.probabilities` takes them."""

    def load_context(self, context: PythonModelContext) -> None:
        """Build the networks and take the weights, both as artifacts of the model."""
        self.classifier = Classifier.load(Path(context.artifacts["description"]))

    def predict(self, context: PythonModelContext, model_input: np.ndarray, params: Any = None) -> np.ndarray:
        """The probabilities of the samples' classes."""
        return self.classifier.probabilities(model_input)


mlflow.models.set_model(StudyModel())
