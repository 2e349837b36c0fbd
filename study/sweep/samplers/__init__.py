"""The samplers, one per module, which is named as study files name it; `study.spec.sampler_facts` says what each can
search.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import optuna
from optuna import Study
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, Trial

from study.catalogue import class_in
from study.knobs import Params, Scalar
from study.ranking.as_optuna import Window
from study.spec import StudySpec
from study.upstream.optuna_trials import suggest

if TYPE_CHECKING:
    from study.sweep.history import History, TrialEnd


class Strategy(ABC):
    """Base of every sampler, which suggests parameters.

    A suggestion depends on the study's seed, the trial's number, and the history: on what was adopted and ended, in
    that order, and never on how often something was suggested. What a strategy remembers is set in `adopted` and
    `ended` alone, which are called after the history has added the trial or its end.

    A sampler is one module with one such class, and an entry in `study.spec.sampler_facts`. This one, as
    `study/sweep/samplers/halves.py`, is the module that `sampler: halves` needs:

        from random import Random

        from study.knobs import Scalar
        from study.sweep.samplers import Strategy


        class Halves(Strategy):
            \"\"\"Draws from the lower half of each range until a trial is complete, then from the upper one.\"\"\"

            def suggest(self, number: int) -> dict[str, Scalar] | None:
                draw, lower = Random(self._seed(number)), not self._history.window(1, 0, pruned=False)
                return self._space.walk(lambda key, domain: self._history.at(key, (draw.random() + (not lower)) / 2))
    """

    def __init__(self, spec: StudySpec, history: "History") -> None:
        self._spec, self._history, self._space = spec, history, spec.space

    @abstractmethod
    def suggest(self, number: int) -> dict[str, Scalar] | None:
        """Return parameters for the trial of this number, None where everything was tried."""

    def adopted(self, number: int, params: Params) -> None:  # noqa: B027
        """Learn that a trial with these parameters was decided on."""

    def ended(self, end: "TrialEnd") -> None:  # noqa: B027
        """Learn that a trial ended."""

    def _seed(self, number: int, attempt: int = 0) -> int:
        """Return the seed of all that is drawn for this trial, another one for each attempt."""
        return (self._spec.search.seed * 1_000_003 + number + attempt * 500_009) % 2**32


class OptunaStrategy(Strategy):
    """Base of strategies that ask one of Optuna's samplers.

    Optuna's sampler is asked for each trial with a seed of its own, in a study of its own that holds a part of the
    history: nothing is carried over. The same parameters would give the same trial: known ones are drawn again, a few
    times.
    """

    ATTEMPTS = 5

    def suggest(self, number: int) -> dict[str, Scalar]:
        seen = self._window()
        for attempt in range(self.ATTEMPTS):
            params = self._drawn(number, self._seed(number, attempt), seen)
            if not self._history.knows(params):
                break
        return params

    def _drawn(self, number: int, seed: int, seen: Sequence[FrozenTrial]) -> dict[str, Scalar]:
        trial = self._study(self._sampler(seed), number, seen).ask()
        return self._space.walk(lambda key, domain: self._value(trial, key, seed))

    def _study(self, sampler: BaseSampler, number: int = 0, seen: Sequence[FrozenTrial] = ()) -> Study:
        """Return a study with this sampler that holds these trials and will ask for the trial of this number."""
        return optuna.create_study(storage=Window(seen, number), sampler=sampler, directions=self._history.directions)

    @abstractmethod
    def _sampler(self, seed: int) -> BaseSampler:
        """Return a new sampler of Optuna's."""

    def _window(self) -> Sequence[FrozenTrial]:
        """Return the trials that the sampler sees."""
        return ()

    def _value(self, trial: Trial, key: str, seed: int) -> Scalar:
        """Return the value that the trial suggests for a key."""
        return suggest(trial, key, self._history.distributions[key])


def strategy(spec: StudySpec, history: "History") -> Strategy:
    """Return the sampler that a study asks for."""
    kind = class_in(__name__, spec.search.sampler, Strategy)  # type: ignore[type-abstract]
    return kind(spec, history)
