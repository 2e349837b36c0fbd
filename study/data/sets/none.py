"""none: no samples, for a training function of the user's own, which reads its data itself."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from study.data.dataset import Dataset, Facts, Labelled, Labels, Split


@dataclass(frozen=True)
class Options:
    """No keys."""


def describe(options: Options) -> Facts:
    """Of samples that only the function knows."""
    return Facts(classes=1, bias_classes=None, shape=(1,), title="the function's own data")


def labels(options: Options) -> Mapping[str, Labelled]:
    """None."""
    return {name: Labels(np.zeros(0, np.int64)) for name in describe(options).splits}


def load(options: Options) -> Dataset:
    """Splits without samples."""
    facts = describe(options)
    empty = Split(np.zeros((0, *facts.shape), np.float32), np.zeros(0, np.int64))
    return Dataset(facts, dict.fromkeys(facts.splits, empty))
