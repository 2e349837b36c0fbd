"""A trained model's predictions for a user's images."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from study.data.image_files import decode_readable
from study.errors import UserError
from study.text.spreadsheet import neutral
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


@dataclass(frozen=True)
class Predictions:
    """What became of some image files.

    Attributes:
        classes: of the model, in its order.
        rows: of the files that could be read, in the order of the files.
        unreadable: why, of the others.
    """

    classes: Sequence[str]
    rows: Sequence[Prediction]
    unreadable: Mapping[Path, str]


def predict(classifier: Classifier, images: Iterable[Path]) -> Predictions:
    """The class of each image; a folder stands for all images in it and its subfolders, ordered by path.

    Raises:
        UserError: the model does not take square colour images, or there are none.
    """
    facts = classifier.facts
    if facts.is_table or facts.shape[0] != 3 or facts.shape[1] != facts.shape[2]:
        raise UserError(
            f"the model takes inputs of shape {facts.shape}, not square colour images. For its kind of data use study "
            "evaluate"
        )
    files = [file for path in images for file in _files(path)]
    frame = classifier.description.config["data"].get("frame", "crop")
    rows: list[Prediction] = []
    unreadable: dict[Path, str] = {}
    for start in range(0, len(files), AT_ONCE):
        part = files[start : start + AT_ONCE]
        inputs, reasons = decode_readable(part, facts.shape[1], frame)
        unreadable |= {part[index]: reason for index, reason in reasons.items()}
        readable = [index for index in range(len(part)) if index not in reasons]
        if readable:
            probabilities = classifier.probabilities(inputs[readable])
            rows += _predictions(classifier, [part[index] for index in readable], probabilities)
    return Predictions(classifier.classes, rows, unreadable)


def table(predictions: Predictions) -> str:
    """As CSV: file, class, and a column per class with its probability.

    No cell is a formula: `./` stands before the path of a file where it would be one, an apostrophe before a class.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["file", "class", *(f"p({name})" for name in predictions.classes)])
    for row in predictions.rows:
        file = str(row.file)
        file = file if neutral(file) == file else f"./{file}"
        writer.writerow([file, neutral(row.class_name), *(f"{value:.6f}" for value in row.probabilities.values())])
    return stream.getvalue()


def unreadable_lines(predictions: Predictions) -> list[str]:
    """A line for each file that could not be read, then how many; none where all could be read."""
    bad = [f"not readable: {file} ({reason})" for file, reason in predictions.unreadable.items()]
    files = len(predictions.rows) + len(bad)
    return [*bad, f"error: {len(bad)} of {files} file{'s' * (files > 1)} could not be read as images"] if bad else []


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UserError(f"{path}: no such file or folder")
    named = (file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES)
    images = sorted(file for file in named if file.is_file() or not file.exists())  # a link may lead nowhere
    if not images:
        raise UserError(f"{path}: holds no images ({', '.join(SUFFIXES)})")
    return images


def _predictions(classifier: Classifier, files: list[Path], probabilities: NDArray[np.float32]) -> list[Prediction]:
    names = classifier.classes
    return [
        Prediction(file, names[int(row.argmax())], dict(zip(names, map(float, row), strict=True)))
        for file, row in zip(files, probabilities, strict=True)
    ]
