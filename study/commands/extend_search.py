"""Extending a study that ended: more configurations to try, more seeds for the best."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from study import ranking
from study.errors import UserError
from study.home.events import ENDED
from study.home.folder import StudyFolder
from study.home.ledger import Ledger
from study.home.record import BY_HAND, StudyRecord
from study.ranking.picks import are_confirmed, picked
from study.spec import StudySpec
from study.spec.search_checks import count_configurations
from study.sweep.budget import EVERY_CONFIGURATION

RETRY = "To run that again, once its cause is mended: study resume {} --failed"

TOP, SEEDS = 5, 5
"""What `study confirm` runs again where it is not told."""


def more_trials(folder: StudyFolder, spec: StudySpec, trials: str) -> StudyRecord:
    """Let the search of a study try more configurations.

    Args:
        trials: how many more than were tried or are to be, as `+50`. A grid whose search ended before its last cell
            tries so many of those that are left.

    Returns:
        The extended record.

    Raises:
        UserError: `trials` is not such a number, the study's search cannot go on, or another process runs it.
    """
    check_trials(spec, trials)
    with _opened(folder) as (ledger, record):
        tried = len(list(record.by_stage("baseline", "search")))
        ended = record.ending or record.enough not in (None, "trials", EVERY_CONFIGURATION)
        extended = (tried if ended else record.limit(spec.trials)) + int(trials)
        if (most := count_configurations(spec.search, spec.space)) is not None:
            if record.enough == EVERY_CONFIGURATION or (not ended and record.limit(spec.trials) >= most):
                raise UserError(f"{spec.name}: its space has no further configurations: {most}, all are tried")
            extended = min(extended, most)
        record.apply(ledger.append("extended", trials=extended))
        return record


def failed_again(folder: StudyFolder, spec: StudySpec) -> StudyRecord:
    """Let all run again that failed, from its start, with its configuration and seed; and the seeds of a configuration
    that ended because its first one failed.

    Returns:
        The record, in which they wait.

    Raises:
        UserError: nothing has failed, or another process runs the study.
    """
    with _opened(folder) as (ledger, record):
        record.apply(ledger.append("retried", trials=(numbers := _failures(spec, record))))
        for number in numbers:
            folder.error_file(number).unlink(missing_ok=True)
        return record


def failures(folder: StudyFolder) -> list[int]:
    """The trials that `failed_again` lets run again; raises as it does."""
    return _failures(folder.spec(), StudyRecord.load(folder.ledger_file))


def _failures(spec: StudySpec, record: StudyRecord) -> list[int]:
    found = failed_trials(record)
    if not found and not any(trial.untested for trial in record.trials.values()):
        raise UserError(f"{spec.name}: no trial has failed")
    return found


def failed_trials(record: StudyRecord) -> list[int]:
    """The numbers of what `failed_again` lets run again."""
    failed = {trial.number for trial in record.trials.values() if trial.state == "failed"}
    ended_with = (
        trial.number
        for trial in record.by_stage("replicate")
        if trial.state == "pruned" and trial.repeats in failed and trial.reason != BY_HAND
    )
    return sorted({*failed, *ended_with})


def check_not_spent(record: StudyRecord, spec: StudySpec) -> None:
    """Refuse to go on with a study of which nothing is left but what failed.

    Raises:
        UserError: how that runs again.
    """
    if is_spent(record, spec):
        raise UserError(f"{spec.name}: has failed, and all that is left is what failed. {RETRY.format(spec.name)}")


def is_spent(record: StudyRecord, spec: StudySpec) -> bool:
    """Return whether a study has failed and has nothing left but what failed."""
    if spec.final_seeds is not None or record.state != "failed":
        return False
    tried = len(list(record.by_stage("baseline", "search")))
    over = tried >= record.limit(spec.trials) or record.ending or record.enough is not None
    return over and all(trial.state in ENDED for trial in record.trials.values())


def check_trials(spec: StudySpec, trials: str) -> None:
    """Refuse more trials for what has none, and what is no number of them; see `more_trials`.

    Raises:
        UserError: says which.
    """
    if not re.fullmatch(r"\+[1-9]\d{0,6}", trials):
        raise UserError(f"--trials {trials}: a number of additional trials is needed, as in --trials +50")
    if spec.final_seeds is not None:
        raise UserError(f"{spec.name}: a final training has no search; further seeds: study train FILE --seeds ...")
    if not spec.search.space:
        raise UserError(f"{spec.name}: a single configuration has no further trials")


def more_seeds(folder: StudyFolder, spec: StudySpec, top: int | None, seeds: int | None, rules: bool = False) -> None:
    """Let the best configurations of a study run again on fresh seeds; earlier repeats count.

    Args:
        top, seeds: None: `TOP` and `SEEDS`, or with `rules` as many as before.
        rules: let every selection rule's pick run on these seeds as well. A study that was asked once goes on with it.

    Raises:
        UserError: the search is not over or has too few complete configurations, all of these trials have run, or
            another process runs the study.
    """
    with _opened(folder) as (ledger, record):
        ledger.append(
            "confirming", **seeds_asked(record, StudyRecord.told(folder.ledger_file), spec, top, seeds, rules)
        )


def seeds_asked(
    record: StudyRecord, extended: StudyRecord, spec: StudySpec, top: int | None, seeds: int | None, rules: bool
) -> dict[str, Any]:
    """Return what the ledger is told for `more_seeds`, which has the arguments.

    Args:
        extended: the same record a second time, which is changed.

    Raises:
        UserError: see `more_seeds`.
    """
    if spec.final_seeds is not None:
        raise UserError(f"{spec.name}: a final training; further seeds of it: study train FILE --seeds ...")
    if record.state != "complete":
        raise UserError(f"{spec.name}: is {record.state}, its search must end first: study resume {spec.name}")
    before = ranking.confirm(record, spec)
    default = (before.top, before.seeds) if rules else (TOP, SEEDS)
    top, seeds = (default[0] if top is None else top), (default[1] if seeds is None else seeds)
    asked = {"top": top, "seeds": seeds, "rules": rules or before.rules is True}
    extended.apply({"event": "confirming", **asked, "time": 0.0})
    if top > (complete := len(ranking.searched(record, spec))):
        raise UserError(f"--top {top}: {spec.name} has {complete} complete configurations")
    if _is_confirmed(extended, spec):
        raise UserError(f"{spec.name}: {_confirmed(extended, spec)}. More: --top, --seeds")
    return asked


def _is_confirmed(record: StudyRecord, spec: StudySpec) -> bool:
    """Return whether all has run that is to be confirmed."""
    plan = ranking.confirm(record, spec)
    best = not plan.top or ranking.is_confirmed(record, spec)
    return best and (not plan.rules or are_confirmed(record, spec))


def _confirmed(record: StudyRecord, spec: StudySpec) -> str:
    """Return what has run, for a message."""
    plan = ranking.confirm(record, spec)
    trials = ranking.to_confirm(record, spec) + (picked(record, spec) if plan.rules else [])
    numbers = list(dict.fromkeys(trial.number for trial in trials))
    names = f"trial{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
    return f"{names} {'have' if len(numbers) > 1 else 'has'} run on {plan.seeds} fresh seeds or more"


@contextmanager
def _opened(folder: StudyFolder) -> Iterator[tuple[Ledger, StudyRecord]]:
    ledger = Ledger(folder.ledger_file)
    try:
        yield ledger, StudyRecord.told(folder.ledger_file)
    finally:
        ledger.close()
