"""cifar10: 60,000 photographs of ten classes, the official files or a lossy copy, then called CIFAR-10 (JPEG, q75)."""

from dataclasses import dataclass
from typing import Annotated, Literal

from typing_extensions import Doc

from study.data import cifar, holdout
from study.data.dataset import Facts, Split, SplitLabels
from study.data.source import Source

SourceKey = Annotated[
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

    source: SourceKey = "auto"
    val_share: holdout.ValShareKey = 0.1
    split_seed: holdout.SplitSeedKey = 0
    folds: holdout.FoldsKey = None


def uses_jpeg_copy(source: SourceKey) -> bool:
    """Tell whether this source means the JPEG copy, with the files that are on this machine."""
    official = cifar.CIFAR10_SOURCE.path_or_none() or cifar.CIFAR10_SOURCE.existing_archive()
    return source == "jpeg" or (
        source == "auto" and not official and all(one.path_or_none() for one in cifar.JPEG_ARCHIVES)
    )


def describe(options: Options) -> Facts:
    """Return the facts: ten classes, no bias labels."""
    return cifar.cifar_normalised_facts("CIFAR-10 (JPEG, q75)" if uses_jpeg_copy(options.source) else "CIFAR-10")


def sources(options: Options) -> tuple[Source, ...]:
    """Return the official folder, or the two archives of the JPEG copy."""
    return cifar.JPEG_ARCHIVES if uses_jpeg_copy(options.source) else (cifar.CIFAR10_SOURCE,)


def read_train_and_test(kind: SourceKey) -> dict[str, cifar.ImagesAndClasses]:
    """Read images and classes of `train` and `test`."""
    if uses_jpeg_copy(kind):
        return {
            name: cifar.read_jpeg_archive(one.find())
            for name, one in zip(("train", "test"), cifar.JPEG_ARCHIVES, strict=True)
        }
    folder = cifar.CIFAR10_SOURCE.find()
    names = {"train": [f"data_batch_{number}" for number in range(1, 6)], "test": ["test_batch"]}
    return {split: cifar.read_batch_files(folder, batches, b"labels", 10) for split, batches in names.items()}


def load_labels(options: Options) -> dict[str, SplitLabels]:
    """Return the classes of each split; no image is decoded."""
    if uses_jpeg_copy(options.source):
        train, test = (SplitLabels(cifar.read_jpeg_classes(archive.find())) for archive in cifar.JPEG_ARCHIVES)
    else:
        train, test = (SplitLabels(target) for _, target in read_train_and_test(options.source).values())
    return holdout.add_held_out_val({"train": train, "test": test}, options.val_share, options.split_seed)


def build(options: Options) -> dict[str, Split]:
    """Read the files, then cut the validation split off."""
    whole = {name: Split(*arrays) for name, arrays in read_train_and_test(options.source).items()}
    return holdout.add_held_out_val(whole, options.val_share, options.split_seed)
