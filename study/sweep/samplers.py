"""The samplers, which suggest a search's parameters; `study.spec.sampler_capabilities` says what each can search."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import optuna
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, Trial

from study.knobs import Scalar
from study.ranking.optuna_storage import FixedTrialsStorage, ignore_experimental_warnings
from study.spec import StudySpec
from study.spec.optuna_distributions import value_at_unit_coordinate
from study.spec.schema import SamplerName
from study.spec.space import iterate_grid_cells

if TYPE_CHECKING:
    from study.sweep.optuna_history import OptunaHistory


class SearchStrategy(ABC):
    """Base of every sampler, which suggests parameters.

    A suggestion depends on the study's seed, the trial's number, and the history: on what was added and ended, in
    that order, and never on how often something was suggested.

    A sampler is one such class, a row of `STRATEGIES`, and an entry in `study.spec.sampler_capabilities`. This one is
    all that the row `"halves": Halves` needs:

        from random import Random


        class Halves(SearchStrategy):
            \"\"\"Draws from the lower half of each range until a trial is complete, then from the upper one.\"\"\"

            def suggest_params(self, number: int) -> dict[str, Scalar] | None:
                draw, lower = Random(self._seed_of_attempt(number)), not self._history.select_trials(1, 0, pruned=False)
                return self._space.suggest_params(
                    lambda key, domain: self._history.value_at_coordinate(key, (draw.random() + (not lower)) / 2)
                )
    """

    def __init__(self, spec: StudySpec, history: "OptunaHistory") -> None:
        self._spec, self._history, self._space = spec, history, spec.space

    @abstractmethod
    def suggest_params(self, number: int) -> dict[str, Scalar] | None:
        """Return parameters for the trial of this number, None where everything was tried."""

    def _seed_of_attempt(self, number: int, attempt: int = 0) -> int:
        """Return the seed of all that is drawn for this trial, another one for each attempt."""
        return (self._spec.search.seed * 1_000_003 + number + attempt * 500_009) % 2**32


class OptunaStrategy(SearchStrategy):
    """Base of strategies that ask one of Optuna's samplers.

    Optuna's sampler is asked for each trial with a seed of its own, in a study of its own that holds a part of the
    history: nothing is carried over. The same parameters would give the same trial: known ones are drawn again, a few
    times.
    """

    MAX_SUGGESTION_ATTEMPTS = 5

    def suggest_params(self, number: int) -> dict[str, Scalar]:
        history = self._history_for_sampler()
        for attempt in range(self.MAX_SUGGESTION_ATTEMPTS):
            params = self._draw_params(number, self._seed_of_attempt(number, attempt), history)
            if not self._history.has_params(params):
                break
        return params

    def _draw_params(self, number: int, seed: int, seen: Sequence[FrozenTrial]) -> dict[str, Scalar]:
        study = optuna.create_study(
            storage=FixedTrialsStorage(seen, number),
            sampler=self._make_sampler(seed),
            directions=self._history.directions,
        )
        trial = study.ask()
        return self._space.suggest_params(lambda key, domain: self._suggest_value(trial, key))

    @abstractmethod
    def _make_sampler(self, seed: int) -> BaseSampler:
        """Return a new sampler of Optuna's."""

    def _history_for_sampler(self) -> Sequence[FrozenTrial]:
        """Return the trials that the sampler sees."""
        return ()

    def _suggest_value(self, trial: Trial, key: str) -> Scalar:
        """Return the value that the trial's sampler gives to a key.

        The sampler itself is asked: `Trial.suggest_categorical` would take true for 1.
        """
        distribution = self._history.distributions[key]
        if distribution.single():
            return value_at_unit_coordinate(distribution, 0.5)
        if key in trial.relative_params:
            drawn: Scalar = trial.relative_params[key]
            return drawn
        asked = trial.study.get_trials(deepcopy=False)[-1]
        value: Scalar = trial.study.sampler.sample_independent(trial.study, asked, key, distribution)
        return value


class GridStrategy(SearchStrategy):
    """Grid search: every cell of the grid once, in the file's order; what was given to the study is not run again."""

    def __init__(self, spec: StudySpec, history: "OptunaHistory") -> None:
        super().__init__(spec, history)
        self._cells = iterate_grid_cells(self._space)
        self._next = next(self._cells, None)

    def suggest_params(self, number: int) -> dict[str, Scalar] | None:
        while self._next is not None and self._history.has_params(self._next):
            self._next = next(self._cells, None)
        return self._next


class SobolStrategy(SearchStrategy):
    """Sobol's sequence, scrambled (Owen 1998) by the search's seed: a point for each trial, a coordinate for each key.

    A trial takes the coordinates of the keys that it has.
    """

    def suggest_params(self, number: int) -> dict[str, Scalar]:
        from scipy.stats.qmc import Sobol  # its import takes a while

        if not self._space.domains:
            return {}
        points = Sobol(len(self._space.domains), scramble=True, seed=self._spec.search.seed)
        position = len(self._history.trials)
        if position:
            points.fast_forward(position)
        units = dict(zip(self._space.domains, points.random(1)[0].tolist(), strict=True))
        return self._space.suggest_params(lambda key, domain: self._history.value_at_coordinate(key, units[key]))


class RandomStrategy(OptunaStrategy):
    """Random search, which draws each trial independently of the others."""

    def _make_sampler(self, seed: int) -> BaseSampler:
        return RandomSampler(seed=seed)


class TPEStrategy(OptunaStrategy):
    """Tree-structured Parzen estimator (Bergstra et al. 2011), which draws by where good and bad trials were.

    It draws all keys that go together at once, learns from the best and the newest trials, complete and pruned, and
    keeps away from those that run.
    """

    MAX_BEST_HISTORY_TRIALS, MAX_NEWEST_HISTORY_TRIALS = 100, 200

    def _make_sampler(self, seed: int) -> BaseSampler:
        with ignore_experimental_warnings():
            return TPESampler(
                seed=seed, multivariate=True, group=bool(self._space.conditional_keys()), constant_liar=True
            )

    def _history_for_sampler(self) -> Sequence[FrozenTrial]:
        return self._history.select_trials(self.MAX_BEST_HISTORY_TRIALS, self.MAX_NEWEST_HISTORY_TRIALS, pruned=True)


class GPStrategy(OptunaStrategy):
    """Gaussian process, which draws where it expects the most improvement, from the best and newest complete trials."""

    MAX_BEST_HISTORY_TRIALS, MAX_NEWEST_HISTORY_TRIALS = 50, 50

    def _make_sampler(self, seed: int) -> BaseSampler:
        return GPSampler(seed=seed, warn_independent_sampling=False)

    def _history_for_sampler(self) -> Sequence[FrozenTrial]:
        return self._history.select_trials(self.MAX_BEST_HISTORY_TRIALS, self.MAX_NEWEST_HISTORY_TRIALS, pruned=False)


STRATEGIES: Mapping[SamplerName, type[SearchStrategy]] = {
    "gp": GPStrategy,
    "grid": GridStrategy,
    "qmc": SobolStrategy,
    "random": RandomStrategy,
    "tpe": TPEStrategy,
}
"""Samplers by name, as in `search.sampler`."""
