"""Gaussian process with expected improvement, Optuna's."""

from collections.abc import Sequence

from optuna.samplers import BaseSampler, GPSampler
from optuna.trial import FrozenTrial

from study.sweep.samplers import OptunaStrategy


class GPStrategy(OptunaStrategy):
    """Gaussian process, which draws where it expects the most improvement, from the best and newest complete trials."""

    BEST, NEWEST = 50, 50

    def _sampler(self, seed: int) -> BaseSampler:
        return GPSampler(seed=seed, warn_independent_sampling=False)

    def _window(self) -> Sequence[FrozenTrial]:
        return self._history.window(self.BEST, self.NEWEST, pruned=False)
