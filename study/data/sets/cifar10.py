"""cifar10: 60,000 photographs of ten classes, the official files or a lossy copy, then called CIFAR-10 (JPEG, q75)."""

from dataclasses import dataclass
from typing import Annotated, Literal

from typing_extensions import Doc

from study.data import cifar, holdout
from study.data.cache import load_cached
from study.data.dataset import Dataset, Facts, Split, SplitLabels
from study.data.source import Source

SourceKind = Annotated[
    Literal["auto", "official", "jpeg"],
    Doc(
        "official: `cifar-10-batches-py`, checksummed; jpeg: `cifar10-jpeg/*.tar.gz`, with other pixels "
        "and order; auto: the official files where they are there"
    ),
]
"""Type of the key `source`."""


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section."""

    source: SourceKind = "auto"
    val_share: holdout.Share = 0.1
    split_seed: holdout.SplitSeed = 0
    folds: holdout.Folds = None


def is_jpeg(source: SourceKind) -> bool:
    """Tell whether this source means the JPEG copy, with the files that are on this machine."""
    official = cifar.CIFAR10.path_or_none() or cifar.CIFAR10.existing_archive()
    return source == "jpeg" or (
        source == "auto" and not official and all(one.path_or_none() for one in cifar.JPEG_ARCHIVES)
    )


def describe(options: Options) -> Facts:
    """Return the facts: ten classes, no bias labels."""
    title = "CIFAR-10 (JPEG, q75)" if is_jpeg(options.source) else "CIFAR-10"
    return Facts(10, None, cifar.SHAPE, mean=cifar.MEAN, deviation=cifar.DEVIATION, title=title)


def sources(options: Options) -> tuple[Source, ...]:
    """Return the official folder, or the two archives of the JPEG copy."""
    return cifar.JPEG_ARCHIVES if is_jpeg(options.source) else (cifar.CIFAR10,)


def read(kind: SourceKind) -> dict[str, cifar.Arrays]:
    """Read images and classes of `train` and `test`."""
    if is_jpeg(kind):
        return {
            name: cifar.read_jpeg(one.find()) for name, one in zip(("train", "test"), cifar.JPEG_ARCHIVES, strict=True)
        }
    folder = cifar.CIFAR10.find()
    names = {"train": [f"data_batch_{number}" for number in range(1, 6)], "test": ["test_batch"]}
    return {split: cifar.read_batches(folder, batches, b"labels", 10) for split, batches in names.items()}


def labels(options: Options) -> dict[str, SplitLabels]:
    """Return the classes of each split; no image is decoded."""
    if is_jpeg(options.source):
        train, test = (SplitLabels(cifar.jpeg_classes(archive.find())) for archive in cifar.JPEG_ARCHIVES)
    else:
        train, test = (SplitLabels(target) for _, target in read(options.source).values())
    return holdout.cut_off_val({"train": train, "test": test}, options.val_share, options.split_seed)


def load(options: Options) -> Dataset:
    """Read the files, then cut the validation split off."""
    return load_cached("cifar10", options, describe(options), lambda: _build(options), sources(options))


def _build(options: Options) -> dict[str, Split]:
    whole = {name: Split(*arrays) for name, arrays in read(options.source).items()}
    return holdout.cut_off_val(whole, options.val_share, options.split_seed)
