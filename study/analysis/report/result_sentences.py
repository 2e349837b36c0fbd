"""The lead of a report: what won and how sure that is, what it cost, and what to do next."""

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from study.analysis.report.caveats import conclusions, more_search
from study.analysis.statistics import formatting, spent
from study.analysis.statistics.debiasing_metrics import worst_group
from study.analysis.statistics.next_step import Edge, PositionInSearch, Rivals, Step, came, edges, next_steps, rivals
from study.home.events import Params
from study.metrics.worst_group import WorstGroup
from study.ranking import Results, SeedStatistics, epochs
from study.ranking.difference import Difference, Side, side_of
from study.ranking.documents import Statement, text_of
from study.ranking.summary import Extended, extended, sentence
from study.spec.objective import Constraint
from study.text import counted, parameter, sentence_case

Means = Sequence[tuple[Side, SeedStatistics]]
"""Sides with the metric of a limit over their seeds."""


class Limit(Statement):
    """Who breaks a limit by the mean over its seeds, and who keeps it."""

    limit: Constraint
    broken: Means
    kept: Means

    def __str__(self) -> str:
        name = self.limit.metric
        by_verb = {"breaks": self.broken, "keeps": self.kept}
        parts = (
            f"{side.words} {verb} it ({formatting.mean(name, spread)})"
            for verb, means in by_verb.items()
            for side, spread in means
        )
        return f"The limit {name} {self.limit.sense} {formatting.setting(self.limit.limit)}: {', '.join(parts)}."


def limits(results: Results) -> Iterator[Limit]:
    """Yield each constraint with the baseline and the result; none of a final training."""
    compared = [side for side in results.result_sides if side and results.spec.final_seeds is None]
    for limit in results.spec.objective.constraints:
        if means := [(side, spread) for side in compared if (spread := side.spread(limit.metric))]:
            broken = [(side, spread) for side, spread in means if limit.excess(spread.mean) > 0]
            yield Limit(limit, broken, [pair for pair in means if pair not in broken])


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
    reference: Side
    best: Side
    changes: Mapping[str, Difference]

    def __str__(self) -> str:
        changes = "; ".join(self._change(name, change) for name, change in self.changes.items())
        return f"Accuracy on the {self.split} split, from the baseline to {self.best.label}: {changes}."

    def _change(self, name: str, change: Difference) -> str:
        verb = "went" if not change.clear else "rose" if change.value > 0 else "fell"
        where = ON[name.split("/")[1]]
        before, after = (formatting.measured(side, name) for side in (self.reference, self.best))
        if change.interval == (0.0, 0.0):
            return f"{where} it stayed at {after} on every seed"
        return f"{where} it {verb} from {before} to {after}: {formatting.amount(name, change)}"


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
    reference, best = results.result_sides
    if results.spec.function or results.spec.final_seeds is not None or best is None or reference is None:
        return
    split = "test" if all(side.spread("test/accuracy") for side in (best, reference)) else "val"
    told = {name.split("/")[1] for name in results.spec.objective.metrics}
    names = [f"{split}/{name}" for name in ON if name not in told]
    changes = {name: change for name in names if (change := best.against(reference, name))}
    if not any(change.value for change in changes.values()):
        return
    yield TradeOff(split, reference, best, changes)
    lost = best.against(reference, "val/accuracy")
    if lost is not None and lost.clear and lost.value < -MUCH and results.spec.metric != "val/accuracy":
        yield from _milder(results, reference)


def _milder(results: Results, reference: Side) -> Iterator[Milder]:
    """Yield the best configuration that is better than the baseline and loses little of its accuracy."""
    spec, own, whole = results.spec, reference.spread(results.spec.metric), reference.spread("val/accuracy")
    assert own
    assert whole
    least = math.floor(1000 * (whole.mean - MUCH)) / 1000
    for candidate in results.candidates:
        accuracy = epochs.value(spec.objective, candidate.trial, "val/accuracy")
        if accuracy is not None and accuracy >= least and spec.better(candidate.value, own.mean):
            yield Milder(spec.name, candidate.trial.number, spec.metric, candidate.value, accuracy, least)
            return


WIDTH = 110
"""Width of a terminal's lines in characters."""


def lead(results: Results) -> dict[str, list[Statement]]:
    """Return the lead's statements by title, without parts that have nothing to say."""
    is_compared = not results.spec.varied_data
    parts: dict[str, list[Statement]] = {
        "Result": [*conclusions(results), *limits(results), *_parameters(results)],
        "Trade-off": list(trade_off(results)) if is_compared else [],
        "Groups": list(_groups(results)),
        "How sure": list(_how_sure(results)) if is_compared else [],
        "Search": list(_search(results)) if is_compared else [],
        "Cost": list(_cost(results)),
        "Next": list(_next(results)),
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
        next: the steps that apply, the one to take first.
    """

    parts: Mapping[str, Sequence[Statement]]
    runner_up: RunnerUp | None
    undecided: Sequence[int] | None
    best_came: PositionInSearch | None
    edges: Sequence[Edge]
    next: Sequence[Step]


def document(results: Results) -> LeadNumbers:
    """Return the lead of a report with its numbers."""
    against, is_final = rivals(results), results.spec.final_seeds is not None
    return LeadNumbers(
        lead(results),
        RunnerUp(against.runner_up.number, against.gap.value, against.gap.interval) if against else None,
        against.undecided if against else None,
        came(results.without_extensions),
        [] if is_final else edges(results.without_extensions),
        next_steps(results),
    )


def lines(told: LeadNumbers, but: Sequence[str] = ()) -> list[str]:
    """Return the parts for a terminal, without those whose titles are in `but`."""
    parts = told.parts.items()
    return [line for title, said in parts if title not in but for line in wrapped(title.lower(), text_of(said))]


def wrapped(title: str, text: str) -> list[str]:
    """Wrap a text for a terminal behind its title, without breaking names and options."""
    wrapper = textwrap.TextWrapper(WIDTH, f"{title:<10}", " " * 10, break_on_hyphens=False, break_long_words=False)
    return wrapper.wrap(text)


class Parameters(Statement):
    """The parameters of what won."""

    side: Side
    values: Params

    def __str__(self) -> str:
        values = ", ".join(f"{key} {parameter(value)}" for key, value in self.values.items())
        return f"{self.side.label.capitalize()} has {values}."


def _parameters(results: Results) -> Iterator[Parameters]:
    (_, best), won = results.sides, results.best
    is_left = results.unbeaten or (won is not None and won.trial.stage == "baseline")
    values = results.record.trials[best.number].params if best else {}
    if best and values and not is_left and results.spec.final_seeds is None:
        yield Parameters(best, values)


class Groups(Statement):
    """A sentence on which groups a side serves worst."""

    side: Side
    found: WorstGroup
    text: str

    def __str__(self) -> str:
        return self.text


def _groups(results: Results) -> Iterator[Groups]:
    """Yield which groups the result, or the final training, serves worst, on test where it was read."""
    won = results.unbeaten or results.best
    side = results.final_side or (side_of(results.spec, won) if won else None)
    if side is None or results.spec.varied_data:
        return
    split = "test" if any(trial.tested for trial in side.trials) else "val"
    found = worst_group(results.record, side, split)
    if found and (found.worst or found.too_small):
        yield from (Groups(side, found, text) for text in found.sentences(side.words))


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
        if best.spec.better(0.0, gap):  # an incumbent, which is chosen all the same
            return "better mean"
        return "undecided" if self.rivals.undecided else "best"

    def __str__(self) -> str:
        against, best, kept = self.rivals, self.rivals.best, self.limits and f" {self.limits}"
        fewest, most = against.seeds
        if self.verdict == "one seed":
            number = against.compared - 1
            others = f"{'' if number == 1 else f'{number} '}other complete configuration{'s' * (number > 1)}{kept}"
            where = formatting.ran_on(best, best.spec.metric)
            return f"On {where} alone nothing tells {best.label} from the {others}."
        ran = counted(most, "seed") if fewest == most else f"{fewest} to {most} seeds"
        if best.over != "seeds":
            ran = f"all folds, {ran} in all"
        where = f"the {against.compared} configurations that ran on {ran}{kept and ' and'}{kept.removeprefix(' that')}"
        if self.verdict == "better mean":
            clear = f", beyond the spread over {best.over}" if against.gap.clear else ""
            leader, gap = against.runner_up.label, formatting.amount(best.spec.metric, against.gap)
            return f"Of {where}, {leader} has the best mean; the difference of {best.label} to it is {gap}{clear}."
        if against.undecided:
            return f"Of {where}, {best.label} cannot be told from {formatting.trials(against.undecided)}."
        return f"{best.label.capitalize()} is the best of {where} (95% confidence)."


class ToRunnerUp(Statement):
    """The difference of the best to the runner-up."""

    rivals: Rivals

    def __str__(self) -> str:
        gap = formatting.amount(self.rivals.best.spec.metric, self.rivals.gap)
        return f"The difference to the runner-up, {self.rivals.runner_up.label}, is {gap}."


def _how_sure(results: Results) -> Iterator[AmongRivals | ToRunnerUp]:
    """Yield the best against the others that ran on the same seeds.

    Empty where the result is the baseline or needs no search.
    """
    against, won, best = rivals(results), results.best, next(iter(results.candidates), None)
    if against is None or best is None or (won and won.trial.stage == "baseline") or results.above:
        return
    missed = (best.confirmed_score or best.score).violation
    kept = AmongRivals(against, "that miss the limits by no more" if missed else "that keep the limits")
    said = kept if results.spec.objective.constraints else AmongRivals(against, "")
    yield said
    if said.verdict in ("undecided", "best"):
        yield ToRunnerUp(against)


class WentOn(Statement):
    """Which trials were extended."""

    extended: Extended

    def __str__(self) -> str:
        return f"{sentence_case(sentence(self.extended))}."


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


def _search(results: Results) -> Iterator[Statement]:
    """Yield which trials were extended, when the best came, and what early stopping saved."""
    if found := extended(results):
        yield WentOn(found)
    results = results.without_extensions
    when = came(results) if results.spec.final_seeds is None else None
    if when is None:
        return
    held = results.standing
    what: Literal["front", "first", "chosen", "best"] = "chosen" if held and held.passed_over else "best"
    what = "first" if results.above else what
    yield BestCame(when, "front" if results.spec.objective.several else what)
    if saved := spent.saved(results):
        yield saved


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


def _cost(results: Results) -> Iterator[Statement]:
    record, trials = results.record, list(results.record.trials.values())
    if not trials:
        return
    yield Cost(
        record.tried,
        sum(trial.state == "pruned" for trial in trials),
        len(trials) - record.tried,
        sum(trial.epochs for trial in trials),
        record.worked,
        record.busy,
        record.taken("gpu", results.spec.resources.gpu) / 3600,
    )
    if beside := [event.seconds for event in record.references.values() if event.seconds is not None]:
        yield ReferencesTook(len(beside), sum(beside))
    yield Readings(record.test_readings)


class Command(Statement):
    """What to type for the step to take."""

    command: str

    def __str__(self) -> str:
        return f"The command: {self.command}"


def _next(results: Results) -> Iterator[Statement]:
    """Yield what more search of this kind would gain at most, and the step to take; what to type for it comes last."""
    if statement := more_search(results, is_known=True):
        yield statement
    for step in next_steps(results)[:1]:
        yield step.why
        if step.command:
            yield Command(step.command)
