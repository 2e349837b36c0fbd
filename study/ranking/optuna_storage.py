"""A search as Optuna's study, for its dashboard: every configuration, as the ledger is now. And the trials of a study
that Optuna alone has run.
"""

import warnings
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from urllib.parse import quote

import optuna
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from study.errors import UserError, suggest_or_list
from study.home.folder import StudyFolder
from study.home.trial_record import TrialRecord
from study.knobs import Scalar
from study.ranking import Candidate, Results
from study.spec import StudySpec
from study.spec.optuna_distributions import distributions_of_domains
from study.text import redact_credentials


class FixedTrialsStorage(InMemoryStorage):
    """View that Optuna has of a study: these trials with their own numbers, and the one that it is asked for."""

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


ignore_experimental_warnings = partial(
    warnings.catch_warnings, action="ignore", category=optuna.exceptions.ExperimentalWarning
)
"""Keeps Optuna, in a `with` block, from warning of what it may change one day."""


class LedgerStorage(FixedTrialsStorage):
    """The search of a study that may run, for Optuna's dashboard: read anew whenever its ledger has grown.

    What is written into it is not kept.
    """

    def __init__(self, folder: StudyFolder) -> None:
        super().__init__([])
        self._folder, self._length = folder, -1
        spec = folder.load_spec()
        directions = [
            StudyDirection.MAXIMIZE if mode == "max" else StudyDirection.MINIMIZE for mode in spec.objective.directions
        ]
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        study = optuna.create_study(storage=self, study_name=spec.name, directions=directions)
        with ignore_experimental_warnings():
            study.set_metric_names(list(spec.objective.metrics))

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        length = self._folder.ledger_file.stat().st_size
        if length != self._length:
            self._seen, self._length = to_frozen_trials(Results.load(self._folder)), length
        return super().get_all_trials(study_id, deepcopy, states)

    def get_best_trial(self, study_id: int) -> FrozenTrial:
        """Return the complete trial with the best value.

        Raises:
            ValueError: no trial is complete, or there are several metrics.
        """
        [direction] = self.get_study_directions(study_id)
        complete = self.get_all_trials(study_id, states=[TrialState.COMPLETE])
        best = max if direction == StudyDirection.MAXIMIZE else min
        return best(complete, key=lambda trial: trial.value or 0.0)


OPTUNA_STATE_BY_TRIAL_STATE = {
    **{"complete": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "failed": TrialState.FAIL},
    **{"running": TrialState.RUNNING, "waiting": TrialState.WAITING, "interrupted": TrialState.WAITING},
}


def to_frozen_trials(results: Results) -> list[FrozenTrial]:
    """Return every configuration of the search as Optuna's trial, with the metric of each epoch, the baseline first.

    They are numbered from 0 on; the attribute `trial` is the ledger's number.
    """
    spec = results.spec
    scored = {each.trial.number: each for each in (*results.ranked_by_search_value, *filter(None, [results.baseline]))}
    domains = distributions_of_domains(spec.search.space, results.integer_keys)
    trials = results.record.trials_of_stages("baseline", "search")
    return [
        _to_frozen_trial(spec, place, trial, scored.get(trial.number), domains) for place, trial in enumerate(trials)
    ]


def _to_frozen_trial(
    spec: StudySpec,
    place: int,
    trial: TrialRecord,
    candidate: Candidate | None,
    domains: Mapping[str, BaseDistribution],
) -> FrozenTrial:
    """Return a trial as Optuna's: complete without a value counts as failed; of several metrics it has no course."""
    state = OPTUNA_STATE_BY_TRIAL_STATE[trial.state] if trial.state != "complete" or candidate else TrialState.FAIL
    began, ended = (datetime.fromtimestamp(time) if time else None for time in (trial.started_at, trial.ended_at))
    [metric, *others] = spec.objective.metrics
    reported = {epoch: report.get(metric) for epoch, report in enumerate(trial.reports, 1)}
    course = {} if others else {epoch: value for epoch, value in reported.items() if value is not None}
    inside = {key: _widen_distribution(domains[key], value) for key, value in trial.params.items() if key in domains}
    known = {key: domain for key, domain in inside.items() if domain is not None}
    params = {key: trial.params[key] for key in known}
    told: dict[str, Scalar] = {"trial": trial.number, "stage": trial.stage, "seed": trial.seed, "why": trial.end_reason}
    told |= {name: trial.last_metric(name) for name in spec.objective.needed_metrics if name != metric}
    attributes = {name: value for name, value in told.items() if value is not None}
    values = candidate.score.values if candidate and state == TrialState.COMPLETE else None
    found = FrozenTrial(
        place, state, None, began, ended, params, known, attributes, {}, course, trial_id=place, values=values
    )
    violations = candidate.score.constraint_violations if candidate else ()
    for name, excess in zip(spec.search.constraints, violations, strict=False):
        found.set_constraint(name, excess)
    return found


def _widen_distribution(domain: BaseDistribution, value: object) -> BaseDistribution | None:
    """Extend a distribution so that it holds this value, which the search was given; None where that cannot be."""
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


def best_optuna_trials(storage: str, name: str, max_trials: int) -> list[FrozenTrial]:
    """Return the complete trials of a study of Optuna's that keep its constraints, the best first.

    Best is by the study's own direction; with several metrics, the trials are those of its front.

    Args:
        storage: the URL of a database, or the path of a journal or an SQLite file.
        max_trials: how many at most.

    Raises:
        UserError: there is no such storage, study or trial, or it cannot be read.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    shown = redact_credentials(storage)
    try:
        with _open_storage(storage) as opened:
            names = optuna.get_all_study_names(opened)
            found = _sort_best_first(optuna.load_study(study_name=name, storage=opened)) if name in names else None
    except FileNotFoundError:
        raise UserError(f"{shown}: no such file") from None
    except Exception as error:  # of a database's driver, of Optuna, of JSON: of whatever reads it
        told = " ".join(str(error).replace(storage, shown).split())[:300]
        raise UserError(f"{shown}: cannot be read as a storage of Optuna: {told}") from error
    if found is None:
        raise UserError(f"{shown}: has no study {name!r}. {suggest_or_list(name, names)}")
    if not found:
        raise UserError(f"{shown}: the study {name!r} has no complete trial that keeps its constraints")
    return found[:max_trials]


def _sort_best_first(study: optuna.Study) -> list[FrozenTrial]:
    if len(study.directions) > 1:
        return study.best_trials
    complete = study.get_trials(states=[TrialState.COMPLETE])
    kept = [trial for trial in complete if all(excess <= 0 for excess in trial.constraints.values())]
    return sorted(kept, key=lambda trial: trial.value or 0.0, reverse=study.direction == StudyDirection.MAXIMIZE)


@contextmanager
def _open_storage(storage: str) -> Iterator[JournalStorage | RDBStorage]:
    """Open a storage for the block; nothing is written into a database.

    Raises:
        FileNotFoundError: there is no such file, which SQLite would make.
        Exception: of the database's driver, or of Optuna.
    """
    kind, _, rest = storage.partition("://")
    place = storage if not rest else rest.partition("?")[0].removeprefix("/") if kind[:6] == "sqlite" else None
    opened: JournalStorage | RDBStorage
    if place is None:
        opened = _open_sql_database(storage)
    else:
        with open(place, "rb") as content:
            is_database = content.read(len(SQLITE_HEADER)) == SQLITE_HEADER
        if is_database:
            opened = _open_sql_database(f"sqlite:///file:{quote(place)}?mode=ro&uri=true")
        else:
            opened = JournalStorage(JournalFileBackend(place))
    try:
        yield opened
    finally:
        if isinstance(opened, RDBStorage):
            opened.remove_session()
            opened.engine.dispose()


def _open_sql_database(address: str) -> RDBStorage:
    """Open a database; each connection is closed after its use, where no storage can be made of it too."""
    from sqlalchemy.pool import NullPool

    return RDBStorage(address, engine_kwargs={"poolclass": NullPool}, skip_table_creation=True)


SQLITE_HEADER = b"SQLite format 3\0"
"""First bytes of an SQLite file."""
