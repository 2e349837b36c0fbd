"""The predictions of a trained model for some samples, as a table, as plain values, and as CSV."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from study.data import table_columns
from study.data.table_columns import FaultsByRow
from study.text import escape_formula, pluralise

if TYPE_CHECKING:
    import pandas as pd

SampleKind = Literal["file", "row"]
"""Kind of a sample: an image's file, or a row of a table, counted from 1 without the header."""

SampleId = Path | int


MAX_SHOWN_SAMPLES = 10
"""Unreadable samples that are named for one reason."""


@dataclass(frozen=True)
class Prediction:
    """The predicted class of a sample, and the probability of each class."""

    sample: SampleId
    class_name: str
    probabilities: dict[str, float]

    @property
    def confidence(self) -> float:
        """Probability of the predicted class."""
        return max(self.probabilities.values())


@dataclass(frozen=True)
class Predictions:
    """The predictions of some samples, and the samples that have none.

    Attributes:
        kind: of the samples.
        samples: all, in their order.
        classes: of the model, in its order.
        predictions: predictions for the samples that could be read, in their order.
        unreadable: the other samples, each with why.
        faults: cells because of which rows of a table are unreadable.
        warning: which group the model serves worst, where that is known.
        id_column, ids: a column of the input that names the samples, and its text for each; None: none was asked for.
    """

    kind: SampleKind
    samples: Sequence[SampleId]
    classes: Sequence[str]
    predictions: Sequence[Prediction]
    unreadable: Mapping[SampleId, str]
    warning: str | None = None
    faults: FaultsByRow = field(default_factory=dict)
    id_column: str | None = None
    ids: Sequence[str] = ()

    def ids_of_predictions(self) -> list[str]:
        """Return the id of each of `predictions`; none where none was asked for."""
        return [name for sample, name in zip(self.samples, self.ids, strict=False) if sample not in self.unreadable]

    def to_document(self) -> list[dict[str, Any]]:
        """Return the rows as plain values."""
        named = [{"id": name} for name in self.ids_of_predictions()] or [{}] * len(self.predictions)
        return [
            {
                **name,
                self.kind: row.sample if isinstance(row.sample, int) else str(row.sample),
                "class": row.class_name,
                "confidence": row.confidence,
                "probabilities": row.probabilities,
            }
            for name, row in zip(named, self.predictions, strict=True)
        ]

    def to_data_frame(self) -> "pd.DataFrame":
        """Return a row per sample, in their order, by `kind`: `class`, `confidence`, and `p(CLASS)` for each class.

        These are missing where the sample could not be read.
        """
        import pandas as pd

        columns = ["class", "confidence", *(f"p({name})" for name in self.classes)]
        lacking, read = (None, *[float("nan")] * (len(columns) - 1)), iter(self.predictions)
        values = [lacking if sample in self.unreadable else _prediction_values(next(read)) for sample in self.samples]
        return pd.DataFrame(values, list(self.samples), columns).rename_axis(self.kind)


def _prediction_values(row: Prediction) -> tuple[Any, ...]:
    return (row.class_name, row.confidence, *row.probabilities.values())


def predictions_csv(predictions: Predictions) -> str:
    """Return CSV with file or row, class, confidence, and a column per class with its probability; before them the id.

    No cell is a formula: `./` stands before the path of a file where it would be one, an apostrophe before a class.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    ids = [[escape_formula(name)] for name in predictions.ids_of_predictions()] or [[]] * len(predictions.predictions)
    first = [escape_formula(predictions.id_column)] if predictions.id_column is not None else []
    writer.writerow([*first, predictions.kind, "class", "confidence", *(f"p({name})" for name in predictions.classes)])
    for name, row in zip(ids, predictions.predictions, strict=True):
        sample = str(row.sample)
        sample = sample if escape_formula(sample) == sample else f"./{sample}"
        numbers = (f"{value:.6f}" for value in (row.confidence, *row.probabilities.values()))
        writer.writerow([*name, sample, escape_formula(row.class_name), *numbers])
    return stream.getvalue()


def unreadable_lines(predictions: Predictions) -> list[str]:
    """Return lines about the samples that could not be read; none where all could.

    There is one for each column and kind of fault of a table's rows; and one for each file, of one reason the first
    `MAX_SHOWN_SAMPLES`, then how many more.
    """
    of_files = predictions.kind == "file"
    lines = [f"left out: {line}" for line in table_columns.summarise_faults(predictions.faults)]
    told: Counter[str] = Counter()
    for sample, reason in predictions.unreadable.items() if of_files else ():
        told[reason] += 1
        if told[reason] <= MAX_SHOWN_SAMPLES:
            lines.append(f"not readable: {sample} ({reason})")
    for reason, count in told.items():
        if count > MAX_SHOWN_SAMPLES:
            lines.append(f"not readable: {pluralise(count - MAX_SHOWN_SAMPLES, 'more file')} ({reason})")
    bad, samples_in_all = len(predictions.unreadable), len(predictions.samples)
    what = f"{predictions.kind}{'s' * (samples_in_all > 1)} could not be read{' as images' if of_files else ''}"
    return [*lines, f"error: {bad} of {samples_in_all} {what}"] if bad else []


def make_predictions(
    names: Sequence[str], samples: Iterable[SampleId], probabilities: NDArray[np.float32]
) -> list[Prediction]:
    """Return a prediction for each sample from the probabilities of its classes, (N, classes)."""
    return [
        Prediction(sample, names[int(row.argmax())], dict(zip(names, map(float, row), strict=True)))
        for sample, row in zip(samples, probabilities, strict=True)
    ]
