"""Optuna as the one who suggests. It knows no Ray and no ledger; its history is rebuilt from trial records."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import Trial, TrialState

from study.objective import Score
from study.record import State
from study.spec import StudySpec
from study.spec.schema import Domain


@dataclass(frozen=True)
class Told:
    """How a configuration did: `state`, its score at each epoch that has one, and at the end if it is complete."""

    number: int
    state: State
    course: Sequence[tuple[int, Score]] = ()
    score: Score | None = None


class Sampler:
    """Suggests parameters and hears how they did.

    Each suggestion depends only on the seed, the trial's number and the history, so that a resumed study goes on
    as an uninterrupted one would. A stopped trial is told as pruned with its intermediate values, a failed one as
    failed: neither is ever a complete trial with a low-budget value.
    """

    def __init__(self, spec: StudySpec) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._spec = spec
        self._study = optuna.create_study(direction="maximize" if spec.mode == "max" else "minimize")
        self._trials: dict[int, Trial] = {}

    def ask(self, number: int) -> dict[str, Any]:
        """New parameters for the trial of this number."""
        self._study.sampler = self._seeded(number)
        return self._ask(number)

    def adopt(self, number: int, params: Mapping[str, Any]) -> None:
        """Take in a trial whose parameters were decided elsewhere; one outside the space is left out."""
        if self._spec.space.contains(params):
            self._study.enqueue_trial(dict(params))
            self._ask(number)

    def tell(self, told: Told) -> None:
        """Tell how an ended configuration did; nothing of one that was never adopted."""
        if told.number not in self._trials:
            return
        trial = self._trials[told.number]
        for epoch, score in told.course:
            trial.report(score.values[0], epoch)
        if told.state == "complete" and told.score is not None:
            self._study.tell(trial, told.score.values[0])
        else:
            self._study.tell(trial, state=TrialState.PRUNED if told.state == "pruned" else TrialState.FAIL)

    def history(self) -> list[optuna.trial.FrozenTrial]:
        """What Optuna believes."""
        return self._study.get_trials()

    def _ask(self, number: int) -> dict[str, Any]:
        trial = self._study.ask()
        self._trials[number] = trial
        return self._spec.space.walk(lambda key, domain: self._suggest(trial, key, domain))

    def _suggest(self, trial: Trial, key: str, domain: Domain) -> Any:
        if domain.choices is not None:
            return trial.suggest_categorical(key, domain.choices)
        assert domain.low is not None
        assert domain.high is not None
        if key in self._spec.space.integers:
            return trial.suggest_int(key, int(domain.low), int(domain.high), step=int(domain.step or 1), log=domain.log)
        return trial.suggest_float(key, domain.low, domain.high, step=domain.step, log=domain.log)

    def _seeded(self, number: int) -> BaseSampler:
        seed = (self._spec.search.seed * 1_000_003 + number) % 2**32
        if self._spec.search.sampler == "random":
            return RandomSampler(seed=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            return TPESampler(seed=seed, multivariate=True, constant_liar=True)
