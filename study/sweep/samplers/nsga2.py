"""Genetic search over several metrics: NSGA-II (Deb et al. 2002), and what NSGA-III shares with it."""

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from optuna import samplers
from optuna.samplers import NSGAIISampler
from optuna.trial import FrozenTrial, Trial

from study.knobs import Scalar
from study.ranking.as_optuna import experimental
from study.spec import StudySpec
from study.spec.sampler_facts import GENERATION
from study.sweep.samplers import OptunaStrategy

if TYPE_CHECKING:
    from study.sweep.history import History, TrialEnd


class NSGA2Strategy(OptunaStrategy):
    """NSGA-II, which breeds parameters from parents, chosen anew each time GENERATION more trials are complete.

    A trial joins the offspring when it ends, whoever its parents were, so that none that ran beside others is lost.
    Pruned and failed trials have no offspring. A key that only some of the parents have is inherited from one of
    them, or drawn anew with the probability of a mutation.
    """

    OPTUNAS = "NSGAIISampler"

    def __init__(self, spec: StudySpec, history: "History") -> None:
        super().__init__(spec, history)
        self._parents: list[FrozenTrial] = []
        self._offspring: list[FrozenTrial] = []

    def ended(self, end: "TrialEnd") -> None:
        if end.state != "complete" or end.score is None:
            return
        self._offspring.append(self._history.trials[end.number])
        if len(self._offspring) == GENERATION:
            sampler = self._sampler(self._seed(end.number))
            self._parents = sampler.select_parent(self._study(sampler), 1)
            self._offspring = []

    def _sampler(self, seed: int) -> NSGAIISampler:
        """Return Optuna's sampler, which is given its parents and their offspring instead of looking for them."""
        with experimental():
            sampler: NSGAIISampler = getattr(samplers, self.OPTUNAS)(population_size=GENERATION, seed=seed)
        parents, offspring = self._parents, self._offspring
        given: Any = sampler
        given.get_trial_generation = lambda study, trial: 1 if parents else 0
        given.get_parent_population = lambda study, generation: list(parents)
        given.get_population = lambda study, generation: list(offspring)
        return sampler

    def _window(self) -> Sequence[FrozenTrial]:
        return self._parents  # Optuna crosses the keys that all of them have

    def _value(self, trial: Trial, key: str, seed: int) -> Scalar:
        inherited = [parent.params[key] for parent in self._parents if key in parent.params]
        draw = random.Random(f"{seed} {key}")
        if 0 < len(inherited) < len(self._parents) and draw.random() > 1 / len(self._space.domains):
            return draw.choice(inherited)
        return super()._value(trial, key, seed)
