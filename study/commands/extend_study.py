"""Extend a study that ended: more configurations to try, more seeds for the best, what failed once more."""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager

from study.errors import UserError
from study.home.events import ENDED_STATES, ConfirmRequested, SearchExtended, TrialsRetried
from study.home.folder import StudyFolder
from study.home.ledger import Ledger
from study.home.record import SPACE_EXHAUSTED_REASON, STOPPED_BY_USER_REASON, StudyRecord
from study.ranking import Results
from study.spec import StudySpec
from study.spec.search_checks import count_configurations
from study.sweep.agenda import StagesAfterSearch
from study.sweep.search_stage import reached_search_limit

RETRY_REMEDY = "To run that again, once its cause is mended: study resume {} --failed"

DEFAULT_CONFIRM_TOP, DEFAULT_CONFIRM_SEEDS = 5, 5
"""Configurations that `study confirm` runs again, and seeds of each, where its options do not say."""


def add_search_trials(folder: StudyFolder, spec: StudySpec, trials: str) -> StudyRecord:
    """Let the search of a study try more configurations.

    Args:
        trials: how many more than were tried or are to be, as `+50`. A grid whose search ended before its last point
            tries so many of those that are left.

    Returns:
        The extended record.

    Raises:
        UserError: `trials` is not such a number, the study's search cannot go on, or another process runs it.
    """
    check_additional_trials(spec, trials)
    with _open_for_extension(folder) as (ledger, record):
        ended_by = record.search_ended_by or reached_search_limit(spec, record)  # a driver that dies tells none
        ended = record.has_search_end_request or ended_by not in (None, "trials", SPACE_EXHAUSTED_REASON)
        planned = record.max_configurations(spec.n_configurations)
        extended = (record.n_configurations_tried if ended else planned) + int(trials)
        if (most := count_configurations(spec.search, spec.space)) is not None:
            are_all_planned = not ended and planned >= most
            if record.search_ended_by == SPACE_EXHAUSTED_REASON or are_all_planned:
                raise UserError(f"{spec.name}: its space has no further configurations: {most}, all are tried")
            extended = min(extended, most)
        record.apply(ledger.append(SearchExtended(extended)))
        return record


def retry_failed_trials(folder: StudyFolder, spec: StudySpec) -> StudyRecord:
    """Let all trials that failed run again from the start, with the same configuration and seed.

    Repeats that ended because their configuration's first trial failed run again as well.

    Returns:
        The record, in which they wait.

    Raises:
        UserError: nothing has failed, or another process runs the study.
    """
    with _open_for_extension(folder) as (ledger, record):
        record.apply(ledger.append(TrialsRetried(numbers := tuple(trial_numbers_to_retry(Results(spec, record))))))
        for number in numbers:
            folder.error_file(number).unlink(missing_ok=True)
        return record


def trial_numbers_to_retry(results: Results) -> list[int]:
    """Return the trials that `retry_failed_trials` would run again; raise as it does."""
    found = failed_trial_numbers(results.record)
    to_test = () if found else StagesAfterSearch(results.spec, results.record).trials_to_test()
    if not found and not any(trial.test_failure for trial in to_test):
        raise UserError(f"{results.spec.name}: no trial has failed")
    return found


def failed_trial_numbers(record: StudyRecord) -> list[int]:
    """Return the numbers of the trials that `retry_failed_trials` runs again; none where nothing has failed."""
    failed = {trial.number for trial in record.trials.values() if trial.state == "failed"}
    ended_with = (
        trial.number
        for trial in record.trials_of_stages("replicate")
        if trial.state == "pruned" and trial.repeated_trial in failed and trial.reason != STOPPED_BY_USER_REASON
    )
    return sorted({*failed, *ended_with})


def has_only_failures_left(results: Results) -> bool:
    """Return whether a study has failed and has nothing left but what failed."""
    record = results.record
    if results.spec.final_seeds is not None or record.state != "failed":
        return False
    are_ended = all(trial.state in ENDED_STATES for trial in record.trials.values())
    return are_ended and record.search_is_over(results.spec.n_configurations)


def check_additional_trials(spec: StudySpec, trials: str) -> None:
    """Refuse a text that is no number of additional trials, and a study that can have none; see `add_search_trials`.

    Raises:
        UserError: says which.
    """
    if not re.fullmatch(r"\+[1-9]\d{0,6}", trials):
        raise UserError(f"--trials {trials}: a number of additional trials is needed, as in --trials +50")
    if spec.final_seeds is not None:
        raise UserError(f"{spec.name}: a final training has no search; further seeds: study train FILE --seeds ...")
    if not spec.search.space:
        raise UserError(f"{spec.name}: a single configuration has no further trials")


def add_fresh_seeds(
    folder: StudyFolder, spec: StudySpec, top: int | None, seeds: int | None, rules: bool = False
) -> None:
    """Let the best configurations of a study run again on fresh seeds; earlier repeats count.

    Args:
        top, seeds: None: `DEFAULT_CONFIRM_TOP` or fewer, and `DEFAULT_CONFIRM_SEEDS`; with `rules` as many as before.
        rules: let every selection rule's pick run on these seeds as well. Once asked for, this holds for later calls
            too.

    Raises:
        UserError: the search is not over or has too few complete configurations, all of these trials have run, or
            another process runs the study.
    """
    with _open_for_extension(folder) as (ledger, record):
        ledger.append(make_confirm_event(Results(spec, record), top, seeds, rules))


def make_confirm_event(results: Results, top: int | None, seeds: int | None, rules: bool) -> ConfirmRequested:
    """Return the event that `add_fresh_seeds` writes to the ledger, with the same arguments.

    Args:
        results: their record is changed: it has this request afterwards.

    Raises:
        UserError: see `add_fresh_seeds`.
    """
    spec, record = results.spec, results.record
    if spec.final_seeds is not None:
        raise UserError(f"{spec.name}: a final training; further seeds of it: study train FILE --seeds ...")
    if record.state != "complete":
        raise UserError(f"{spec.name}: is {record.state}, its search must end first: study resume {spec.name}")
    before = results.confirmation.settings
    complete = len(results.ranked_by_search_value)
    best = max(1, min(DEFAULT_CONFIRM_TOP, complete)), 1 if spec.folds else DEFAULT_CONFIRM_SEEDS
    default = (before.top, before.seeds) if rules else best
    top, seeds = (default[0] if top is None else top), (default[1] if seeds is None else seeds)
    asked = ConfirmRequested(top, seeds, rules or before.rules is True)
    if top > complete or top < (0 if asked.rules else 1):
        raise UserError(f"--top {top}: {spec.name} has {complete} complete configurations")
    record.apply(asked)
    then = Results(spec, record)
    if _is_confirmed(then):
        raise UserError(f"{spec.name}: {_confirmed_trials_text(then)}. More: --top, --seeds")
    return asked


def _is_confirmed(results: Results) -> bool:
    """Return whether all trials of the confirm stage have run."""
    plan = results.confirmation.settings
    best = not plan.top or results.is_confirmed
    return best and (not plan.rules or results.are_rule_picks_confirmed)


def _confirmed_trials_text(results: Results) -> str:
    """Return which trials have run on fresh seeds, for a message."""
    plan = results.confirmation.settings
    trials = results.confirmation.trials_to_confirm() + (results.rule_picked_trials if plan.rules else [])
    numbers = list(dict.fromkeys(trial.number for trial in trials))
    names = f"trial{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
    return f"{names} {'have' if len(numbers) > 1 else 'has'} run on {plan.seeds} fresh seeds or more"


@contextmanager
def _open_for_extension(folder: StudyFolder) -> Iterator[tuple[Ledger, StudyRecord]]:
    with closing(Ledger(folder.ledger_file)) as ledger:
        record = StudyRecord.load_without_closing(folder.ledger_file)
        record.close_dead_session(ledger)
        yield ledger, record
