"""Extend a study that ended: more configurations to try, more seeds for the best, more epochs for its trials."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from study.commands.own_functions import accepted_arguments
from study.errors import UserError
from study.home.events import ENDED, Confirming, Retried, SearchExtended, TrialsLengthened
from study.home.folder import StudyFolder
from study.home.ledger import Ledger
from study.home.record import BY_HAND, EVERY_CONFIGURATION, StudyRecord, TrialRecord
from study.ranking import Results
from study.spec import StudySpec
from study.spec.search_checks import count_configurations
from study.sweep.agenda import LaterStages
from study.text import counted, typed
from study.training import function_loading
from study.training.config import bound

RETRY = "To run that again, once its cause is mended: study resume {} --failed"

TOP, SEEDS = 5, 5
"""Configurations that `study confirm` runs again, and seeds of each, where its options do not say."""


def more_trials(folder: StudyFolder, spec: StudySpec, trials: str) -> StudyRecord:
    """Let the search of a study try more configurations.

    Args:
        trials: how many more than were tried or are to be, as `+50`. A grid whose search ended before its last point
            tries so many of those that are left.

    Returns:
        The extended record.

    Raises:
        UserError: `trials` is not such a number, the study's search cannot go on, or another process runs it.
    """
    check_trials(spec, trials)
    with _opened(folder) as (ledger, record):
        ended = record.ending or record.enough not in (None, "trials", EVERY_CONFIGURATION)
        extended = (record.tried if ended else record.limit(spec.trials)) + int(trials)
        if (most := count_configurations(spec.search, spec.space)) is not None:
            if record.enough == EVERY_CONFIGURATION or (not ended and record.limit(spec.trials) >= most):
                raise UserError(f"{spec.name}: its space has no further configurations: {most}, all are tried")
            extended = min(extended, most)
        record.apply(ledger.append(SearchExtended(extended)))
        return record


def retry_failed(folder: StudyFolder, spec: StudySpec) -> StudyRecord:
    """Let all trials that failed run again from the start, with the same configuration and seed.

    Repeats that ended because their configuration's first trial failed run again as well.

    Returns:
        The record, in which they wait.

    Raises:
        UserError: nothing has failed, or another process runs the study.
    """
    with _opened(folder) as (ledger, record):
        record.apply(ledger.append(Retried(numbers := tuple(_failures(Results(spec, record))))))
        for number in numbers:
            folder.error_file(number).unlink(missing_ok=True)
        return record


def failures(folder: StudyFolder) -> list[int]:
    """Return the trials that `retry_failed` would run again; raise as it does."""
    return _failures(Results.load(folder))


def _failures(results: Results) -> list[int]:
    found = failed_trials(results.record)
    if not found and not any(trial.untested for trial in LaterStages(results.spec, results.record).to_test()):
        raise UserError(f"{results.spec.name}: no trial has failed")
    return found


def failed_trials(record: StudyRecord) -> list[int]:
    """Return the numbers of the trials that `retry_failed` runs again; none where nothing has failed."""
    failed = {trial.number for trial in record.trials.values() if trial.state == "failed"}
    ended_with = (
        trial.number
        for trial in record.by_stage("replicate")
        if trial.state == "pruned" and trial.repeats in failed and trial.reason != BY_HAND
    )
    return sorted({*failed, *ended_with})


def is_spent(results: Results) -> bool:
    """Return whether a study has failed and has nothing left but what failed."""
    record = results.record
    if results.spec.final_seeds is not None or record.state != "failed":
        return False
    return record.search_is_over(results.spec.trials) and all(trial.state in ENDED for trial in record.trials.values())


def check_trials(spec: StudySpec, trials: str) -> None:
    """Refuse a text that is no number of additional trials, and a study that can have none; see `more_trials`.

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
        rules: let every selection rule's pick run on these seeds as well. Once asked for, this holds for later calls
            too.

    Raises:
        UserError: the search is not over or has too few complete configurations, all of these trials have run, or
            another process runs the study.
    """
    with _opened(folder) as (ledger, record):
        ledger.append(confirm_event(Results(spec, record), top, seeds, rules))


def confirm_event(results: Results, top: int | None, seeds: int | None, rules: bool) -> Confirming:
    """Return the event that `more_seeds` writes to the ledger, with the same arguments.

    Args:
        results: their record is changed: it has this request afterwards.

    Raises:
        UserError: see `more_seeds`.
    """
    spec, record = results.spec, results.record
    if spec.final_seeds is not None:
        raise UserError(f"{spec.name}: a final training; further seeds of it: study train FILE --seeds ...")
    if record.state != "complete":
        raise UserError(f"{spec.name}: is {record.state}, its search must end first: study resume {spec.name}")
    before = results.confirm
    default = (before.top, before.seeds) if rules else (TOP, 1 if spec.folds else SEEDS)
    top, seeds = (default[0] if top is None else top), (default[1] if seeds is None else seeds)
    asked = Confirming(top, seeds, rules or before.rules is True)
    if top > (complete := len(results.searched)) or top < (0 if asked.rules else 1):
        raise UserError(f"--top {top}: {spec.name} has {complete} complete configurations")
    record.apply(asked)
    then = Results(spec, record)
    if _is_confirmed(then):
        raise UserError(f"{spec.name}: {_confirmed(then)}. More: --top, --seeds")
    return asked


def _is_confirmed(results: Results) -> bool:
    """Return whether all trials of the confirm stage have run."""
    plan = results.confirm
    best = not plan.top or results.is_confirmed
    return best and (not plan.rules or results.picks_are_confirmed)


def _confirmed(results: Results) -> str:
    """Return which trials have run on fresh seeds, for a message."""
    plan = results.confirm
    trials = results.to_confirm() + (results.picked if plan.rules else [])
    numbers = list(dict.fromkeys(trial.number for trial in trials))
    names = f"trial{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
    return f"{names} {'have' if len(numbers) > 1 else 'has'} run on {plan.seeds} fresh seeds or more"


@contextmanager
def _opened(folder: StudyFolder) -> Iterator[tuple[Ledger, StudyRecord]]:
    with closing(Ledger(folder.ledger_file)) as ledger:
        record = StudyRecord.told(folder.ledger_file)
        record.close_after_the_dead(ledger)
        yield ledger, record


LENGTHENED = 5
"""Configurations that go on to more epochs where the request names none."""


@dataclass(frozen=True)
class ExtensionRequest:
    """Request of a user to run trials for more epochs.

    What is chosen goes on with all its seeds, and the baseline with it, so that they compare. A trial whose state was
    kept goes on from it, any other runs again from its first epoch. Either way it is, bit for bit, the trial that it
    would have been with so many epochs from the start.

    Attributes:
        epochs: the last epoch of each trial.
        top: how many of the best complete configurations; None: `LENGTHENED`, or none where others are named.
        trials: numbers of configurations, complete or ended by early stopping.
    """

    epochs: int
    top: int | None = None
    trials: tuple[int, ...] = ()


@dataclass(frozen=True)
class GoesOn:
    """Trial that goes on, and the epoch after which it does; 0: it runs again from its first."""

    trial: int
    behind: int


@dataclass(frozen=True)
class ExtensionPlan:
    """Trials that go on to more epochs.

    Attributes:
        epochs: the last one of each.
        configurations: their trials, the baseline first.
        trials: these and those on their further seeds.
        to_run: epochs of all trials together.
        again: how many of these are run a second time because the trial's state was not kept.
    """

    epochs: int
    configurations: Sequence[int]
    trials: Sequence[GoesOn]
    to_run: int
    again: int


def plan_from_document(document: object) -> ExtensionPlan:
    """Return a plan from what a cluster's command printed."""
    from pydantic import TypeAdapter

    return TypeAdapter(ExtensionPlan).validate_python(document)


def lines(plan: ExtensionPlan) -> list[str]:
    """Return the lines that tell a user of a plan."""
    numbers, further = plan.configurations, len(plan.trials) - len(plan.configurations)
    seeds = f", with {counted(further, 'trial')} on further seeds" if further else ""
    texts = [
        f"trial{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))} to epoch {plan.epochs}{seeds}: "
        f"{counted(plan.to_run, 'epoch')}"
    ]
    if again := sum(not one.behind for one in plan.trials):
        texts.append(
            f"{again} of {len(plan.trials)} run again from their first epoch, as their state was not kept: "
            f"{plan.again:,} of these epochs (resources.keep_checkpoints)"
        )
    return texts


def ask(folder: StudyFolder, spec: StudySpec, request: ExtensionRequest) -> ExtensionPlan:
    """Write to the ledger which trials go on, and return the plan.

    Raises:
        UserError: see `plan_extension`; or another process runs the study.
    """
    with _opened(folder) as (ledger, record):
        plan = plan_extension(folder, Results(spec, record), request)
        ledger.append(TrialsLengthened(plan.epochs, tuple(one.trial for one in plan.trials)))
    return plan


def plan_of(folder: StudyFolder, request: ExtensionRequest) -> ExtensionPlan:
    """Return what would go on, without writing anything; raise as `plan_extension`."""
    return plan_extension(folder, Results.load(folder), request)


def plan_extension(folder: StudyFolder, results: Results, request: ExtensionRequest) -> ExtensionPlan:
    """Plan which trials go on, and from which epoch.

    Raises:
        UserError: the search is not over, there are not so many trials, one of them has run these epochs or cannot go
            on, or an ablation would no longer compare.
    """
    name, epochs = results.spec.name, request.epochs
    if results.spec.final_seeds is not None:
        raise UserError(f"{name}: a final training; one of more epochs: study train FILE --epochs {epochs}")
    if results.record.state != "complete":
        raise UserError(f"{name}: is {results.record.state}, its search must end first: study resume {name}")
    least = max([results.spec.epochs, *(each.epochs for each in results.record.lengthened)])
    if epochs < least:
        raise UserError(f"--epochs {epochs}: trials of {name} have run {least}; at least that many are needed")
    chosen = _chosen(results, request)
    reference = next(results.record.by_stage("baseline"), None)
    if reference is not None and reference.state in ENDED[:2] and not _is_done(reference, results.spec, epochs):
        chosen = [reference, *(trial for trial in chosen if trial is not reference)]
    for trial in chosen:
        _check(folder, results.spec, trial, epochs)
    numbers = [trial.number for trial in chosen]
    ablating = results.record.ablating
    if ablating is not None and ablating.trial not in numbers and reference in chosen:
        raise UserError(
            f"{name}: its ablation compares the baseline with trial {ablating.trial}, which has to go on as well: "
            f"--trials {ablating.trial}"
        )
    found = [trial for trial in _with_seeds(results.record, chosen) if not _is_done(trial, results.spec, epochs)]
    behind = {trial.number: trial.epochs if _is_kept(folder, trial) else 0 for trial in found}
    again = sum(trial.epochs for trial in found if not behind[trial.number])
    to_run = sum(epochs - begun for begun in behind.values())
    return ExtensionPlan(epochs, numbers, [GoesOn(*one) for one in behind.items()], to_run, again)


def _chosen(results: Results, request: ExtensionRequest) -> list[TrialRecord]:
    top = (0 if request.trials else LENGTHENED) if request.top is None else request.top
    best = [results.record.trials[candidate.trial.number] for candidate in results.candidates]
    if request.top is not None and top > len(best):
        raise UserError(f"--top {top}: {results.spec.name} has {len(best)} complete configurations")
    chosen = [*best[:top], *(_named(results, number) for number in request.trials)]
    if not chosen and not any(results.record.by_stage("baseline")):
        raise UserError(f"{results.spec.name}: no trial is complete. Those that were stopped: --trials")
    return list({trial.number: trial for trial in chosen}.values())


def _named(results: Results, number: int) -> TrialRecord:
    trial = results.record.trials.get(number)
    if trial is None:
        raise UserError(
            f"--trials {number}: {results.spec.name} has {len(results.record.trials)} trials, counted from 0"
        )
    if trial.repeats is not None or trial.stage not in ("baseline", "search"):
        whose = "" if trial.repeats is None else f", as a repeat of trial {trial.repeats}: give that one"
        raise UserError(f"--trials {number}: is a trial of stage {trial.stage}{whose}")
    if trial.state not in ("complete", "pruned"):
        raise UserError(f"--trials {number}: is {trial.state}; complete and pruned trials can go on")
    return trial


def _check(folder: StudyFolder, spec: StudySpec, trial: TrialRecord, epochs: int) -> None:
    """Refuse a trial that has run so many epochs, or would not be the same as one of so many from the start."""
    if _is_done(trial, spec, epochs):
        raise UserError(f"--epochs {epochs}: trial {trial.number} of {spec.name} has run {trial.epochs}. Give more")
    tied = bound(spec.trial_document(trial.params)) if spec.function is None else _of_function(folder, spec)
    if tied is not None:
        anew = typed("run", folder.spec_file, "--set", f"train.epochs={epochs}", "--name", f"{spec.name}-{epochs}")
        raise UserError(
            f"{spec.name}: trial {trial.number} of {spec.epochs} epochs is no part of one of {epochs}: {tied[0]} ties "
            f"it to its number of epochs: {tied[1]}. Such trials run from the start, in a study of their own: {anew}"
        )


def _of_function(folder: StudyFolder, spec: StudySpec) -> tuple[str, str] | None:
    """Return what ties the user's own function to its number of epochs, and why, as `bound` does; None: nothing."""
    named = spec.function or ""
    if "epochs" in accepted_arguments(named, function_loading.place(named, folder.path)):
        return "method.function", "it takes epochs; one that does not, and yields for ever, does not depend on them"
    return None


def _is_done(trial: TrialRecord, spec: StudySpec, epochs: int) -> bool:
    return trial.state == "complete" and trial.total(spec.epochs) >= epochs


def _with_seeds(record: StudyRecord, chosen: Iterable[TrialRecord]) -> Iterator[TrialRecord]:
    """Yield each configuration's trials on all its seeds, and the steps of an ablation that leads to it."""
    for trial in chosen:
        yield trial
        for stage in ("replicate", "confirm", "rule"):
            yield from (each for each in record.repeats_of(trial.number, stage) if each.state in ENDED[:2])
        if record.ablating is not None and record.ablating.trial == trial.number:
            yield from (each for each in record.by_stage("ablation") if each.state in ENDED[:2])


def _is_kept(folder: StudyFolder, trial: TrialRecord) -> bool:
    file = folder.end_file(trial.number) if trial.state == "complete" else folder.checkpoint_file(trial.number)
    return file.exists()
