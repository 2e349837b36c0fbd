"""Optuna's samplers, asked for each trial with its own seed and in a study of its own: nothing is carried over."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, Trial

from study.ranking.as_optuna import Window, experimental
from study.sweep.samplers.strategy import History, Strategy
from study.upstream.optuna_trials import suggest


def study_of(sampler: BaseSampler, history: History, number: int = 0, seen: Sequence[FrozenTrial] = ()) -> optuna.Study:
    """A study of this sampler that holds these trials and will ask for the trial of this number."""
    return optuna.create_study(storage=Window(seen, number), sampler=sampler, directions=history.directions)


class OptunaStrategy(Strategy):
    """The suggestions of one of Optuna's samplers after a part of the history.

    The same parameters would give the same trial: ones that are known are drawn again, a few times.
    """

    ATTEMPTS = 5

    def suggest(self, number: int) -> dict[str, Any]:
        seen = self._window()
        for attempt in range(self.ATTEMPTS):
            params = self._drawn(number, self._seed(number, attempt), seen)
            if not self._history.knows(params):
                break
        return params

    def _drawn(self, number: int, seed: int, seen: Sequence[FrozenTrial]) -> dict[str, Any]:
        trial = study_of(self._sampler(seed), self._history, number, seen).ask()
        return self._space.walk(lambda key, domain: self._value(trial, key, seed))

    @abstractmethod
    def _sampler(self, seed: int) -> BaseSampler:
        """A sampler as new."""

    def _window(self) -> Sequence[FrozenTrial]:
        """Return what it sees of the history."""
        return ()

    def _value(self, trial: Trial, key: str, seed: int) -> Any:
        """Return what it gives to a key."""
        domain = self._history.distributions[key]
        if isinstance(domain, CategoricalDistribution):
            return suggest(trial, key, domain)
        if isinstance(domain, IntDistribution):
            return trial.suggest_int(key, domain.low, domain.high, step=domain.step, log=domain.log)
        assert isinstance(domain, FloatDistribution)
        return trial.suggest_float(key, domain.low, domain.high, step=domain.step, log=domain.log)


class RandomStrategy(OptunaStrategy):
    """Independent draws."""

    def _sampler(self, seed: int) -> BaseSampler:
        return RandomSampler(seed=seed)


class TPEStrategy(OptunaStrategy):
    """Tree-structured Parzen estimator (Bergstra et al. 2011), of all keys that go together at once.

    It learns from complete and pruned trials, and keeps away from what runs. It looks at the best and the newest.
    """

    BEST, NEWEST = 100, 200

    def _sampler(self, seed: int) -> BaseSampler:
        with experimental():
            return TPESampler(seed=seed, multivariate=True, group=bool(self._space.sometimes()), constant_liar=True)

    def _window(self) -> Sequence[FrozenTrial]:
        return self._history.window(self.BEST, self.NEWEST, pruned=True)


class GPStrategy(OptunaStrategy):
    """Gaussian process with expected improvement. It learns from complete trials, and looks at the best and newest."""

    BEST, NEWEST = 50, 50

    def _sampler(self, seed: int) -> BaseSampler:
        return GPSampler(seed=seed, warn_independent_sampling=False)

    def _window(self) -> Sequence[FrozenTrial]:
        return self._history.window(self.BEST, self.NEWEST, pruned=False)
