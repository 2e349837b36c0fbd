"""A study on three folds of the digits, and networks that judge them by luck."""

import numpy as np
from helpers import quickstart
from numpy.typing import NDArray

from study import data
from study.home.record import TrialRecord
from study.spec import StudySpec
from study.sweep.joined_folds import FoldJoiner

FOLDS = (
    "data.val=biased",
    "data.folds=3",
    "train.epochs=4",
    "search.trials=6",
    "search.early_stopping=none",
    "search.confirm={top: 2}",
)


def folded(*changes: str) -> StudySpec:
    return quickstart(*FOLDS, *changes)


class Judges:
    """Networks that are right in a share of the samples, by trial."""

    def __init__(self, spec: StudySpec) -> None:
        self.dataset = data.load(spec.base["data"])
        assert self.dataset.folds is not None
        self.folds = self.dataset.folds
        self.joins = FoldJoiner(spec, self.dataset).join_new_configurations

    def __call__(self, trial: TrialRecord) -> NDArray[np.int64]:
        target = self.folds.non_test_samples.target[self.folds.fold_of_sample == trial.fold]
        other = (target + 1) % self.dataset.facts.classes
        luck = np.random.default_rng((trial.repeated_trial or 0, trial.seed)).random(len(target))
        return np.where(luck < 0.5 + 0.05 * (trial.repeated_trial or 0), target, other)

    def right(self, trial: TrialRecord) -> NDArray[np.int64]:
        return self.folds.non_test_samples.target[self.folds.fold_of_sample == trial.fold]
