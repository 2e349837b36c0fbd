"""A trained model's predictions for a user's images, or for the rows of a table."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from study import data
from study.data import label_files, table_columns, table_format
from study.data.image_files import IMAGE_SUFFIXES, decode_readable_images
from study.data.label_files import path_as_spelled_on_disk
from study.data.table_columns import TableEncoding
from study.data.table_format import TABLE_SUFFIXES, UNKNOWN_FORMAT
from study.errors import UserError, did_you_mean_path
from study.text import list_few_names, quoted
from study.trained.classifier import TrainedClassifier
from study.trained.prediction_table import Predictions, SampleId

if TYPE_CHECKING:
    import pandas as pd

IMAGES_PER_BATCH = 1024
"""Images in memory at a time."""


def predict_inputs(
    classifier: TrainedClassifier, inputs: Iterable[Path], column: str | None = None, id_column: str | None = None
) -> Predictions:
    """Predict the class of each sample in these files; of several inputs, unreadable ones become samples without one.

    Args:
        inputs: for images: files, folders (all images in them and below, ordered by path) and tables that list files
            (relative to the table); for rows: one table.
        column: of a list of image files; None: the one that the model's own data have, or `file`.
        id_column: of the table or list, whose text names the samples; None: none.

    Raises:
        UserError: the model does not take such inputs, there are none, or a table lacks a column.
    """
    paths = list(inputs)
    ids: Sequence[str] = ()
    if id_column is not None:
        if len(paths) != 1 or paths[0].suffix.lower() not in TABLE_SUFFIXES or paths[0].is_dir():
            kinds = " or ".join(TABLE_SUFFIXES)
            raise UserError(f"--id {id_column}: is for one table, or one list of images ({kinds})")
        own = table_format.format_from_keys(classifier.description.config["data"])
        known = own if classifier.facts.is_table else UNKNOWN_FORMAT
        ids = label_files.read_table_as_text(paths[0], (id_column,), known)[id_column].tolist()
    if not classifier.facts.is_table:
        found = _predict_files(classifier, paths, column)
    elif column is not None:
        raise UserError(f"--file {column}: is for lists of images, the model takes the rows of a table")
    else:
        found = _predict_table(classifier, paths)
    return replace(found, id_column=id_column, ids=ids)


def _predict_table(classifier: TrainedClassifier, paths: Sequence[Path]) -> Predictions:
    """Predict the class of each row of the one table in `paths`."""
    if len(paths) != 1 or paths[0].suffix.lower() not in TABLE_SUFFIXES:
        given = list_few_names([str(path) for path in paths])
        raise UserError(f"{given}: the model takes the rows of one table ({' or '.join(TABLE_SUFFIXES)})")
    encoding, section = _encoding_of_classifier(classifier), classifier.description.config["data"]
    known = table_format.format_from_keys(section)
    frame = label_files.read_user_table(paths[0], section, table_columns.text_column_dtypes(encoding))
    header = label_files.read_header(paths[0], known)
    table_columns.check_header(header, [column.name for column in encoding], paths[0])
    return predict_rows(classifier, frame, str(paths[0]), table_format.detect_format(paths[0], known).decimal)


def _predict_files(classifier: TrainedClassifier, inputs: Sequence[Path], column: str | None) -> Predictions:
    files, lost = list[Path](), dict[Path, UserError]()
    for path in inputs:
        try:
            files += _image_files(path, _image_column_of_list(classifier, column))
        except UserError as error:
            lost[path] = error
    if lost and not files:
        raise next(iter(lost.values()))
    found = predict_images(classifier, files)
    reasons: dict[SampleId, str] = {path: str(error).removeprefix(f"{path}: ") for path, error in lost.items()}
    return replace(found, samples=[*found.samples, *lost], unreadable={**found.unreadable, **reasons})


def predict_images(classifier: TrainedClassifier, files: Sequence[Path]) -> Predictions:
    """Predict the class of each image file, made square and resized as images were in training.

    Raises:
        UserError: the model does not take square colour images.
    """
    facts = classifier.facts
    if facts.is_table or facts.shape[0] != 3 or facts.shape[1] != facts.shape[2]:
        raise UserError(
            f"the model takes inputs of shape {facts.shape}, not square colour images. For its kind of data use study "
            "evaluate"
        )
    frame = data.image_square_mode(classifier.description.config["data"])
    found = [np.empty((0, len(classifier.class_names)), np.float32)]
    unreadable: dict[SampleId, str] = {}
    for start in range(0, len(files), IMAGES_PER_BATCH):
        part = files[start : start + IMAGES_PER_BATCH]
        inputs, reasons = decode_readable_images(part, facts.shape[1], frame)
        unreadable |= {part[index]: reason for index, reason in reasons.items()}
        readable = [index for index in range(len(part)) if index not in reasons]
        if readable:
            found.append(classifier.predict_probabilities(inputs[readable]))
    warning = _worst_group_warning(classifier)
    return Predictions("file", files, classifier.class_names, np.concatenate(found), unreadable, warning)


def predict_rows(
    classifier: TrainedClassifier, frame: "pd.DataFrame", place: str, decimal: str | None = None
) -> Predictions:
    """Predict the class of each row of a table, whose columns are encoded as those of the training rows.

    Args:
        place: what the table is, for messages.
        decimal: decimal mark in its texts; None: as the model's study says, or a point.

    Raises:
        UserError: it has no rows, lacks a column, or the model does not know how its columns were encoded.
    """
    encoding = _encoding_of_classifier(classifier)
    names = [str(name) for name in frame.columns]
    needed = [column.name for column in encoding]
    if lacking := [name for name in needed if name not in names]:
        problem = label_files.missing_columns_message(lacking, names, needed)
        raise UserError(f"{place}: {problem}. The model takes: {list_few_names(needed)}")
    if twice := [name for name in needed if names.count(name) > 1]:
        raise UserError(f"{place}: has more than one column {', '.join(map(quoted, twice))}. Which one is meant?")
    if frame.empty:
        raise UserError(f"{place}: has no rows")
    section = classifier.description.config["data"]
    frame = label_files.blank_missing_marks(frame.set_axis(names, axis=1), section.get("missing_marks") or ())
    inputs, problems = table_columns.encode_rows(frame, encoding, decimal or section.get("decimal") or ".")
    sound = [row for row in range(len(frame)) if row not in problems]
    classes = classifier.class_names
    nothing = np.empty((0, len(classes)), np.float32)
    probabilities = classifier.predict_probabilities(inputs[sound]) if sound else nothing
    samples = range(1, len(frame) + 1)
    unreadable: dict[SampleId, str] = {row + 1: "; ".join(map(str, cells)) for row, cells in problems.items()}
    warning = _worst_group_warning(classifier)
    return Predictions("row", samples, classes, probabilities, unreadable, warning, problems)


def _encoding_of_classifier(classifier: TrainedClassifier) -> TableEncoding:
    if classifier.description.encoding is None:
        name = classifier.description.config["data"]["name"]
        raise UserError(
            f"the model's files do not say how the columns of {name} became inputs: they do for a table of your own "
            "that stayed as it was during training. Use study evaluate, or train it again"
        )
    return classifier.description.encoding


def _worst_group_warning(classifier: TrainedClassifier) -> str | None:
    worst = classifier.description.worst_groups
    return None if worst is None else worst.first_sentence()


def _image_column_of_list(classifier: TrainedClassifier, column: str | None) -> str:
    """Return the column of a list of image files."""
    return column or str(classifier.description.config["data"].get("file", "file"))


def _image_files(path: Path, column: str) -> list[Path]:
    if path.suffix.lower() in TABLE_SUFFIXES and not path.is_dir():
        listed = label_files.read_table_as_text(path, (column,), UNKNOWN_FORMAT)[column].tolist()
        label_files.check_file_names(listed, path, column)
        return [path_as_spelled_on_disk(path.parent, name) for name in listed]
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UserError(f"{path}: no such file or folder. {did_you_mean_path(path)}".rstrip(". "))
    named = (file for file in label_files.list_visible_files(path) if file.suffix.lower() in IMAGE_SUFFIXES)
    images = [file for file in named if file.is_file() or not file.exists()]  # a link may lead nowhere
    if not images:
        raise UserError(f"{path}: holds no images ({', '.join(IMAGE_SUFFIXES)})")
    return images
