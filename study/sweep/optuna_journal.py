"""A search as an Optuna journal, for Optuna's dashboard and its own functions.

The file is what `optuna.storages.journal.JournalFileBackend` reads: `optuna.load_study` of a `JournalStorage` on it has
each configuration of the search as a trial. Optuna numbers trials by itself; the ledger's number, the stage, why a
trial ended and its mean on fresh seeds are user attributes.
"""

import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import BaseJournalBackend
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from study.home.events import ENDED
from study.home.record import StudyRecord, TrialRecord, as_searched
from study.ranking import mean_score, spread
from study.ranking.epochs import scores, value
from study.spec import StudySpec
from study.spec.distributions import distributions
from study.sweep.samplers.by_optuna import experimental

STATES = {
    "complete": TrialState.COMPLETE,
    "pruned": TrialState.PRUNED,
    "failed": TrialState.FAIL,
    "running": TrialState.RUNNING,
    "interrupted": TrialState.WAITING,
    "waiting": TrialState.WAITING,
}


class Lines(BaseJournalBackend):
    """A journal in memory."""

    def __init__(self) -> None:
        self.logs: list[dict[str, Any]] = []

    def read_logs(self, log_number_from: int) -> Iterable[dict[str, Any]]:
        return self.logs[log_number_from:]

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        self.logs += logs


def journal(spec: StudySpec, record: StudyRecord) -> str:
    """The journal of a study: one line of JSON per step.

    Values are those of the search (the mean over replicates), as it ended its trials, constraints what each is missed
    by; trials of several metrics have their course as the user attribute `course`, as Optuna knows none of them.
    """
    lines, goal, record = Lines(), spec.objective, as_searched(record)
    directions = [StudyDirection.MAXIMIZE if mode == "max" else StudyDirection.MINIMIZE for mode in goal.modes]
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(storage=JournalStorage(lines), study_name=spec.name, directions=directions)
    with experimental():
        study.set_metric_names(list(goal.metrics))
    study.set_user_attr("study_id", record.id)
    study.set_user_attr("study_hash", spec.hash)
    domains = distributions(spec.space)
    for trial in record.by_stage("baseline", "search"):
        study.add_trial(_frozen(spec, record, trial, domains))
    return "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in lines.logs)


def _frozen(
    spec: StudySpec, record: StudyRecord, trial: TrialRecord, domains: Mapping[str, BaseDistribution]
) -> FrozenTrial:
    """A configuration as Optuna's trial."""
    goal, seeds = spec.objective, [trial, *record.repeats_of(trial.number, "replicate")]
    short = trial.state == "complete" and len(seeds) < len(spec.seeds)
    states = [seed.state for seed in seeds] + (["running"] if short else [])
    state = next((one for one in states if one != "complete"), "complete")
    score = mean_score(goal, seeds) if state == "complete" else None
    if state == "complete" and score is None:
        state = "failed"
    inside = {key: _around(domains[key], one) for key, one in trial.params.items() if key in domains}
    known = {key: domain for key, domain in inside.items() if domain is not None}
    course = list(scores(goal, trial.reports))
    told: dict[str, Any] = {"intermediate_values": {epoch: score.values[0] for epoch, score in course}}
    attributes = _attributes(spec, record, trial) | {
        f"param:{key}": one for key, one in trial.params.items() if key not in known
    }
    if len(goal.metrics) > 1:
        told, attributes["course"] = {}, {epoch: score.values for epoch, score in course}
    if score is not None:
        told |= {"values": score.values, "constraints": dict(zip(spec.search.constraints, score.excesses, strict=True))}
    frozen = create_trial(
        state=STATES[state],
        params={key: trial.params[key] for key in known},
        distributions=known,
        user_attrs=attributes,
        **told,
    )
    frozen.datetime_start = _moment(trial.started) if STATES[state] != TrialState.WAITING else None
    ended = max((seed.ended or 0.0 for seed in seeds), default=0.0)
    frozen.datetime_complete = _moment(ended) if state in ENDED else None
    return frozen


def _attributes(spec: StudySpec, record: StudyRecord, trial: TrialRecord) -> dict[str, Any]:
    """What Optuna has no place for; nothing that is not known."""
    fresh = [repeat for repeat in record.repeats_of(trial.number) if repeat.state == "complete"]
    confirmed = spread(value(spec.objective, repeat, spec.metric) for repeat in fresh)
    found = {"why": trial.why, "confirmed": confirmed.mean if confirmed else None, "enqueued": trial.enqueued or None}
    told = {"trial": trial.number, "stage": trial.stage, "seed": trial.seed, "epochs": trial.epochs}
    return told | {name: one for name, one in found.items() if one is not None}


def _around(domain: BaseDistribution, value: Any) -> BaseDistribution | None:
    """The distribution with this value in it: a range is widened for a value that the search was given; None where
    that cannot be."""
    if isinstance(domain, FloatDistribution | IntDistribution):
        if isinstance(value, bool) or not isinstance(value, int | float) or (domain.log and value <= 0):
            return None
        if isinstance(domain, FloatDistribution):
            off_grid = domain.step is not None and not math.isclose(
                (value - domain.low) / domain.step, round((value - domain.low) / domain.step), abs_tol=1e-8
            )
            step = None if off_grid else domain.step
            return FloatDistribution(min(domain.low, value), max(domain.high, value), log=domain.log, step=step)
        if value != int(value):
            return None
        low, high = min(domain.low, int(value)), max(domain.high, int(value))
        step = 1 if (int(value) - domain.low) % domain.step else domain.step
        return IntDistribution(low, high, log=domain.log, step=step)
    try:
        domain.to_internal_repr(value)
    except ValueError:
        return None
    return domain


def _moment(time: float | None) -> datetime:
    """A time of the ledger, in seconds since the epoch, as Optuna keeps it: in this machine's zone, without it."""
    return datetime.fromtimestamp(time or 0.0, UTC).astimezone().replace(tzinfo=None)
