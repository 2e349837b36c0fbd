"""A search as Optuna's study, in memory, for its figures: each complete configuration, with its mean over seeds."""

import warnings
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager

import optuna
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.storages import InMemoryStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from study.ranking import Candidate, Results
from study.spec import StudySpec
from study.spec.distributions import of_domains


class Window(InMemoryStorage):
    """The view that Optuna has of a study: these trials with their own numbers, and the one that it is asked for."""

    def __init__(self, seen: Sequence[FrozenTrial], number: int = 0) -> None:
        super().__init__()
        self._seen, self._number = seen, number

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        created = super().create_new_trial(study_id, template_trial)
        self.get_trial(created).number = self._number
        return created

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        seen = [trial for trial in self._seen if states is None or trial.state in states]
        return seen + super().get_all_trials(study_id, deepcopy, states)


@contextmanager
def experimental() -> Iterator[None]:
    """Optuna does not warn of what it may change one day."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


def as_optuna(results: Results) -> optuna.Study:
    """The search as a study in memory whose trials have the ledger's numbers.

    Optuna's figures look for a trial's value at the place of its number: any other number has a trial that waits.
    """
    domains = of_domains(results.spec.search.space, results.integers)
    trials = {each.trial.number: _frozen(results.spec, each, domains) for each in results.without_extensions.searched}
    for number in range(max(trials, default=0)):
        trials.setdefault(number, create_trial(state=TrialState.WAITING))
    for number, trial in trials.items():
        trial.number = number
    return in_memory(results.spec, [trials[number] for number in sorted(trials)])


def in_memory(spec: StudySpec, trials: Sequence[FrozenTrial]) -> optuna.Study:
    """These trials as a study of Optuna's."""
    goal = spec.objective
    directions = [StudyDirection.MAXIMIZE if mode == "max" else StudyDirection.MINIMIZE for mode in goal.modes]
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(storage=Window(trials), study_name=spec.name, directions=directions)
    with experimental():
        study.set_metric_names(list(goal.metrics))
    return study


def _frozen(spec: StudySpec, candidate: Candidate, domains: Mapping[str, BaseDistribution]) -> FrozenTrial:
    """A configuration as Optuna's trial: its values are those of the search, its constraints what each is missed by."""
    params, score = candidate.trial.params, candidate.score
    inside = {key: _around(domains[key], value) for key, value in params.items() if key in domains}
    known = {key: domain for key, domain in inside.items() if domain is not None}
    limits = dict(zip(spec.search.constraints, score.excesses, strict=True))
    given = {key: params[key] for key in known}
    return create_trial(params=given, distributions=known, values=score.values, constraints=limits)


def _around(domain: BaseDistribution, value: object) -> BaseDistribution | None:
    """The distribution with this value in it: a range is widened for a value that the search was given; None where
    that cannot be."""
    if isinstance(domain, FloatDistribution | IntDistribution):
        if isinstance(value, bool) or not isinstance(value, int | float) or (domain.log and value <= 0):
            return None
        low, high = min(domain.low, value), max(domain.high, value)
        if isinstance(domain, FloatDistribution):
            return FloatDistribution(low, high, log=domain.log)
        return IntDistribution(int(low), int(high), log=domain.log) if value == int(value) else None
    try:
        domain.to_internal_repr(value)
    except ValueError:
        return None
    return domain
