"""cifar100: 60,000 photographs of a hundred classes."""

from dataclasses import dataclass

from study.data import cifar, holdout
from study.data.cache import load_cached
from study.data.dataset import Dataset, Facts, Split, SplitLabels

SOURCES = (cifar.CIFAR100,)


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section."""

    val_share: holdout.Share = 0.1
    split_seed: holdout.SplitSeed = 0
    folds: holdout.Folds = None


def describe(options: Options) -> Facts:
    """Return the facts: a hundred classes (CIFAR's fine labels), no bias labels."""
    return Facts(100, None, cifar.SHAPE, mean=cifar.MEAN, deviation=cifar.DEVIATION, title="CIFAR-100")


def labels(options: Options) -> dict[str, SplitLabels]:
    """Return the classes of each split."""
    train, test = (SplitLabels(target) for _, target in _read().values())
    return holdout.cut_off_val({"train": train, "test": test}, options.val_share, options.split_seed)


def load(options: Options) -> Dataset:
    """Read the two files, then cut the validation split off."""
    return load_cached("cifar100", options, describe(options), lambda: _build(options), SOURCES)


def _build(options: Options) -> dict[str, Split]:
    whole = {name: Split(*arrays) for name, arrays in _read().items()}
    return holdout.cut_off_val(whole, options.val_share, options.split_seed)


def _read() -> dict[str, cifar.Arrays]:
    folder = cifar.CIFAR100.find()
    return {name: cifar.read_batches(folder, [name], b"fine_labels", 100) for name in ("train", "test")}
