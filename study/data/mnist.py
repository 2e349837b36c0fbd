"""Read the files of MNIST, from which several data sets are made."""

import gzip
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from study.data.source import Source
from study.errors import UserError


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """Read the array of unsigned bytes in an IDX file, gzipped or not.

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


MNIST_FOLDER, MIRROR_URL = "MNIST/raw", "https://ossci-datasets.s3.amazonaws.com/mnist"

SHA256_CHECKSUMS = {
    "train-images-idx3-ubyte": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
"""sha256 of the gzipped files, whose md5 sums are those of torchvision."""

FILE_PREFIXES = {"train": "train", "test": "t10k"}


def mnist_sources() -> tuple[Source, ...]:
    """List the four files, gzipped, or as torchvision unpacks them if only those exist."""
    files = []
    for name, checksum in SHA256_CHECKSUMS.items():
        packed = Source(f"{MNIST_FOLDER}/{name}.gz", f"{MIRROR_URL}/{name}.gz", checksum)
        plain = Source(f"{MNIST_FOLDER}/{name}")
        files.append(plain if packed.path_or_none() is None and plain.path_or_none() else packed)
    return tuple(files)


def read_images_and_digits(split: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read images (N, 28, 28), 0 is ground and 255 stroke, and digits (N,) of `train` or `test`.

    Raises:
        UserError: a file is not there, damaged, or does not fit the other.
    """
    path, labels_path = _image_and_label_paths(split)
    images, target = read_idx(path, 3), read_digits(split)
    if len(images) != len(target):
        raise UserError(f"{labels_path}: has {len(target)} labels for the {len(images)} images of {path.name}")
    if images.shape[1:] != (28, 28):
        raise UserError(f"{path}: images of {images.shape[1]} x {images.shape[2]} pixels, 28 x 28 are needed")
    return images, target


def read_digits(split: str) -> NDArray[np.int64]:
    """Read the digits alone, (N,).

    Raises:
        UserError: their file is not there, or damaged.
    """
    _, path = _image_and_label_paths(split)
    labels = read_idx(path, 1)
    if len(labels) and labels.max() > 9:
        position = int(labels.argmax())
        raise UserError(f"{path}: label {position} is {labels[position]}, allowed is 0 to 9")
    return labels.astype(np.int64)


def _image_and_label_paths(split: str) -> tuple[Path, Path]:
    images, labels = (source.find() for source in mnist_sources() if f"/{FILE_PREFIXES[split]}-" in source.path)
    return images, labels
