"""A trained model that predicts, for notebooks and scripts."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from study.trained import Classifier
from study.trained.predict import predict


class Model:
    """A trained model.

    Attributes:
        classifier: its networks.
    """

    def __init__(self, classifier: Classifier) -> None:
        self.classifier = classifier

    @property
    def classes(self) -> Sequence[str]:
        """The classes' names."""
        return self.classifier.classes

    def predict(self, images: str | Path | Iterable[str | Path] | NDArray[Any]) -> pd.DataFrame:
        """The class of each image, and the probability of each class.

        Args:
            images: a file, a folder, several of these, or inputs as the data set holds them: images uint8 (N, C, H, W),
                rows of a table float32 (N, F).

        Returns:
            A row per image: `class`, then a column `p(CLASS)` for each. Indexed by `file`, or by number for an array.
            A file that cannot be read has no class; `attrs["unreadable"]` says why.

        Raises:
            UserError: the model does not take such inputs, or there are none.
        """
        columns = [f"p({name})" for name in self.classes]
        if isinstance(images, np.ndarray):
            probabilities = self.classifier.probabilities(images)
            frame = pd.DataFrame(probabilities, columns=columns)
            frame.insert(0, "class", [self.classes[place] for place in probabilities.argmax(1)])
            return frame
        paths = [images] if isinstance(images, str | Path) else list(images)
        found = predict(self.classifier, [Path(path) for path in paths])
        values = {row.file: (row.class_name, *row.probabilities.values()) for row in found.rows}
        values |= {file: (None, *[float("nan")] * len(columns)) for file in found.unreadable}
        frame = pd.DataFrame.from_dict(values, orient="index", columns=["class", *columns]).rename_axis("file")
        frame.attrs["unreadable"] = {str(file): reason for file, reason in found.unreadable.items()}
        return frame
