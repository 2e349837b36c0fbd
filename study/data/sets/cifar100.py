"""cifar100: 60,000 photographs of a hundred classes."""

from dataclasses import dataclass

from study.data import cifar, holdout
from study.data.dataset import Facts, Split, SplitLabels

SOURCES = (cifar.CIFAR100_SOURCE,)


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section."""

    val_share: holdout.ValShareKey = 0.1
    split_seed: holdout.SplitSeedKey = 0
    folds: holdout.FoldsKey = None


def describe(options: Options) -> Facts:
    """Return the facts: a hundred classes (CIFAR's fine labels), no bias labels."""
    return cifar.facts_of_photographs("CIFAR-100", 100)


def labels(options: Options) -> dict[str, SplitLabels]:
    """Return the classes of each split."""
    train, test = (SplitLabels(target) for _, target in _read_train_and_test().values())
    return holdout.add_held_out_val({"train": train, "test": test}, options.val_share, options.split_seed)


def build(options: Options) -> dict[str, Split]:
    """Read the two files, then cut the validation split off."""
    whole = {name: Split(*arrays) for name, arrays in _read_train_and_test().items()}
    return holdout.add_held_out_val(whole, options.val_share, options.split_seed)


def _read_train_and_test() -> dict[str, cifar.ImagesAndClasses]:
    folder = cifar.CIFAR100_SOURCE.find()
    return {name: cifar.read_batch_files(folder, [name], b"fine_labels", 100) for name in ("train", "test")}
