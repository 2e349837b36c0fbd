"""Genetic search over several metrics: NSGA-II (Deb et al. 2002) and NSGA-III (Deb and Jain 2014)."""

import random
from collections.abc import Sequence
from typing import Any

from optuna.samplers import NSGAIIISampler, NSGAIISampler
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from study.ranking.as_optuna import experimental
from study.spec import StudySpec
from study.sweep.samplers.by_optuna import OptunaStrategy, study_of
from study.sweep.samplers.strategy import History, TrialEnd

POPULATION = 20
"""Trials of a generation: studies of networks have hundreds of trials, Optuna's 50 is for thousands."""


class _Bred:
    """A genetic sampler of Optuna's that is given its parents and their offspring, and looks for neither."""

    parents: Sequence[FrozenTrial] = ()
    offspring: Sequence[FrozenTrial] = ()

    def get_trial_generation(self, study: Study, trial: FrozenTrial) -> int:
        return 1 if self.parents else 0

    def get_parent_population(self, study: Study, generation: int) -> list[FrozenTrial]:
        return list(self.parents)

    def get_population(self, study: Study, generation: int) -> list[FrozenTrial]:
        return list(self.offspring)


class _NSGAII(_Bred, NSGAIISampler):
    pass


class _NSGAIII(_Bred, NSGAIIISampler):
    pass


class GeneticStrategy(OptunaStrategy):
    """Breeds parameters from parents, which are chosen anew each time POPULATION more trials are complete.

    A trial joins the offspring when it ends, whoever its parents were, so that none that ran beside others is lost.
    Pruned and failed trials have no offspring. A key that only some of the parents have is inherited from one of
    those, or drawn anew as often as others mutate.
    """

    def __init__(self, spec: StudySpec, history: History) -> None:
        super().__init__(spec, history)
        self._parents: list[FrozenTrial] = []
        self._offspring: list[FrozenTrial] = []

    def ended(self, end: TrialEnd) -> None:
        trial = self._history.trials[end.number]
        if trial.state != TrialState.COMPLETE:
            return
        self._offspring.append(trial)
        if len(self._offspring) == POPULATION:
            sampler = self._sampler(self._seed(end.number))
            self._parents = sampler.select_parent(study_of(sampler, self._history), 1)
            self._offspring = []

    def _sampler(self, seed: int) -> _NSGAII | _NSGAIII:
        kind = _NSGAII if self._spec.search.sampler == "nsga2" else _NSGAIII
        with experimental():
            sampler = kind(population_size=POPULATION, seed=seed)
        sampler.parents, sampler.offspring = self._parents, self._offspring
        return sampler

    def _window(self) -> Sequence[FrozenTrial]:
        return self._parents  # which decide what keys are crossed: those that all of them have

    def _value(self, trial: Trial, key: str, seed: int) -> Any:
        inherited = [parent.params[key] for parent in self._parents if key in parent.params]
        draw = random.Random(f"{seed} {key}")
        if 0 < len(inherited) < len(self._parents) and draw.random() > 1 / len(self._space.domains):
            return draw.choice(inherited)
        return super()._value(trial, key, seed)
