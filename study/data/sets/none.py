"""none: no samples, for a training function of the user's own, which reads its data itself, and divides them itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from study.data.dataset import Dataset, Facts, HasLabels, Split, SplitLabels
from study.knobs import Range


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section: how the function divides its data.

    Attributes:
        folds: the function divides its samples outside test into so many folds: it is given `fold`, from 0 on, on which
            the trial is validated, and `folds`, this number, see `search.folds`; null: it divides nothing.
    """

    folds: Annotated[int, Range(low=2, high=100)] | None = None


def describe(options: Options) -> Facts:
    """Return facts that say nothing: only the function knows its samples."""
    return Facts(classes=1, bias_classes=None, shape=(1,), title="the function's own data")


def load_labels(options: Options) -> Mapping[str, HasLabels]:
    """Return splits without samples."""
    return {name: SplitLabels(np.zeros(0, np.int64)) for name in describe(options).splits}


def load(options: Options) -> Dataset:
    """Return splits without samples, as arrays."""
    facts = describe(options)
    empty = Split(np.zeros((0, *facts.shape), np.float32), np.zeros(0, np.int64))
    return Dataset(facts, dict.fromkeys(facts.splits, empty))
