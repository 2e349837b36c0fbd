"""The searches that are compared, each as a study file would ask for it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from optuna.distributions import CategoricalDistribution

from study.home.events import TrialState
from study.spec import StudySpec
from study.spec.objective import TrialScore
from study.spec.optuna_distributions import distributions_of_space, unit_coordinate_of_value, value_at_unit_coordinate
from study.spec.paper_values import paper_configurations
from study.spec.schema import EarlyStoppingOptions as Rule
from study.sweep.early_stopping import EarlyStopping
from study.sweep.optuna_history import ConfigurationOutcome
from study.sweep.search_stage import UntriedSuggestions


class Production:
    """The sampler and the rule of a study, told of everything as a study's search tells them."""

    def __init__(self, spec: StudySpec) -> None:
        self.spec, self.sampler, self.rule = spec, UntriedSuggestions(spec), EarlyStopping(spec)
        self.courses: dict[int, list[tuple[int, TrialScore]]] = {}

    def propose(self, number: int) -> dict[str, Any]:
        params = self.sampler._strategy.suggest_params(number)
        assert params is not None
        return params

    def begun(self, number: int, params: dict[str, Any]) -> None:
        self.sampler.add_decided_params(number, params)
        self.courses[number] = []

    def hear(self, number: int, epoch: int, score: TrialScore) -> str:
        """on, or end; after the last epoch always end."""
        course = self.courses[number]
        course.append((epoch, score))
        if epoch == self.spec.epochs:
            return self._ended(number, "complete", score)
        return self._ended(number, "pruned", None) if self.rule.should_prune(number, epoch, score) else "on"

    def _ended(self, number: int, state: TrialState, score: TrialScore | None) -> str:
        self.sampler.history.add_outcome(ConfigurationOutcome(number, state, self.courses[number], score))
        return "end"


class Replayed(Production):
    """The rule of a study whose proposals are known: a study of few trials makes those of one of more, as far as it
    goes, and only its end differs. Its sampler is not asked, which is nearly all that a study costs here.

    Args:
        proposals: in their order.
    """

    def __init__(self, spec: StudySpec, proposals: Sequence[dict[str, Any]]) -> None:
        super().__init__(spec)
        self._proposals = proposals

    def propose(self, number: int) -> dict[str, Any]:
        return self._proposals[number]

    def begun(self, number: int, params: dict[str, Any]) -> None:
        self.courses[number] = []


Make = Callable[[StudySpec], Production]


def search(sampler: str, name: str = "none", **rule: Any) -> Make:
    """A sampler with a rule, whose grace is that of the table's study unless it is given."""

    def make(spec: StudySpec) -> Production:
        given = {"grace": spec.search.early_stopping.grace, "reduction": 3, **rule}
        stopping = Rule(name=name, **given)  # type: ignore[arg-type]
        update = {"sampler": sampler, "early_stopping": stopping}
        return Production(replace(spec, search=spec.search.model_copy(update=update)))

    return make


def at_half(sampler: str) -> Make:
    """ASHA whose first rung is half of the epochs, as a study file that gives no grace has it."""
    return search(sampler, "asha", grace=None)


def papers_first(make: Make) -> Make:
    """A search that begins with the papers' configurations, as one with `enqueue: papers` does."""

    def begun(spec: StudySpec) -> Production:
        search, given = make(spec), paper_configurations(spec.space, spec.sections)
        drawn = search.propose
        search.propose = lambda number: given[number] if number < len(given) else drawn(number)  # type: ignore[method-assign]
        return search

    return begun


def fading(make: Make, half_life: float = 4.0, spread: float = 0.2) -> Make:
    """A search that begins with a paper's configuration, and at first draws every second one around the papers', as
    a prior that fades (PriorBand, Mallik et al. 2023): normal on the scale of 0 to 1, every second choice theirs."""

    def begun(spec: StudySpec) -> Production:
        search, given, domains = (
            make(spec),
            paper_configurations(spec.space, spec.sections),
            distributions_of_space(spec.space),
        )
        drawn = search.propose

        def propose(number: int) -> dict[str, Any]:
            draw = np.random.default_rng((spec.search.seed, number))
            if number == 0:
                return given[0]
            if draw.random() >= 0.5 * 2 ** (-number / half_life):
                return drawn(number)
            centre = given[draw.integers(len(given))]

            def near(key: str, _: Any) -> Any:
                domain = domains[key]
                if key not in centre or (isinstance(domain, CategoricalDistribution) and draw.random() < 0.5):
                    return centre.get(key, value_at_unit_coordinate(domain, draw.random()))
                if isinstance(domain, CategoricalDistribution):
                    return value_at_unit_coordinate(domain, draw.random())
                place = unit_coordinate_of_value(domain, centre[key]) + spread * draw.standard_normal()  # type: ignore[arg-type]
                return value_at_unit_coordinate(domain, min(max(place, 0.0), 1.0))

            return spec.space.suggest_params(near)

        search.propose = propose  # type: ignore[method-assign]
        return search

    return begun


METHODS: dict[str, Make] = {
    "random": search("random"),
    "tpe": search("tpe"),
    "gp": search("gp"),
    "random + asha": search("random", "asha"),
    "tpe + asha": search("tpe", "asha"),
    "tpe + asha at half": at_half("tpe"),
    "papers, random": papers_first(search("random")),
    "papers, tpe + asha": papers_first(search("tpe", "asha")),
    "papers, tpe + asha at half": papers_first(at_half("tpe")),
    "fading prior, random": fading(search("random")),
    "fading prior, tpe + asha": fading(search("tpe", "asha")),
}
EARLY = "tpe + asha"
"""ASHA at a fifth of the epochs or before, of 24 trials: the 1.0 of every comparison."""
TRIALS = (6, 8, 10, 12, 24)
"""Of studies that are not played until the budget is spent."""
