"""Gaussian process with expected improvement, as Optuna has it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from study.sweep.samplers import OptunaStrategy

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial


class GPStrategy(OptunaStrategy):
    """Draws where a Gaussian process expects most. It learns from complete trials, and looks at the best and newest."""

    good_for = "few, expensive trials; constraints"
    limits = "every trial must have every key; tenths of a second per suggestion"
    every_key = True
    most_values = 1_000_000  # it has all of them in memory
    BEST, NEWEST = 50, 50

    def _sampler(self, seed: int) -> "BaseSampler":
        from optuna.samplers import GPSampler

        return GPSampler(seed=seed, warn_independent_sampling=False)

    def _window(self) -> Sequence["FrozenTrial"]:
        return self._history.window(self.BEST, self.NEWEST, pruned=False)
