"""The code of a model in MLflow, read as a file by whoever loads the model, with nothing pickled."""

from pathlib import Path

import mlflow
import pandas as pd
from mlflow.pyfunc import PythonModel, PythonModelContext

from study.trained import TrainedClassifier
from study.trained.prediction import predict_images, predict_rows


class StudyPyfuncModel(PythonModel):
    """Model that classifies image files (column `file`), or a table's rows as in training."""

    def load_context(self, context: PythonModelContext) -> None:
        """Build the networks and load the weights, both from artifacts of the model."""
        self.classifier = TrainedClassifier.load_from_description(Path(context.artifacts["description"]))

    def predict(self, context: PythonModelContext, model_input: pd.DataFrame, params: object = None) -> pd.DataFrame:
        """Return a row for each that is given, in its order: what `study predict` writes, and `problem`.

        A sample that cannot be read has no class and no numbers; `problem` says why, and is empty for the others.

        Raises:
            UserError: columns are missing.
        """
        if self.classifier.facts.is_table:
            found = predict_rows(self.classifier, model_input, "the rows")
        else:
            found = predict_images(self.classifier, [Path(file) for file in model_input["file"]])
        frame = found.to_data_frame().reset_index().astype({found.kind: str if found.kind == "file" else int})
        return frame.assign(problem=[found.unreadable.get(sample, "") for sample in found.samples])


mlflow.models.set_model(StudyPyfuncModel())
