"""The IDX files of MNIST, gzipped or not."""

import gzip
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from study.errors import UserError


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """The array of unsigned bytes in an IDX file.

    Raises:
        UserError: the file is cut short, damaged, or holds something else.
    """
    remedy = "Remove it and get it again: study data prepare"
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read: {error}. {remedy}") from None
    if data[:4] != bytes((0, 0, 8, dimensions)):
        raise UserError(f"{path}: not an IDX file of unsigned bytes in {dimensions} dimensions. {remedy}")
    header = 4 + 4 * dimensions
    shape = tuple(int(size) for size in np.frombuffer(data[4:header], ">u4"))
    if len(shape) < dimensions or len(data) - header != np.prod(shape, dtype=np.int64):
        raise UserError(f"{path}: has {len(data)} bytes, its header promises shape {shape}: cut short. {remedy}")
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)
