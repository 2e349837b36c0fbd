"""Read conditioning vectors from an array file: CLIP features of ImageNet-100 in the CCL-K paper, or the user's own.

An .npz file of two arrays: `keys`, the name of each sample (N,), and `values`, its vector (N, K), floats or
integers. It may have more samples than are needed.
"""

import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from study.data import label_files
from study.errors import UserError
from study.text import quoted

CONDITION_FILE_HINT = "An .npz with `keys` (N,) and `values` (N, K) is needed"


def expected_vector_width(path_text: str) -> int:
    """Return K of the file at a user's path; 0 while it is missing, since a study can be planned before it exists."""
    path = label_files.find_user_path_or_none(path_text)
    return read_vector_width(path) if path else 0


def read_vector_width(path: Path) -> int:
    """Read K from the file's header alone.

    Raises:
        UserError: the file does not have this form.
    """
    with _refuse_unreadable(path), zipfile.ZipFile(path) as archive, archive.open("values.npy") as file:
        version = np.lib.format.read_magic(file)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape = reader(file)[0]
    if len(shape) != 2 or not shape[1]:
        raise UserError(f"{path}: `values` has the shape {shape}. {CONDITION_FILE_HINT}")
    return int(shape[1])


def read_condition_vectors(path: Path, names: Sequence[str]) -> NDArray[np.float32]:
    """Read the vectors of these samples, (len(names), K).

    Raises:
        UserError: the file does not have this form, lacks a sample or has one twice, or a value is not finite.
    """
    read_vector_width(path)
    with _refuse_unreadable(path), np.load(path, allow_pickle=False) as file:
        keys, values = file["keys"], file["values"]
    if keys.ndim != 1 or len(keys) != len(values):
        raise UserError(f"{path}: `keys` has the shape {keys.shape}, `values` {values.shape}. {CONDITION_FILE_HINT}")
    if values.dtype.kind not in "fiu":
        raise UserError(
            f"{path}: `values` is of type {values.dtype}, floats or integers are needed. {CONDITION_FILE_HINT}"
        )
    places = {str(key): place for place, key in enumerate(keys.tolist())}
    if len(places) < len(keys):
        raise UserError(f"{path}: {len(keys) - len(places)} of its keys occur twice. Remove the repeats")
    composed: dict[str, int] = {}  # a letter with an accent is one sign (NFC) in one program, two (NFD) in another
    for key, place in places.items():
        composed.setdefault(unicodedata.normalize("NFC", key), place)
    found = [places.get(name, composed.get(unicodedata.normalize("NFC", name))) for name in names]
    absent = [name for name, place in zip(names, found, strict=True) if place is None]
    if absent:
        example = f"; one of its keys is {quoted(next(iter(places)))}" if places else ""
        raise UserError(
            f"{path}: no vector for {len(absent)} of {len(names)} samples, such as {quoted(absent[0])}{example}"
        )
    vectors = values[[place for place in found if place is not None]]
    sound = (np.abs(vectors.astype(np.float64)) <= label_files.FLOAT32_MAX).all(1)  # false for NaN, too
    if not sound.all():
        wrong = int(np.flatnonzero(~sound)[0])
        raise UserError(
            f"{path}: the vector of {quoted(names[wrong])} is not finite everywhere, or has a number above "
            f"{label_files.FLOAT32_MAX:.1e}"
        )
    return vectors.astype(np.float32)


@contextmanager
def _refuse_unreadable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"{path}: not readable: {error}. {CONDITION_FILE_HINT}") from None
