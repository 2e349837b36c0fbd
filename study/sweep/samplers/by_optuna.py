"""Optuna's samplers, asked for each trial with its own seed and in a study of its own: nothing is carried over."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, Trial

from study.ranking.as_optuna import Window, experimental
from study.spec import StudySpec
from study.sweep.samplers.history import History
from study.sweep.samplers.strategy import Strategy
from study.upstream.optuna_trials import suggest


def study_of(sampler: BaseSampler, history: History, number: int = 0, seen: Sequence[FrozenTrial] = ()) -> optuna.Study:
    """A study of this sampler that holds these trials and will ask for the trial of this number."""
    return optuna.create_study(storage=Window(seen, number), sampler=sampler, directions=history.directions)


class OptunaStrategy(Strategy):
    """What one of Optuna's samplers suggests after a part of the history.

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
        """What it sees of the history."""
        return ()

    def _value(self, trial: Trial, key: str, seed: int) -> Any:
        """What it gives to a key."""
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


class AllKeys(TPESampler):
    """TPE of keys that every trial has, which Optuna would look for in every trial that it sees.

    Args:
        history: that the trials are of. It knows their parameters in Optuna's own form, into which Optuna would bring
            those of all trials that it sees for each suggestion.
    """

    def __init__(self, history: History) -> None:
        super().__init__(seed=0, multivariate=True, constant_liar=True)
        self._history = history
        domains = history.distributions.items()
        self._domains = {key: domain for key, domain in sorted(domains) if not domain.single()}

    def begin(self, seed: int) -> None:
        """Draw as one that was made with this seed, which takes longer."""
        self._rng.rng.seed(seed)
        self._random_sampler = RandomSampler(seed=seed)

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self._domains

    def _get_internal_repr(
        self, trials: list[FrozenTrial], search_space: dict[str, BaseDistribution], study: optuna.Study
    ) -> dict[str, NDArray[np.float64]]:
        rows = [self._history.internal[trial.number] for trial in trials]
        return {key: np.asarray([row[key] for row in rows]) for key in search_space}


class TPEStrategy(OptunaStrategy):
    """Tree-structured Parzen estimator (Bergstra et al. 2011), of all keys that go together at once.

    It learns from complete and pruned trials, and keeps away from what runs. It looks at the best and the newest.
    """

    BEST, NEWEST = 100, 200

    def __init__(self, spec: StudySpec, history: History) -> None:
        super().__init__(spec, history)
        with experimental():
            self._all_keys = None if spec.space.sometimes() else AllKeys(history)

    def _sampler(self, seed: int) -> BaseSampler:
        if self._all_keys is not None:
            self._all_keys.begin(seed)
            return self._all_keys
        with experimental():
            return TPESampler(seed=seed, multivariate=True, group=True, constant_liar=True)

    def _window(self) -> Sequence[FrozenTrial]:
        return self._history.window(self.BEST, self.NEWEST, pruned=True)


class GPStrategy(OptunaStrategy):
    """Gaussian process with expected improvement. It learns from complete trials, and looks at the best and newest."""

    BEST, NEWEST = 50, 50

    def _sampler(self, seed: int) -> BaseSampler:
        return GPSampler(seed=seed, warn_independent_sampling=False)

    def _window(self) -> Sequence[FrozenTrial]:
        return self._history.window(self.BEST, self.NEWEST, pruned=False)
