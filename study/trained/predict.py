"""A trained model's predictions for a user's images."""

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from study.data.image_files import decode
from study.errors import UserError
from study.trained import Classifier

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")
"""Endings of the files in a folder that count as images."""

AT_ONCE = 1024
"""Images in memory at a time."""


@dataclass(frozen=True)
class Prediction:
    """The predicted class of a file, and the probability of each class."""

    file: Path
    class_name: str
    probabilities: dict[str, float]

    def to_document(self) -> dict[str, Any]:
        """As plain values."""
        return {"file": str(self.file), "class": self.class_name, "probabilities": self.probabilities}


def predict(classifier: Classifier, images: Iterable[Path]) -> list[Prediction]:
    """The class of each image; a folder stands for all images in it and its subfolders, ordered by path.

    Raises:
        UserError: the model does not take square colour images, there are none, or some cannot be read.
    """
    facts = classifier.facts
    if facts.is_table or facts.shape[0] != 3 or facts.shape[1] != facts.shape[2]:
        raise UserError(
            f"the model takes inputs of shape {facts.shape}, not square colour images. For its kind of data use study "
            "evaluate"
        )
    files = [file for path in images for file in _files(path)]
    frame = classifier.description.config["data"].get("frame", "crop")
    predictions = []
    for start in range(0, len(files), AT_ONCE):
        part = files[start : start + AT_ONCE]
        predictions += _predictions(classifier, part, classifier.probabilities(decode(part, facts.shape[1], frame)))
    return predictions


def table(predictions: Iterable[Prediction]) -> str:
    """The same as CSV: file, class, and a column per class with its probability."""
    rows, stream = list(predictions), io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["file", "class", *(f"p({name})" for name in rows[0].probabilities)])
    for prediction in rows:
        writer.writerow(
            [prediction.file, prediction.class_name, *(f"{value:.6f}" for value in prediction.probabilities.values())]
        )
    return stream.getvalue()


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UserError(f"{path}: no such file or folder")
    images = sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file())
    if not images:
        raise UserError(f"{path}: holds no images ({', '.join(SUFFIXES)})")
    return images


def _predictions(classifier: Classifier, files: list[Path], probabilities: NDArray[np.float32]) -> list[Prediction]:
    names = classifier.classes
    return [
        Prediction(file, names[int(row.argmax())], dict(zip(names, map(float, row), strict=True)))
        for file, row in zip(files, probabilities, strict=True)
    ]
