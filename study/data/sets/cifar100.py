"""cifar100: 60,000 photographs of a hundred classes."""

from dataclasses import dataclass

from study.data import cifar, holdout
from study.data.dataset import Facts, Split

SOURCES = (cifar.CIFAR100_SOURCE,)


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section."""

    val_share: holdout.ValShareKey = 0.1
    split_seed: holdout.SplitSeedKey = 0
    folds: holdout.FoldsKey = None


def describe(options: Options) -> Facts:
    """Return the facts: a hundred classes (CIFAR's fine labels), no bias labels."""
    return cifar.cifar_normalised_facts("CIFAR-100", 100)


def build(options: Options) -> dict[str, Split]:
    """Read the two files, then cut the validation split off."""
    folder = cifar.CIFAR100_SOURCE.find()
    names = ("train", "test")
    whole = {name: Split(*cifar.read_batch_files(folder, [name], b"fine_labels", 100)) for name in names}
    return holdout.add_held_out_val(whole, options.val_share, options.split_seed)


load_labels = build
"""The files hold classes and images together."""
