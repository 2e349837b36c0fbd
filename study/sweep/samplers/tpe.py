"""Tree-structured Parzen estimator (Bergstra et al. 2011)."""

from collections.abc import Sequence

from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import FrozenTrial

from study.ranking.as_optuna import experimental
from study.sweep.samplers import OptunaStrategy


class TPEStrategy(OptunaStrategy):
    """Tree-structured Parzen estimator: draws all keys that go together at once, by where good and bad trials were.

    It learns from the best and the newest trials, complete and pruned, and keeps away from those that run.
    """

    BEST, NEWEST = 100, 200

    def _sampler(self, seed: int) -> BaseSampler:
        with experimental():
            return TPESampler(seed=seed, multivariate=True, group=bool(self._space.sometimes()), constant_liar=True)

    def _window(self) -> Sequence[FrozenTrial]:
        return self._history.window(self.BEST, self.NEWEST, pruned=True)
