"""Who suggests parameters. It knows no Ray and no ledger; its history is rebuilt from trial records."""

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import optuna
from optuna.trial import FrozenTrial

from study.spec import StudySpec
from study.spec.distributions import at
from study.spec.objective import Score
from study.spec.space import grid_cells
from study.sweep.samplers.by_optuna import GPStrategy, RandomStrategy, TPEStrategy
from study.sweep.samplers.cma_es import CMAStrategy
from study.sweep.samplers.exhaustive import GridStrategy, SobolStrategy
from study.sweep.samplers.genetic import GeneticStrategy
from study.sweep.samplers.strategy import History, Strategy, TrialEnd

STRATEGIES: dict[str, type[Strategy]] = {
    "tpe": TPEStrategy,
    "gp": GPStrategy,
    "cmaes": CMAStrategy,
    "qmc": SobolStrategy,
    "random": RandomStrategy,
    "grid": GridStrategy,
    "nsga2": GeneticStrategy,
    "nsga3": GeneticStrategy,
}


DRAWS = 100
"""Draws that look for a configuration which was not tried, before those that are left are listed."""


class Sampler:
    """Suggests parameters and hears how they did.

    Each suggestion depends only on the seed, the trial's number and the history: on the `ask`, `adopt` and `tell`
    before it in their order, where an `adopt` stands for the `ask` that gave these parameters. So a resumed study goes
    on as an uninterrupted one would. A pruned trial is told as pruned with its intermediate values, a failed one as
    failed: neither is ever a complete trial with a low-budget value.
    """

    def __init__(self, spec: StudySpec) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)  # what it warns of is not the user's to mend
        self._space, self._seed = spec.space, spec.search.seed
        self._history = History(spec)
        self._strategy = STRATEGIES[spec.search.sampler](spec, self._history)

    def learn(self, lessons: Sequence[tuple[Mapping[str, Any], Score]]) -> None:
        """Take in parameters and scores of another study, before the first trial."""
        self._history.learn(lessons)

    def ask(self, number: int) -> dict[str, Any] | None:
        """Parameters that no trial has, for the trial of this number; None where every configuration has one."""
        params = self._strategy.suggest(number)
        if params is not None and self._history.knows(params):
            params = self._untried(number)
        if params is not None:
            self.adopt(number, params)
        return params

    def _untried(self, number: int) -> dict[str, Any] | None:
        """A draw from the configurations that no trial has, where the strategy has nothing new; None: there is none."""
        draw, distributions = random.Random(f"{self._seed} {number}"), self._history.distributions
        for _ in range(DRAWS):
            params = self._space.walk(lambda key, domain: at(distributions[key], draw.random()))
            if not self._history.knows(params):
                return params
        with suppress(ValueError):  # a range without steps: its configurations have no end
            left = [cell for cell in grid_cells(self._space, every=True) if not self._history.knows(cell)]
            return draw.choice(left) if left else None
        return None

    def adopt(self, number: int, params: Mapping[str, Any], given: bool = False) -> None:
        """Take in a trial whose parameters were decided elsewhere; one outside the space is left out.

        Args:
            given: whether the search was given them, not a draw of an earlier driver's sampler.
        """
        if self._space.contains(params):
            self._history.adopt(number, params, given)
            self._strategy.adopted(number, params)

    def tell(self, end: TrialEnd) -> None:
        """Tell how an ended configuration did; nothing of one that was never adopted."""
        if self._history.tell(end):
            self._strategy.ended(end)

    def history(self) -> list[FrozenTrial]:
        """What Optuna believes, with the ledger's numbers."""
        return list(self._history.trials.values())


__all__ = ["Sampler", "TrialEnd"]
