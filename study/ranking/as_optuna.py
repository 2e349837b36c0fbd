"""A search as Optuna's study, in memory, for its figures.

Each configuration of the search is a trial, with its mean over replicates; why it ended is a user attribute.
"""

import warnings
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.storages import InMemoryStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from study.home.events import ENDED
from study.home.record import StudyRecord, TrialRecord, as_searched
from study.ranking import mean_score
from study.spec import StudySpec
from study.spec.distributions import distributions

STATES = {
    "complete": TrialState.COMPLETE,
    "pruned": TrialState.PRUNED,
    "failed": TrialState.FAIL,
    "running": TrialState.RUNNING,
    "interrupted": TrialState.WAITING,
    "waiting": TrialState.WAITING,
}


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


def as_optuna(spec: StudySpec, record: StudyRecord) -> optuna.Study:
    """The search as a study in memory whose trials have the ledger's numbers.

    Optuna's figures look for a trial's value at the place of its number: a number that is none of the search's (the
    baseline's, a replicate's) has a trial that waits.
    """
    domains, record = distributions(spec.space), as_searched(record)
    trials = {trial.number: _frozen(spec, record, trial, domains) for trial in record.by_stage("search")}
    for number in range(max(trials, default=0)):
        trials.setdefault(number, create_trial(state=TrialState.WAITING))
    for number, trial in trials.items():
        trial.number = number
    return in_memory(spec, [trials[number] for number in sorted(trials)])


def in_memory(spec: StudySpec, trials: Sequence[FrozenTrial]) -> optuna.Study:
    """These trials as a study of Optuna's."""
    goal = spec.objective
    directions = [StudyDirection.MAXIMIZE if mode == "max" else StudyDirection.MINIMIZE for mode in goal.modes]
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(storage=Window(trials), study_name=spec.name, directions=directions)
    with experimental():
        study.set_metric_names(list(goal.metrics))
    return study


def _frozen(
    spec: StudySpec, record: StudyRecord, trial: TrialRecord, domains: Mapping[str, BaseDistribution]
) -> FrozenTrial:
    """A configuration as Optuna's trial: its values are those of the search, its constraints what each is missed by."""
    goal, seeds = spec.objective, [trial, *record.repeats_of(trial.number, "replicate")]
    short = trial.state == "complete" and len(seeds) < len(spec.seeds)
    states = [seed.state for seed in seeds] + (["running"] if short else [])
    state = next((one for one in states if one != "complete"), "complete")
    score = mean_score(goal, seeds) if state == "complete" else None
    if state == "complete" and score is None:
        state = "failed"
    inside = {key: _around(domains[key], one) for key, one in trial.params.items() if key in domains}
    known = {key: domain for key, domain in inside.items() if domain is not None}
    told: dict[str, Any] = {}
    if score is not None:
        told = {"values": score.values, "constraints": dict(zip(spec.search.constraints, score.excesses, strict=True))}
    frozen = create_trial(
        state=STATES[state],
        params={key: trial.params[key] for key in known},
        distributions=known,
        user_attrs={"why": trial.why} if trial.why else {},
        **told,
    )
    began = trial.started is not None and STATES[state] != TrialState.WAITING
    frozen.datetime_start = moment(trial.started) if began else None
    ended = max((seed.ended or 0.0 for seed in seeds), default=0.0)
    frozen.datetime_complete = moment(ended) if state in ENDED else None
    return frozen


def _around(domain: BaseDistribution, value: Any) -> BaseDistribution | None:
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


def moment(time: float | None) -> datetime:
    """A time of the ledger, in seconds since the epoch, as Optuna keeps it: in this machine's zone, without it."""
    return datetime.fromtimestamp(time or 0.0, UTC).astimezone().replace(tzinfo=None)
