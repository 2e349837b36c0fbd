"""The predictions of a trained model for some samples, as a table, as plain values, and as CSV."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

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


class PredictedRow(NamedTuple):
    """A sample with its id, if one was asked for, its predicted class, and the probability of each class."""

    id: str | None
    sample: SampleId
    class_name: str
    probabilities: list[float]

    @property
    def confidence(self) -> float:
        """Probability of the predicted class."""
        return max(self.probabilities)


@dataclass(frozen=True)
class Predictions:
    """The predictions of some samples, and the samples that have none.

    Attributes:
        kind: of the samples.
        samples: all, in their order.
        classes: of the model, in its order.
        probabilities: of each class, for the samples that could be read, in their order: float32 (N, classes).
        unreadable: the other samples, each with why.
        faults: cells because of which rows of a table are unreadable.
        warning: which group the model serves worst, where that is known.
        id_column, ids: a column of the input that names the samples, and its text for each; None: none was asked for.
    """

    kind: SampleKind
    samples: Sequence[SampleId]
    classes: Sequence[str]
    probabilities: NDArray[np.float32]
    unreadable: Mapping[SampleId, str]
    warning: str | None = None
    faults: FaultsByRow = field(default_factory=dict)
    id_column: str | None = None
    ids: Sequence[str] = ()

    def rows(self) -> Iterator[PredictedRow]:
        """Yield a row for each sample that could be read, in their order."""
        read = iter(self.probabilities)
        for place, sample in enumerate(self.samples):
            if sample not in self.unreadable:
                row = next(read)
                id_ = self.ids[place] if self.ids else None
                yield PredictedRow(id_, sample, self.classes[int(row.argmax())], row.tolist())

    def to_document(self) -> list[dict[str, Any]]:
        """Return the rows as plain values."""
        return [
            {
                **({} if row.id is None else {"id": row.id}),
                self.kind: row.sample if isinstance(row.sample, int) else str(row.sample),
                "class": row.class_name,
                "confidence": row.confidence,
                "probabilities": dict(zip(self.classes, row.probabilities, strict=True)),
            }
            for row in self.rows()
        ]

    def to_data_frame(self) -> "pd.DataFrame":
        """Return a row per sample, in their order, by `kind`: `class`, `confidence`, and `p(CLASS)` for each class.

        These are missing where the sample could not be read.
        """
        import pandas as pd

        columns = ["class", "confidence", *(f"p({name})" for name in self.classes)]
        lacking, read = (None, *[float("nan")] * (len(columns) - 1)), self.rows()
        told = (None if sample in self.unreadable else next(read) for sample in self.samples)
        values = [(row.class_name, row.confidence, *row.probabilities) if row else lacking for row in told]
        return pd.DataFrame(values, list(self.samples), columns).rename_axis(self.kind)


def predictions_csv(predictions: Predictions) -> str:
    """Return CSV with file or row, class, confidence, and a column per class with its probability; before them the id.

    No cell is a formula: `./` stands before the path of a file where it would be one, an apostrophe before a class.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    first = [escape_formula(predictions.id_column)] if predictions.id_column is not None else []
    writer.writerow([*first, predictions.kind, "class", "confidence", *(f"p({name})" for name in predictions.classes)])
    for row in predictions.rows():
        sample, first = str(row.sample), [] if row.id is None else [escape_formula(row.id)]
        sample = sample if escape_formula(sample) == sample else f"./{sample}"
        numbers = (f"{value:.6f}" for value in (row.confidence, *row.probabilities))
        writer.writerow([*first, sample, escape_formula(row.class_name), *numbers])
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
