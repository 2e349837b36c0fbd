"""Read CIFAR-10 and CIFAR-100 as they are distributed, and the JPEG copy of CIFAR-10."""

import pickle
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from study.data.dataset import Facts
from study.data.image_decoding import decode_image, iterate_archive_files
from study.data.source import Source
from study.errors import UserError


class _ArrayUnpickler(pickle.Unpickler):
    """Unpickler that builds only plain values and numpy arrays, so that no code in a file runs."""

    def find_class(self, module: str, name: str) -> Any:
        allowed = {"_reconstruct": np._core.multiarray._reconstruct, "ndarray": np.ndarray, "dtype": _unpickle_dtype}  # type: ignore[attr-defined]
        if module.split(".")[0] == "numpy" and name in allowed:
            return allowed[name]
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which a batch of CIFAR does not need")


def _unpickle_dtype(kind: Any, *_: Any) -> np.dtype[Any]:
    """Build the type of an array; old pickles give `align` as a number, which numpy no longer accepts."""
    return np.dtype(kind)


def read_cifar_pickle(path: Path) -> dict[bytes, Any]:
    """Read the dictionary in a file of CIFAR's Python version; its keys are bytes.

    Raises:
        UserError: the file is cut short, damaged, or holds anything but plain values and arrays.
    """
    try:
        with path.open("rb") as file:
            content = _ArrayUnpickler(file, encoding="bytes").load()
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, IndexError, KeyError, AttributeError) as error:
        raise UserError(f"{path}: not a readable batch of CIFAR: {error}. Remove it and get it again") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: holds {type(content).__name__}, a batch of CIFAR is a dictionary")
    return content


CIFAR10_CLASS_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
"""Classes of CIFAR-10, in the order of its labels."""

CIFAR_IMAGE_SHAPE = (3, 32, 32)
CIFAR10_PIXEL_MEAN, CIFAR10_PIXEL_STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
"""Mean and deviation with which the DCL and HCL code normalises CIFAR-10, CIFAR-100 and STL-10."""

CIFAR10_SOURCE = Source(
    "cifar-10-batches-py",
    "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    md5="c58f30108f718f92721af3b95e74349a",
    archive="cifar-10-python.tar.gz",
)
CIFAR100_SOURCE = Source(
    "cifar-100-python",
    "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
    md5="eb9058c3a382ffc7106e4002c42a8d85",
    archive="cifar-100-python.tar.gz",
)
JPEG_ARCHIVES = (
    Source("cifar10-jpeg/train.tar.gz", note="An archive of train/CLASS/*.jpg."),
    Source("cifar10-jpeg/test.tar.gz", note="An archive of test/CLASS/*.jpg."),
)


def cifar_normalised_facts(title: str, classes: int = 10, bias_classes: int | None = None, **others: Any) -> Facts:
    """Return the facts of CIFAR's images, or of others that are normalised as these."""
    shown = {"shape": CIFAR_IMAGE_SHAPE, "mean": CIFAR10_PIXEL_MEAN, "deviation": CIFAR10_PIXEL_STD, "title": title}
    return Facts(classes, bias_classes, **{**shown, **others})


ImagesAndClasses = tuple[NDArray[np.uint8], NDArray[np.int64]]
"""Images (N, 3, 32, 32) and classes (N,)."""


def read_batch_files(folder: Path, names: Sequence[str], labels: bytes, classes: int) -> ImagesAndClasses:
    """Read some batch files of the official Python version, one after the other.

    Raises:
        UserError: a file is missing, damaged, or has a label out of range.
    """
    parts = [_read_batch_file(folder / name, labels, classes) for name in names]
    return np.concatenate([images for images, _ in parts]), np.concatenate([target for _, target in parts])


def _read_batch_file(path: Path, labels: bytes, classes: int) -> ImagesAndClasses:
    if not path.exists():
        raise UserError(f"{path}: not found; {path.parent} is not complete. Remove it and unpack the archive again")
    content = read_cifar_pickle(path)
    images, target = content.get(b"data"), content.get(labels)
    if not isinstance(images, np.ndarray) or not isinstance(target, list):
        raise UserError(f"{path}: holds no {'data' if target else labels.decode()}; it is not a batch of this data set")
    target = np.asarray(target, np.int64)
    if images.dtype != np.uint8 or images.shape != (len(target), int(np.prod(CIFAR_IMAGE_SHAPE))):
        raise UserError(f"{path}: images are {images.dtype} {images.shape}, uint8 ({len(target)}, 3072) is needed")
    if len(target) and not 0 <= target.min() <= target.max() < classes:
        raise UserError(f"{path}: labels from {target.min()} to {target.max()}, allowed is 0 to {classes - 1}")
    return images.reshape(-1, *CIFAR_IMAGE_SHAPE), target


def read_jpeg_archive(archive: Path) -> ImagesAndClasses:
    """Decode the images of one archive, members `SPLIT/CLASS/NAME.jpg`, in the archive's order.

    Raises:
        UserError: the archive or an image is damaged, or a folder is not a class.
    """
    images, target = [], []
    for name, label, data in _iterate_jpeg_members(archive):
        images.append(decode_image(data, f"{archive}: {name}", CIFAR_IMAGE_SHAPE))
        target.append(label)
    return np.stack(images), np.asarray(target, np.int64)


def read_jpeg_classes(archive: Path) -> NDArray[np.int64]:
    """Read the classes of an archive's images, (N,), without decoding them.

    Raises:
        UserError: the archive is damaged, or a folder is not a class.
    """
    return _read_jpeg_classes_cached(archive, archive.stat().st_mtime_ns).copy()


@lru_cache(maxsize=4)
def _read_jpeg_classes_cached(archive: Path, changed: int) -> NDArray[np.int64]:
    """Cache the classes: a plan may ask for several data sets of one archive, which takes seconds to read."""
    return np.array([label for _, label, _ in _iterate_jpeg_members(archive)], np.int64)


def _iterate_jpeg_members(archive: Path) -> Iterator[tuple[str, int, bytes]]:
    """Yield name, class and content of each image in an archive."""
    empty = True
    for name, data in iterate_archive_files(archive):
        folder = Path(name).parent.name
        if folder not in CIFAR10_CLASS_NAMES:
            raise UserError(f"{archive}: {name} is in folder {folder!r}, allowed are {', '.join(CIFAR10_CLASS_NAMES)}")
        yield name, CIFAR10_CLASS_NAMES.index(folder), data
        empty = False
    if empty:
        raise UserError(f"{archive}: holds no images. Get it again")
