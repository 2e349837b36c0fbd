"""The lead of a report: what won and how sure that is, what it cost, and what to do next."""

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from study.analysis.report.conclusions import conclusions
from study.analysis.statistics import formatting
from study.analysis.statistics.debiasing_metrics import worst_group
from study.analysis.statistics.next_step import (
    NextStep,
    PositionInSearch,
    RangeEdge,
    Rivals,
    edges,
    next_steps,
    position_of_best,
    predict_command,
    rivals,
)
from study.home.events import Params
from study.metrics.worst_group_statement import WorstGroup
from study.ranking import Results, SeedStatistics, epochs
from study.ranking.difference import Arm, Difference, to_arm
from study.ranking.documents import Statement, join_statements
from study.spec.objective import MetricConstraint
from study.text import counted, parameter, sentence_case, typed

Means = Sequence[tuple[Arm, SeedStatistics]]
"""Arms with the metric of a limit over their seeds."""


class Limit(Statement):
    """Who breaks a limit by the mean over its seeds, and who keeps it."""

    limit: MetricConstraint
    breaking: Means
    keeping: Means

    def __str__(self) -> str:
        name = self.limit.metric
        by_verb = {"breaks": self.breaking, "keeps": self.keeping}
        parts = (
            f"{arm.words} {verb} it ({formatting.mean(name, spread)})"
            for verb, means in by_verb.items()
            for arm, spread in means
        )
        return f"The limit {name} {self.limit.comparison} {formatting.setting(self.limit.limit)}: {', '.join(parts)}."


def limit_statements(results: Results) -> Iterator[Limit]:
    """Yield each constraint with the baseline and the result; none of a final training."""
    compared = [arm for arm in results.result_arms if arm and results.spec.final_seeds is None]
    for limit in results.spec.objective.constraints:
        if means := [(arm, spread) for arm in compared if (spread := arm.statistics(limit.metric))]:
            broken = [(arm, spread) for arm, spread in means if limit.violation_by(spread.mean) > 0]
            yield Limit(limit, broken, [pair for pair in means if pair not in broken])


class BrokenAnew(Statement):
    """What led the search breaks a limit on the seeds that it ran again on, and is not chosen."""

    limit: MetricConstraint
    arm: Arm
    statistics: SeedStatistics

    def __str__(self) -> str:
        limit, arm = self.limit, self.arm
        value = (
            f"{formatting.mean(limit.metric, self.statistics)} on {formatting.folds_and_seeds_text(arm, limit.metric)}"
        )
        return (
            f"{sentence_case(arm.words)} led the search, but breaks {limit} where it ran again ({value}): it is not "
            "chosen."
        )


def limits_broken_anew(results: Results) -> Iterator[BrokenAnew]:
    """Yield the limits that what led the search kept there and breaks on fresh seeds, where another was chosen."""
    first, chosen = next(iter(results.ranked_by_search_value), None), results.best
    if first is None or chosen is None or not results.is_confirmed or first.trial.number == chosen.trial.number:
        return
    if first.score.total_violation > 0 or first.confirmed_score is None:
        return
    arm = to_arm(results.spec, first)
    for limit in results.spec.objective.broken_constraints(first.confirmed_score):
        if found := arm.statistics(limit.metric):
            yield BrokenAnew(limit, arm, found)


ON = {
    "aligned_accuracy": "on samples that agree with the bias",
    "conflicting_accuracy": "on samples that conflict with the bias",
    "accuracy": "overall",
}
"""Accuracies whose changes belong together, and the samples that each is of."""

MUCH = 0.05
"""Loss of accuracy above which a milder configuration is named."""


class TradeOff(Statement):
    """How accuracies on a split changed from the baseline to the best: the difference by metric."""

    split: str
    reference: Arm
    best: Arm
    changes: Mapping[str, Difference]

    def __str__(self) -> str:
        changes = "; ".join(self._change(name, change) for name, change in self.changes.items())
        return f"Accuracy on the {self.split} split, from the baseline to {self.best.label}: {changes}."

    def _change(self, name: str, change: Difference) -> str:
        verb = "went" if not change.is_clear else "rose" if change.value > 0 else "fell"
        where = ON[name.split("/")[1]]
        before, after = (formatting.arm_mean(arm, name) for arm in (self.reference, self.best))
        if change.interval == (0.0, 0.0):
            return f"{where} it stayed at {after} on every seed"
        return f"{where} it {verb} from {before} to {after}: {formatting.difference_with_interval(name, change)}"


class Milder(Statement):
    """A configuration that loses less accuracy.

    Attributes:
        value: of the study's metric in the search.
        accuracy: on validation in the search.
        least: smallest accuracy that was asked for.
    """

    study: str
    trial: int
    metric: str
    value: float
    accuracy: float
    least: float

    def __str__(self) -> str:
        return (
            f"Trial {self.trial} is milder: in the search it had {self.metric} "
            f"{formatting.value(self.metric, self.value)} with val/accuracy "
            f"{formatting.value('val/accuracy', self.accuracy)}. To export it: study export {self.study} --where "
            f'"val/accuracy>={self.least:g}"'
        )


def trade_off(results: Results) -> Iterator[TradeOff | Milder]:
    """Yield how accuracy changed from the baseline to the result, with the bias, against it and over all.

    A method that helps samples against the bias often loses some that go with it. A configuration that costs less
    accuracy follows, where the best costs much. Empty where nothing changed, or the study's own metrics say it all.
    """
    reference, best = results.result_arms
    if results.spec.function or results.spec.final_seeds is not None or best is None or reference is None:
        return
    split = "test" if all(arm.statistics("test/accuracy") for arm in (best, reference)) else "val"
    told = {name.split("/")[1] for name in results.spec.objective.metrics}
    names = [f"{split}/{name}" for name in ON if name not in told]
    changes = {name: change for name in names if (change := best.difference_to(reference, name))}
    if not any(change.value for change in changes.values()):
        return
    yield TradeOff(split, reference, best, changes)
    lost = best.difference_to(reference, "val/accuracy")
    if lost is not None and lost.is_clear and lost.value < -MUCH and results.spec.metric != "val/accuracy":
        yield from _milder(results, reference)


def _milder(results: Results, reference: Arm) -> Iterator[Milder]:
    """Yield the best configuration that is better than the baseline and loses little of its accuracy."""
    spec, own, whole = results.spec, reference.statistics(results.spec.metric), reference.statistics("val/accuracy")
    assert own
    assert whole
    least = math.floor(1000 * (whole.mean - MUCH)) / 1000
    for candidate in results.ranked_search:
        accuracy = epochs.chosen_metric(spec.objective, candidate.trial, "val/accuracy")
        if accuracy is not None and accuracy >= least and spec.is_better(candidate.search_value, own.mean):
            yield Milder(spec.name, candidate.trial.number, spec.metric, candidate.search_value, accuracy, least)
            return


WIDTH = 110
"""Width of a terminal's lines in characters."""


def lead(results: Results) -> dict[str, list[Statement]]:
    """Return the lead's statements by title, without parts that have nothing to say."""
    is_compared = not results.spec.varied_data_keys
    parts: dict[str, list[Statement]] = {
        "Result": [
            *conclusions(results),
            *limit_statements(results),
            *limits_broken_anew(results),
            *_parameters_of_result(results),
        ],
        "Trade-off": list(trade_off(results)) if is_compared else [],
        "Groups": list(_groups(results)),
        "How sure": list(_how_sure(results)) if is_compared else [],
        "Search": list(_search_statements(results)) if is_compared else [],
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
class LeadNumbers:
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


def document(results: Results) -> LeadNumbers:
    """Return the lead of a report with its numbers."""
    against, is_final = rivals(results), results.spec.final_seeds is not None
    return LeadNumbers(
        lead(results),
        RunnerUp(against.runner_up.number, against.gap.value, against.gap.interval) if against else None,
        against.undecided if against else None,
        position_of_best(results),
        [] if is_final else edges(results),
        next_steps(results),
    )


def lines(told: LeadNumbers, but: Sequence[str] = ()) -> list[str]:
    """Return the parts for a terminal, without those whose titles are in `but`."""
    parts = told.parts.items()
    return [line for title, said in parts if title not in but for line in wrapped(title.lower(), join_statements(said))]


def wrapped(title: str, text: str) -> list[str]:
    """Wrap a text for a terminal behind its title, without breaking names and options."""
    wrapper = textwrap.TextWrapper(WIDTH, f"{title:<10}", " " * 10, break_on_hyphens=False, break_long_words=False)
    return wrapper.wrap(text)


class Parameters(Statement):
    """The parameters of what won."""

    arm: Arm
    values: Params

    def __str__(self) -> str:
        values = ", ".join(f"{key} {parameter(value)}" for key, value in self.values.items())
        return f"{self.arm.label.capitalize()} has {values}."


def _parameters_of_result(results: Results) -> Iterator[Parameters]:
    (_, best), won = results.compared_arms, results.best
    is_left = results.reference_as_result or (won is not None and won.trial.stage == "baseline")
    values = results.record.trials[best.number].params if best else {}
    if best and values and not is_left and results.spec.final_seeds is None:
        yield Parameters(best, values)


class Groups(Statement):
    """A sentence on which groups an arm serves worst."""

    arm: Arm
    found: WorstGroup
    text: str

    def __str__(self) -> str:
        return self.text


def _groups(results: Results) -> Iterator[Groups]:
    """Yield which groups the result, or the final training, serves worst, on test where it was read."""
    won = results.reference_as_result or results.best
    arm = results.final_arm or (to_arm(results.spec, won) if won else None)
    if arm is None or results.spec.varied_data_keys:
        return
    split = "test" if any(trial.test_metrics for trial in arm.trials) else "val"
    found = worst_group(results.record, arm, split)
    if found and (found.worst or found.too_small):
        yield from (Groups(arm, found, text) for text in found.sentences(arm.words))


class AmongRivals(Statement):
    """The best against the others that ran on the same seeds.

    Attributes:
        limits: which configurations these are, where there are limits.
    """

    rivals: Rivals
    limits: Literal["", "that keep the limits", "that miss the limits by no more"]

    @property
    def verdict(self) -> Literal["one seed", "better mean", "undecided", "best"]:
        """How the best compares with its rivals.

        `one seed`: nothing tells them apart; `better mean`: another has it; `undecided`: some cannot be told from the
        best.
        """
        best, gap = self.rivals.best, self.rivals.gap.value
        if self.rivals.seeds[1] == 1:
            return "one seed"
        if best.spec.is_better(0.0, gap):  # an incumbent, which is chosen all the same
            return "better mean"
        return "undecided" if self.rivals.undecided else "best"

    def __str__(self) -> str:
        against, best, kept = self.rivals, self.rivals.best, self.limits and f" {self.limits}"
        fewest, most = against.seeds
        if self.verdict == "one seed":
            number = against.compared - 1
            others = f"{'' if number == 1 else f'{number} '}other complete configuration{'s' * (number > 1)}{kept}"
            where = formatting.folds_and_seeds_text(best, best.spec.metric)
            return f"On {where} alone nothing tells {best.label} from the {others}."
        ran = counted(most, "seed") if fewest == most else f"{fewest} to {most} seeds"
        if best.repeated_over != "seeds":
            ran = f"all folds, {ran} in all"
        where = f"the {against.compared} configurations that ran on {ran}{kept and ' and'}{kept.removeprefix(' that')}"
        if self.verdict == "better mean":
            clear = f", beyond the spread over {best.repeated_over}" if against.gap.is_clear else ""
            leader, gap = against.runner_up.label, formatting.difference_with_interval(best.spec.metric, against.gap)
            return f"Of {where}, {leader} has the best mean; the difference of {best.label} to it is {gap}{clear}."
        if against.undecided:
            return f"Of {where}, {best.label} cannot be told from {formatting.trials(against.undecided)}."
        return f"{best.label.capitalize()} is the best of {where} (95% confidence)."


class ToRunnerUp(Statement):
    """The difference of the best to the runner-up."""

    rivals: Rivals

    def __str__(self) -> str:
        gap = formatting.difference_with_interval(self.rivals.best.spec.metric, self.rivals.gap)
        return f"The difference to the runner-up, {self.rivals.runner_up.label}, is {gap}."


def _how_sure(results: Results) -> Iterator[AmongRivals | ToRunnerUp]:
    """Yield the best against the others that ran on the same seeds.

    Empty where the result is the baseline or needs no search.
    """
    against, won, best = rivals(results), results.best, next(iter(results.ranked_search), None)
    if against is None or best is None or (won and won.trial.stage == "baseline") or results.references_above_best:
        return
    missed = (best.confirmed_score or best.score).total_violation
    kept = AmongRivals(against, "that miss the limits by no more" if missed else "that keep the limits")
    said = kept if results.spec.objective.constraints else AmongRivals(against, "")
    yield said
    if said.verdict in ("undecided", "best"):
        yield ToRunnerUp(against)


class BestCame(Statement):
    """The place among the search's configurations at which the best came, or the front last grew.

    Attributes:
        what: `front`: where the front last grew; `first`: where what leads came; `chosen`, `best`: where that came.
    """

    came: PositionInSearch
    what: Literal["front", "first", "chosen", "best"]

    def __str__(self) -> str:
        of = f"the {formatting.ordinal(self.came.place)} of {self.came.of}."
        return BEST_CAME[self.what] + of


BEST_CAME = {
    "front": "The front of the search last grew with ",
    "first": "What leads the search came as ",
    "chosen": "What was chosen came as ",
    "best": "The best of the search came as ",
}


def _search_statements(results: Results) -> Iterator[Statement]:
    """Yield when the best came, and what early stopping saved."""
    when = position_of_best(results) if results.spec.final_seeds is None else None
    if when is None:
        return
    held = results.incumbent_standing
    what: Literal["front", "first", "chosen", "best"] = "chosen" if held and held.held_back_lead else "best"
    what = "first" if results.references_above_best else what
    yield BestCame(when, "front" if results.spec.objective.has_several_metrics else what)
    if early := saved_by_early_stopping(results):
        yield early


class Saved(Statement):
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
            f"{self.rule} pruned {counted(self.pruned, 'trial')} and saved {100 * self.share:.0f}% of the "
            f"search's epochs, about {formatting.duration(self.seconds)} of trial time."
        )


def saved_by_early_stopping(results: Results) -> Saved | None:
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
    return Saved(results.spec.search.early_stopping.name, pruned, share, seconds)


class Cost(Statement):
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
        kinds = [f"{self.pruned} pruned"] if self.pruned else []
        searched = counted(self.configurations, "configuration") + "".join(f" ({each})" for each in kinds)
        other = counted(self.further, "further trial") + " on other seeds"
        if not self.configurations:
            other = counted(self.further, "final training", "final trainings")
        told = formatting.listed(([searched] if self.configurations else []) + ([other] if self.further else []))
        gpu = f"{self.gpu_hours:.2g} GPU hours" if self.gpu_hours else "no GPU"
        return (
            f"{told}, {counted(self.epochs, 'epoch')}: {formatting.duration(self.clock)} on the clock, "
            f"{formatting.duration(self.busy)} of trial time, {gpu}."
        )


class ReferencesTook(Statement):
    """How long the references took that were fitted beside the search."""

    references: int
    seconds: float

    def __str__(self) -> str:
        took = formatting.duration(self.seconds)
        return f"{counted(self.references, 'reference')} fitted beside the search: {took} of one core."


class Readings(Statement):
    """How often the test split was read."""

    times: int

    def __str__(self) -> str:
        return f"The test split was read {counted(self.times, 'time')}."


def _cost_statements(results: Results) -> Iterator[Statement]:
    record, trials = results.record, list(results.record.trials.values())
    if not trials:
        return
    yield Cost(
        record.n_configurations_tried,
        sum(trial.state == "pruned" for trial in trials),
        len(trials) - record.n_configurations_tried,
        sum(trial.n_epochs for trial in trials),
        record.total_driver_seconds,
        record.total_trial_seconds,
        record.device_seconds("gpu", results.spec.resources.gpu) / 3600,
    )
    if beside := [event.seconds for event in record.reference_events.values() if event.seconds is not None]:
        yield ReferencesTook(len(beside), sum(beside))
    yield Readings(record.n_test_readings)


class Command(Statement):
    """What to type for the step to take.

    Attributes:
        purpose: what it does, where the step says nothing of it.
    """

    command: str
    purpose: str = "The command"

    def __str__(self) -> str:
        return f"{self.purpose}: {self.command}"


def _next_step_statements(results: Results) -> Iterator[Statement]:
    """Yield the step to take; what to type for it comes last."""
    for step in next_steps(results)[:1]:
        yield step.why
        if step.command:
            yield Command(step.command)
        elif step.kind == "enough" and results.spec.final_seeds is None and not results.spec.varied_data_keys:
            fitted = "To fit it once more and keep the model"
            purpose = fitted if results.reference_as_result else "To train the result on new seeds"
            yield Command(typed("train", results.spec.name), purpose)
    if results.final_trials and not results.spec.function:
        yield Command(predict_command(results.spec), "To classify images or rows with it")
