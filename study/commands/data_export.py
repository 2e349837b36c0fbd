"""`study data export`: a data set's images as files in a folder, with a table of their labels, as a user's own are."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from study import data
from study.commands.data import checked_section
from study.data import Split
from study.errors import UserError
from study.files.output import writing
from study.files.whole import write_whole

LABELS = "labels.csv"
"""The table in the folder."""

COLUMNS = ("file", "class", "bias", "split")
"""Its columns; `bias` is left out where the data have no bias labels."""


def export(name: str, folder: Path, assignments: Iterable[str] = ()) -> Path:
    """Write every labelled image of a data set as PNG, and the table. Returns the table's path.

    Args:
        folder: a new or an empty one.
        assignments: keys of the data section, as `rho=0.95`.

    Raises:
        UserError: a name or key is not known, the data set holds no images of one or three channels, its files are
            missing, or there is something in the folder.
    """
    section = checked_section(name, assignments, "export")
    facts = data.describe(section)
    if facts.is_table or facts.shape[0] not in (1, 3):
        raise UserError(f"{name}: holds no images that a file can have: samples of shape {facts.shape}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder}: is there already and not empty. Give a new folder")
    dataset = data.load(section)
    columns = COLUMNS if facts.bias_classes else tuple(column for column in COLUMNS if column != "bias")
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    samples = sum(len(split) for split in dataset.splits.values())
    number, digits = 0, len(str(max(0, samples - 1)))
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for split_name, split in dataset.splits.items():
            for index in np.flatnonzero(split.target >= 0):
                file = f"{number:0{digits}}.png"
                _write(folder / file, split.inputs[index])
                target = _name(facts.class_names, int(split.target[index]))
                row = {"file": file, "class": target, "bias": _bias(split, int(index), facts.bias_names)}
                writer.writerow({**row, "split": split_name})
                number += 1
        write_whole(folder / LABELS, stream.getvalue(), 0o666)
    return folder / LABELS


def _write(path: Path, pixels: NDArray[np.uint8]) -> None:
    """An image (C, H, W) as a file."""
    from PIL import Image

    Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)).squeeze()).save(path)


def _bias(split: Split, index: int, names: Sequence[str] | None) -> str:
    """The name of a sample's bias class, empty where it is not known."""
    return "" if split.bias is None else _name(names, int(split.bias[index]))


def _name(names: Sequence[str] | None, code: int) -> str:
    return "" if code < 0 else names[code] if names else str(code)
