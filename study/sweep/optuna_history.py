"""The trials of a search, as Optuna's trials."""

from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, create_trial
from optuna.trial import TrialState as OptunaTrialState

from study.home.events import TrialState
from study.knobs import Params, Scalar
from study.spec import StudySpec
from study.spec.configuration import configuration_key
from study.spec.objective import TrialScore
from study.spec.optuna_distributions import distributions_of_space, value_at_unit_coordinate


@dataclass(frozen=True)
class ConfigurationOutcome:
    """The outcome of a configuration: `state`, its score at each epoch that has one, and at its end if complete."""

    number: int
    state: TrialState
    score_by_epoch: Sequence[tuple[int, TrialScore]] = ()
    final_score: TrialScore | None = None


class OptunaHistory:
    """All trials that a search knows, and the few that a suggestion is based on.

    It is made of the calls to `add_trial` and `add_outcome`, in their order, and of nothing else.

    Attributes:
        distributions: of each key that is searched.
        directions: of each metric.
        trials: by number, in the order of adoption.
    """

    def __init__(self, spec: StudySpec) -> None:
        self.distributions = distributions_of_space(spec.space)
        self.directions = [
            StudyDirection.MAXIMIZE if mode == "max" else StudyDirection.MINIMIZE for mode in spec.objective.directions
        ]
        self.trials: dict[int, FrozenTrial] = {}
        self._known: set[frozenset[tuple[str, bool, Scalar]]] = set()
        self._constraints = spec.search.constraints
        self._running: dict[int, FrozenTrial] = {}
        self._ended: dict[int, FrozenTrial] = {}
        self._complete: list[FrozenTrial] = []
        self._best: list[tuple[TrialScore, FrozenTrial]] = []

    def add_trial(self, number: int, params: Params) -> None:
        """Add a trial with these parameters, which was decided on."""
        self._running[number] = self._store_trial(number, params, partial(create_trial, state=OptunaTrialState.RUNNING))
        self._known.add(configuration_key(params))

    def value_at_coordinate(self, key: str, unit: float) -> Scalar:
        """Return the value of a key at a coordinate from 0 to 1; uniform coordinates give the space's distribution."""
        return value_at_unit_coordinate(self.distributions[key], unit)

    def has_params(self, params: Params) -> bool:
        """Return whether a trial with these parameters was decided on."""
        return configuration_key(params) in self._known

    def add_outcome(self, end: ConfigurationOutcome) -> None:
        """Add how a trial ended; do nothing if it was not running."""
        if self._running.pop(end.number, None) is None:
            return
        score = end.final_score if end.state == "complete" else None
        pruned = end.state == "pruned"
        state = OptunaTrialState.COMPLETE if score else OptunaTrialState.PRUNED if pruned else OptunaTrialState.FAIL
        one = len(self.directions) == 1  # with several metrics Optuna knows no intermediate values
        course = {epoch: score.values[0] for epoch, score in end.score_by_epoch} if one else None
        # below 0 where one is kept: a Gaussian process learns from the room left how far it may go, for each on its own
        violations = dict(zip(self._constraints, score.constraint_violations, strict=True)) if score else None
        values = score.values if score else None
        make = partial(create_trial, state=state, values=values, intermediate_values=course, constraints=violations)
        trial = self._store_trial(end.number, self.trials[end.number].params, make)
        if score or pruned:
            self._ended[end.number] = trial
        if score:
            self._complete.append(trial)
            self._insert_by_rank(score, trial)

    def select_trials(self, best: int, newest: int, *, pruned: bool) -> list[FrozenTrial]:
        """Return the `best` complete trials, the `newest` that ended, and all that run, by number.

        With several metrics the best are those of the front, the newest of them.

        Args:
            pruned: whether pruned ones are among the newest.
        """
        ranked = self._best[:best] if len(self.directions) == 1 else self._best[-best:]
        ended = islice(reversed(self._ended.values()), newest) if pruned else self._complete[-newest:]
        seen = [*(trial for _, trial in ranked), *ended, *self._running.values()]
        return sorted({trial.number: trial for trial in seen}.values(), key=lambda trial: trial.number)

    def _store_trial(self, number: int, params: Params, make: Callable[..., FrozenTrial]) -> FrozenTrial:
        trial = make(params=dict(params), distributions={key: self.distributions[key] for key in params})
        trial.number = number
        self.trials[number] = trial
        return trial

    def _insert_by_rank(self, score: TrialScore, trial: FrozenTrial) -> None:
        """Put a complete trial in its place among the best."""
        if len(self.directions) == 1:
            insort(self._best, (score, trial), key=lambda ranked: ranked[0].first_metric_sort_key)
        elif not any(other.constrained_dominates(score) for other, _ in self._best):
            self._best = [ranked for ranked in self._best if not score.constrained_dominates(ranked[0])]
            self._best.append((score, trial))
