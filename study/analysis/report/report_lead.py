"""The lead of a report: what won and how sure that is, what it cost, and what to do next."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from study.analysis.report.certainty_sentences import certainty_statements
from study.analysis.report.conclusions import conclusion_statements, likely_shortcut_statements, sample_error_statements
from study.analysis.report.trade_off_sentences import (
    constraint_statements,
    constraints_broken_on_fresh_seeds,
    trade_off_statements,
)
from study.analysis.statistics import formatting
from study.analysis.statistics.debiasing_metrics import worst_group_of_arm, worst_group_on_validation_if_test_small
from study.analysis.statistics.next_step import (
    NextStep,
    PositionInSearch,
    evaluate_command,
    is_space_exhausted,
    next_steps,
    position_of_best,
    predict_command,
)
from study.analysis.statistics.range_edges import RangeEdge, find_range_edges
from study.analysis.statistics.rivals import find_rivals
from study.analysis.statistics.unkept_constraints import find_unkept_constraints
from study.home.events import ParamValues
from study.metrics.worst_group import WorstGroup
from study.ranking import Results
from study.ranking.arms import Arm, arm_of_candidate
from study.ranking.final_model import final_model_arm
from study.ranking.json_documents import Statement, join_statements
from study.text import format_parameter, pluralise, study_command


class SearchStudyFindings(Statement):
    """What the report of a search says of the configuration that a final training has."""

    study: str
    sentences: Sequence[str]

    def __str__(self) -> str:
        return f"The report of {self.study} says of this configuration: {' '.join(self.sentences)}"


def statements_repeated_by_final_training(results: Results) -> Iterator[Statement]:
    """Yield what a final training repeats of its search: the gain, its price, and what needs no search beside it."""
    yield from conclusion_statements(results)
    yield from constraint_statements(results)
    if not results.spec.varied_data_keys:
        yield from trade_off_statements(results)


def _search_study_findings(results: Results) -> Iterator[SearchStudyFindings]:
    """Yield what the search of a final training's configuration found; nothing where that was changed since."""
    origin = results.spec.origin or {}
    if results.spec.final_seeds is not None and origin.get("told") and not origin.get("changed"):
        yield SearchStudyFindings(origin["study"], origin["told"])


TERMINAL_WIDTH = 110
"""Width of a terminal's lines in characters."""


def report_lead_statements(results: Results) -> dict[str, list[Statement]]:
    """Return the lead's statements by title, without parts that have nothing to say."""
    is_compared = not results.spec.varied_data_keys
    parts: dict[str, list[Statement]] = {
        "Result": [
            *filter(None, [find_unkept_constraints(results)]),
            *conclusion_statements(results),
            *dict.fromkeys(likely_shortcut_statements(results)),
            *constraint_statements(results),
            *constraints_broken_on_fresh_seeds(results),
            *_result_parameters(results),
        ],
        "Trade-off": list(trade_off_statements(results)) if is_compared else [],
        "Groups": list(_worst_group_statements(results)),
        "How sure": [*(certainty_statements(results) if is_compared else ()), *sample_error_statements(results)],
        "Search": [
            *_search_study_findings(results),
            *_trials_not_started(results),
            *(_search_course_statements(results) if is_compared else ()),
        ],
        "Cost": list(_cost_statements(results)),
        "Next": list(_next_step_statements(results)),
    }
    return {title: said for title, said in parts.items() if said}


@dataclass(frozen=True)
class RunnerUp:
    """The configuration behind the best, and the difference of the two."""

    trial: int
    difference: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class ReportLead:
    """The lead of a report, and what it says in numbers.

    Attributes:
        parts: the statements by title.
        undecided: all trials that cannot be told from the best; None as `runner_up` where that is not known.
        best_came: as which of how many trials.
        edges: ranges at whose edge the best lies.
        next: the steps that apply, the one to take first; a key of `--json`.
    """

    parts: Mapping[str, Sequence[Statement]]
    runner_up: RunnerUp | None
    undecided: Sequence[int] | None
    best_came: PositionInSearch | None
    edges: Sequence[RangeEdge]
    next: Sequence[NextStep]


def build_report_lead(results: Results) -> ReportLead:
    """Return the lead of a report with its numbers."""
    against, is_final = find_rivals(results), results.spec.final_seeds is not None
    runner_up = None
    if against:
        gap = against.difference_to_runner_up
        runner_up = RunnerUp(against.runner_up.trial_number, gap.value, gap.interval)
    return ReportLead(
        report_lead_statements(results),
        runner_up,
        against.undecided_trials if against else None,
        position_of_best(results),
        [] if is_final else find_range_edges(results),
        next_steps(results),
    )


def report_lead_lines(told: ReportLead, without: Sequence[str] = ()) -> list[str]:
    """Return the parts for a terminal, without those whose titles are in `without`."""
    shown = ((title, said) for title, said in told.parts.items() if title not in without)
    return [line for title, said in shown for line in wrap_for_terminal(title.lower(), join_statements(said))]


def wrap_for_terminal(title: str, text: str) -> list[str]:
    """Wrap a text for a terminal behind its title, without breaking names and options."""
    wrapper = textwrap.TextWrapper(
        TERMINAL_WIDTH, f"{title:<10}", " " * 10, break_on_hyphens=False, break_long_words=False
    )
    return wrapper.wrap(text)


class ResultParameters(Statement):
    """The parameters of what won."""

    arm: Arm
    values: ParamValues

    def __str__(self) -> str:
        values = ", ".join(f"{key} {format_parameter(value)}" for key, value in self.values.items())
        return f"{self.arm.label.capitalize()} has {values}."


def _result_parameters(results: Results) -> Iterator[ResultParameters]:
    (_, best), won = results.baseline_and_best_arms, results.best
    is_left = results.reference_as_result or (won is not None and won.trial.stage == "baseline")
    values = results.record.trials[best.trial_number].params if best else {}
    if best and values and not is_left and results.spec.final_seeds is None:
        yield ResultParameters(best, values)


class WorstGroups(Statement):
    """Which groups an arm serves worst; the grid of the page has all.

    Attributes:
        on_validation: where those that conflict with the bias are too small on test alone.
    """

    arm: Arm
    found: WorstGroup
    on_validation: WorstGroup | None = None

    def __str__(self) -> str:
        of_splits = [found for found in (self.found, self.on_validation) if found]
        known = [found.short_sentences(self.arm.label_in_sentence) for found in of_splits]
        first = [sentence for sentence in known[0] if sentence not in known[-1]]  # what brackets are is said once
        return " ".join(known[0] if len(known) == 1 else [*first, *known[1]])


def _worst_group_statements(results: Results) -> Iterator[WorstGroups]:
    """Yield which groups the result, or the model of a final training, serves worst, on test where it was read."""
    won = results.reference_as_result or results.best
    arm = final_model_arm(results) or (arm_of_candidate(results.spec, won) if won else None)
    if arm is None or results.spec.varied_data_keys:
        return
    split = "test" if arm.has_test_metrics else "val"
    found = worst_group_of_arm(results.record, arm, split)
    if found and (found.worst or found.too_small):
        yield WorstGroups(arm, found, worst_group_on_validation_if_test_small(results.record, arm))


class PositionOfBest(Statement):
    """The place among the search's configurations at which the leading one came, or the front last grew."""

    came: PositionInSearch
    is_front: bool

    def __str__(self) -> str:
        what = "The front of the search last grew with" if self.is_front else "The leading configuration came as"
        return f"{what} the {formatting.ordinal(self.came.place)} of {self.came.of}."


class TrialsNotAllStarted(Statement):
    """How many of a search's planned trials were started, and what ended it, see `SEARCH_END_REASONS`.

    Attributes:
        limit: the key of the limit that ended it and its value; None: no such limit did.
    """

    started: int
    planned: int
    ended_by: str | None
    limit: str | None = None

    def __str__(self) -> str:
        reason = formatting.SEARCH_END_REASONS.get(self.ended_by or "")
        ended = f": {reason}" if reason else ""
        ended += f" ({self.limit})" if self.limit else ""
        verb = "was" if self.started == 1 else "were"
        return f"{self.started} of the {self.planned} planned trials of the search {verb} started{ended}."


def _trials_not_started(results: Results) -> Iterator[TrialsNotAllStarted]:
    """Yield how many of the planned trials were started, where not all were."""
    spec, record = results.spec, results.record
    planned = record.max_configurations(spec.n_configurations)
    started = sum(trial.has_started for trial in record.trials_of_stages("baseline", "search"))
    if spec.final_seeds is not None or not 0 < started < planned:
        return
    ended_by = "every configuration of the space" if is_space_exhausted(results) else record.search_ended_by
    limits = {"time": spec.search.time and formatting.format_duration(spec.search.time)}
    limits["gpu_hours"] = spec.search.gpu_hours and f"{spec.search.gpu_hours:g}"
    value = limits.get(ended_by or "")
    limit = f"search.{ended_by} {value}" if value else None
    yield TrialsNotAllStarted(started, planned, ended_by, limit)


def _search_course_statements(results: Results) -> Iterator[Statement]:
    """Yield when the leading configuration came, and what early stopping saved."""
    when = position_of_best(results) if results.spec.final_seeds is None else None
    if when is None:
        return
    yield PositionOfBest(when, results.spec.objective.has_several_metrics)
    if early := saved_by_early_stopping(results):
        yield early


class SavedByEarlyStopping(Statement):
    """What early stopping by a rule saved.

    Attributes:
        pruned: number of trials.
        share: of the search's epochs.
        seconds: of trial time.
    """

    rule: str
    pruned: int
    share: float
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.rule} pruned {pluralise(self.pruned, 'trial')} and saved {100 * self.share:.0f}% of the "
            f"search's epochs, about {formatting.format_duration(self.seconds)} of trial time."
        )


def saved_by_early_stopping(results: Results) -> SavedByEarlyStopping | None:
    """Return what early stopping saved of the search and the baseline; None where no trial was pruned.

    Each further epoch of a trial is taken to cost what its own did. Failed trials are left out: nobody chose to stop
    them.
    """
    planned = results.spec.epochs
    ended = [
        trial
        for trial in results.record.trials_of_stages("baseline", "search", "replicate")
        if trial.state in ("complete", "pruned")
    ]
    pruned = sum(trial.state == "pruned" for trial in ended)
    if not pruned:
        return None
    share = 1 - sum(trial.n_epochs for trial in ended) / (planned * len(ended))
    seconds = sum((trial.total_run_seconds or 0.0) * (planned / (trial.n_epochs or planned) - 1) for trial in ended)
    return SavedByEarlyStopping(results.spec.search.early_stopping.name, pruned, share, seconds)


class StudyCost(Statement):
    """What a study took.

    Attributes:
        configurations: of the search; 0 for a final training.
        pruned: how many of them were pruned.
        further: other trials, on other seeds.
        clock: seconds on the clock.
        busy: seconds of all trials.
    """

    configurations: int
    pruned: int
    further: int
    epochs: int
    clock: float
    busy: float
    gpu_hours: float

    def __str__(self) -> str:
        searched = pluralise(self.configurations, "configuration") + f" ({self.pruned} pruned)" * (self.pruned > 0)
        other = pluralise(self.further, "further trial") + " on other seeds"
        if not self.configurations:
            other = pluralise(self.further, "final training", "final trainings")
        told = formatting.join_with_and(([searched] if self.configurations else []) + ([other] if self.further else []))
        gpu = f"{self.gpu_hours:.2g} GPU hours" if self.gpu_hours else "no GPU"
        return (
            f"{told}, {pluralise(self.epochs, 'epoch')}: {formatting.format_duration(self.clock)} on the clock, "
            f"{formatting.format_duration(self.busy)} of trial time, {gpu}."
        )


class ReferenceFitTime(Statement):
    """How long the references took that were fitted beside the search."""

    references: int
    seconds: float

    def __str__(self) -> str:
        took = formatting.format_duration(self.seconds)
        return f"{pluralise(self.references, 'reference')} fitted beside the search: {took} of one core."


class CountOfTestReadings(Statement):
    """How often the test split was read."""

    times: int

    def __str__(self) -> str:
        return f"The test split was read {pluralise(self.times, 'time')}."


def _cost_statements(results: Results) -> Iterator[Statement]:
    record, trials = results.record, [trial for trial in results.record.trials.values() if trial.has_started]
    if not trials:
        return
    configurations = sum(trial.stage in ("baseline", "search") for trial in trials)
    yield StudyCost(
        configurations,
        sum(trial.state == "pruned" for trial in trials),
        len(trials) - configurations,
        sum(trial.n_epochs for trial in trials),
        record.total_driver_seconds,
        record.total_trial_seconds,
        record.device_seconds("gpu", results.spec.resources.gpu) / 3600,
    )
    if beside := [event.seconds for event in record.reference_events.values() if event.seconds is not None]:
        yield ReferenceFitTime(len(beside), sum(beside))
    yield CountOfTestReadings(record.n_test_readings)


class SuggestedCommand(Statement):
    """What to type for the step to take.

    Attributes:
        purpose: what it does, where the step says nothing of it.
    """

    command: str
    purpose: str = "The command"

    def __str__(self) -> str:
        return f"{self.purpose}: {self.command}"


def _next_step_statements(results: Results) -> Iterator[Statement]:
    """Yield the step to take; what to type for it, and for training the result at once, comes last."""
    for step in next_steps(results)[:1]:
        yield step.why
        if step.command:
            yield SuggestedCommand(step.command)
        if results.record.state == "complete" and step.may_train_instead:
            is_fitted = results.reference_as_result is not None
            purpose = "fit it once more and keep the model" if is_fitted else "train the result on new seeds"
            first = "Or, to" if step.command else "To"
            yield SuggestedCommand(study_command("train", results.spec.name), f"{first} {purpose}")
    if results.final_training_trials and not results.spec.training_function:
        if predict := predict_command(results.spec):
            yield SuggestedCommand(predict, "To classify new samples with it")
        else:
            yield SuggestedCommand(evaluate_command(results.spec), "To measure it, with --data FILE on other data")
