"""A trained model that predicts, for notebooks and scripts."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from study.api.argument_names import name_arguments_in_errors
from study.trained import TrainedClassifier
from study.trained.prediction import predict_inputs, predict_rows


class TrainedModel:
    """Trained model that predicts.

    Attributes:
        classifier: its networks.
    """

    def __init__(self, classifier: TrainedClassifier) -> None:
        self.classifier = classifier

    @property
    def classes(self) -> Sequence[str]:
        """Names of the classes, by number."""
        return self.classifier.class_names

    @name_arguments_in_errors
    def predict(
        self, inputs: str | Path | Iterable[str | Path] | NDArray[Any] | pd.DataFrame, column: str | None = None
    ) -> pd.DataFrame:
        """Predict the class of each sample, and the probability of each class.

        Args:
            inputs: of images, a file, a folder, a CSV that lists files, or several of these; of rows, a CSV or Parquet
                file, or a data frame; or inputs as the data set holds them: images uint8 (N, C, H, W), rows of a table
                float32 (N, F).
            column: of a CSV that lists files, the one that has them.

        Returns:
            A row per sample: `class`, `confidence`, the probability of that class, then a column `p(CLASS)` for each.
            Indexed by `file`, by `row` from 1 on, or by number for an array. A sample that cannot be read has no
            class; `attrs["unreadable"]` says why. `attrs["warning"]` says which group the model serves worst.

        Raises:
            UserError: the model does not take such inputs, or there are none.
        """
        if isinstance(inputs, np.ndarray):
            return self._predict_array(inputs)
        if isinstance(inputs, pd.DataFrame):
            found = predict_rows(self.classifier, inputs, "the data frame")
        else:
            paths = [inputs] if isinstance(inputs, str | Path) else list(inputs)
            found = predict_inputs(self.classifier, [Path(path) for path in paths], column)
        frame = found.to_data_frame()
        frame.attrs["unreadable"] = {str(sample): reason for sample, reason in found.unreadable.items()}
        frame.attrs["warning"] = found.warning
        return frame

    def _predict_array(self, inputs: NDArray[Any]) -> pd.DataFrame:
        probabilities = self.classifier.predict_probabilities(inputs)
        frame = pd.DataFrame(probabilities, columns=[f"p({name})" for name in self.classes])
        frame.insert(0, "class", [self.classes[place] for place in probabilities.argmax(1)])
        frame.insert(1, "confidence", probabilities.max(1))
        return frame
