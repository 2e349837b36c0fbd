"""The lead of a report: what won and how sure that is, what it cost, and what to do next."""

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from study.analysis.report.caveats import conclusions, more_search
from study.analysis.statistics import formatting, spent
from study.analysis.statistics.debiasing_metrics import worst_group
from study.analysis.statistics.next_step import Came, Edge, Step, came, edges, next_steps, rivals
from study.ranking import Results, epochs
from study.ranking.difference import Side, side_of
from study.ranking.summary import extended, sentence
from study.spec.objective import Constraint
from study.text import parameter

# What the lead says of limits that the baseline or the best does not keep.


def limits(results: Results) -> Iterator[str]:
    """Each constraint, for the baseline and the best configuration; nothing where there are none."""
    if results.spec.final_seeds is None and (compared := [side for side in results.sides if side]):
        for limit in results.spec.objective.constraints:
            yield from _limit(limit, compared)


def _limit(limit: Constraint, compared: list[Side]) -> Iterator[str]:
    """Yield who breaks a limit by the mean over its seeds; that the best keeps it, where the baseline does not."""
    text = f"{limit.metric} {limit.sense} {formatting.setting(limit.limit)}"
    means = [(side, spread) for side in compared if (spread := side.spread(limit.metric))]
    broken = [(side, spread) for side, spread in means if limit.excess(spread.mean) > 0]
    kept = [(side, spread) for side, spread in means if limit.excess(spread.mean) <= 0]
    parts = [f"{side.words} breaks it ({formatting.mean(limit.metric, spread)})" for side, spread in broken]
    parts += [f"{side.words} keeps it ({formatting.mean(limit.metric, spread)})" for side, spread in kept]
    if parts:
        yield f"The limit {text}: {', '.join(parts)}."


# What the gain cost: a method that helps samples against the bias often loses some of those that go with it.

ON = {
    "aligned_accuracy": "on samples that agree with the bias",
    "conflicting_accuracy": "on samples that conflict with the bias",
    "accuracy": "overall",
}
"""Accuracies whose changes belong together, and on which samples each is."""

MUCH = 0.05
"""Loss of accuracy from which on a milder configuration is named."""


def trade_off(results: Results) -> Iterator[str]:
    """Yield how accuracy changed from the baseline to the best, with the bias, against it and over all; and a
    configuration that costs less, where it cost much. Nothing where the study's own metric says it all."""
    reference, best = results.sides
    if results.spec.function or results.spec.final_seeds is not None or best is None or reference is None:
        return
    split = "test" if all(side.spread("test/accuracy") for side in (best, reference)) else "val"
    told = {name.split("/")[1] for name in results.spec.objective.metrics}
    names = [f"{split}/{name}" for name in ON if name not in told]
    names = [name for name in names if all(side.spread(name) for side in (best, reference))]
    if not names:
        return
    changes = "; ".join(_change(name, reference, best) for name in names)
    yield f"Accuracy on the {split} split, from the baseline to {best.label}: {changes}."
    lost = best.against(reference, "val/accuracy")
    if lost is not None and lost.clear and lost.value < -MUCH and results.spec.metric != "val/accuracy":
        yield from _milder(results, reference)


def _change(name: str, reference: Side, best: Side) -> str:
    change = best.against(reference, name)
    before, after = reference.spread(name), best.spread(name)
    assert change
    assert before
    assert after
    verb = "went" if not change.clear else "rose" if change.value > 0 else "fell"
    where = ON[name.split("/")[1]]
    if change.interval == (0.0, 0.0):
        return f"{where} it stayed at {formatting.mean(name, after)} on every seed"
    means = f"from {formatting.mean(name, before)} to {formatting.mean(name, after)}"
    return f"{where} it {verb} {means}: {formatting.amount(name, change)}"


def _milder(results: Results, reference: Side) -> Iterator[str]:
    """The best configuration of those that lose less of the baseline's accuracy, if it is better than the baseline."""
    own, whole = reference.spread(results.spec.metric), reference.spread("val/accuracy")
    assert own
    assert whole
    least = math.floor(1000 * (whole.mean - MUCH)) / 1000
    for candidate in results.candidates:
        accuracy = epochs.value(results.spec.objective, candidate.trial, "val/accuracy")
        if accuracy is not None and accuracy >= least and results.spec.better(candidate.value, own.mean):
            yield (
                f"Trial {candidate.trial.number} is milder: in the search it had {results.spec.metric} "
                f"{formatting.value(results.spec.metric, candidate.value)} with val/accuracy "
                f"{formatting.value('val/accuracy', accuracy)}. To export it: study export {results.spec.name} --where "
                f'"val/accuracy>={least:g}"'
            )
            return


WIDTH = 110
"""Of a terminal's lines."""


@dataclass(frozen=True)
class Part:
    """A few sentences of the lead under a word or two."""

    title: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.sentences)


def lead(results: Results) -> list[Part]:
    """The lead, part by part; parts that have nothing to say are left out."""
    parts = {
        "Result": [*conclusions(results), *limits(results), *_values(results)],
        "Trade-off": [] if results.spec.varied_data else list(trade_off(results)),
        "Groups": list(_groups(results)),
        "How sure": [] if results.spec.varied_data else list(_how_sure(results)),
        "Search": [] if results.spec.varied_data else list(_search(results)),
        "Cost": list(_cost(results)),
        "Next": list(_next(results)),
    }
    return [Part(title, tuple(sentences)) for title, sentences in parts.items() if sentences]


@dataclass(frozen=True)
class RunnerUp:
    """The configuration behind the best, and the difference of the two."""

    trial: int
    difference: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Lead:
    """The lead of a report, and what it says in numbers.

    Attributes:
        parts: the sentences by title.
        undecided: all trials that cannot be told from the best; None as `runner_up` where that is not known.
        best_came: as which of how many trials.
        edges: ranges at whose edge the best lies.
        next: the steps that apply, the one to take first.
    """

    parts: Mapping[str, Sequence[str]]
    runner_up: RunnerUp | None
    undecided: Sequence[int] | None
    best_came: Came | None
    edges: Sequence[Edge]
    next: Sequence[Step]


def document(results: Results) -> Lead:
    """The same with its numbers."""
    against, is_final = rivals(results), results.spec.final_seeds is not None
    return Lead(
        {part.title: part.sentences for part in lead(results)},
        RunnerUp(against.runner_up.number, against.gap.value, against.gap.interval) if against else None,
        against.undecided if against else None,
        came(results.as_searched),
        [] if is_final else edges(results.as_searched),
        next_steps(results),
    )


def lines(told: Lead, but: Sequence[str] = ()) -> list[str]:
    """The parts for a terminal, but some of them."""
    parts = told.parts.items()
    return [line for title, texts in parts if title not in but for line in wrapped(title.lower(), " ".join(texts))]


def wrapped(title: str, text: str) -> list[str]:
    """A text for a terminal, its title before it. Names and options stay in one piece, as they are typed."""
    wrapper = textwrap.TextWrapper(WIDTH, f"{title:<10}", " " * 10, break_on_hyphens=False, break_long_words=False)
    return wrapper.wrap(text)


def _values(results: Results) -> Iterator[str]:
    """The parameters of what won."""
    _, best = results.sides
    won = results.best
    is_baseline = won is not None and won.trial.stage == "baseline"
    if (
        best
        and not is_baseline
        and results.spec.final_seeds is None
        and (params := results.record.trials[best.number].params)
    ):
        values = ", ".join(f"{key} {parameter(value)}" for key, value in params.items())
        yield f"{best.label.capitalize()} has {values}."


def _groups(results: Results) -> Iterator[str]:
    """Which groups the best, or the final training, serves worst, on test where it was read; nothing where no group can
    be named."""
    won = results.best
    side = results.final_side or (side_of(results.spec, won) if won else None)
    if side is None or results.spec.varied_data:
        return
    split = "test" if any(trial.tested for trial in side.trials) else "val"
    found = worst_group(results.record, side, split)
    if found and (found.worst or found.too_small):
        yield from found.sentences(side.words)


def _how_sure(results: Results) -> Iterator[str]:
    """The best against the others that ran on the same seeds; nothing where that is the baseline or needs no search,
    see the result."""
    against, won = rivals(results), results.best
    if against is None or (won and won.trial.stage == "baseline") or results.above:
        return
    best, (fewest, most) = against.best, against.seeds
    kept = _in_question(results)
    if most == 1:
        number = against.compared - 1
        others = f"{'' if number == 1 else f'{number} '}other complete configuration{'s' * (number > 1)}{kept}"
        yield f"On {formatting.ran_on(best, results.spec.metric)} alone nothing tells {best.label} from the {others}."
        return
    ran = formatting.count(most, "seed") if fewest == most else f"{fewest} to {most} seeds"
    if best.over != "seeds":
        ran = f"all folds, {ran} in all"
    where = f"the {against.compared} configurations that ran on {ran}{kept and ' and'}{kept.removeprefix(' that')}"
    gap = formatting.amount(results.spec.metric, against.gap)
    if results.spec.better(0.0, against.gap.value):  # an incumbent, which is chosen all the same
        told = f", beyond the spread over {best.over}" if against.gap.clear else ""
        leader = against.runner_up.label
        yield f"Of {where}, {leader} has the best mean; the difference of {best.label} to it is {gap}{told}."
        return
    if against.undecided:
        yield f"Of {where}, {best.label} cannot be told from {formatting.trials(against.undecided)}."
    else:
        yield f"{best.label.capitalize()} is the best of {where} (95% confidence)."
    yield f"The difference to the runner-up, {against.runner_up.label}, is {gap}."


def _in_question(results: Results) -> str:
    """Return which configurations are compared with the best, where there are limits."""
    best = results.candidates[0]
    if not results.spec.objective.constraints:
        return ""
    missed = (best.confirmed_score or best.score).violation
    return " that miss the limits by no more" if missed else " that keep the limits"


def _search(results: Results) -> Iterator[str]:
    """When the best came, and what early stopping saved."""
    if found := extended(results):
        words = sentence(found)
        yield f"{words[0].upper()}{words[1:]}."
    results = results.as_searched
    when = came(results) if results.spec.final_seeds is None else None
    if when is None:
        return
    of = f"the {formatting.ordinal(when.place)} of {when.of}"
    several = len(results.spec.objective.metrics) > 1
    held = results.standing
    what = "What was chosen" if held and held.passed_over else "The best of the search"
    what = "What leads the search" if results.above else what
    yield f"The front of the search last grew with {of}." if several else f"{what} came as {of}."
    if saved := spent.sentence(results):
        yield saved


def _cost(results: Results) -> Iterator[str]:
    trials = list(results.record.trials.values())
    if not trials:
        return
    searched = results.record.tried
    pruned = sum(trial.state == "pruned" for trial in trials)
    kinds = (
        [formatting.count(searched, "configuration") + (f" ({pruned} pruned)" if pruned else "")] if searched else []
    )
    if rest := len(trials) - searched:
        kinds.append(f"{formatting.count(rest, 'further trial')} on other seeds" if searched else _seeds(rest))
    epochs = formatting.count(sum(trial.epochs for trial in trials), "epoch")
    clock, busy = formatting.duration(results.record.worked), formatting.duration(results.record.busy)
    gpu = results.record.taken("gpu", results.spec.resources.gpu) / 3600
    yield (
        f"{formatting.listed(kinds)}, {epochs}: {clock} on the clock, {busy} of trial time, "
        f"{f'{gpu:.2g} GPU hours' if gpu else 'no GPU'}."
    )
    if beside := [event.seconds for event in results.record.references.values() if event.seconds is not None]:
        took = formatting.duration(sum(beside))
        yield f"{formatting.count(len(beside), 'reference')} without a search, beside it: {took} of one core."
    yield f"The test split was read {formatting.count(results.record.test_readings, 'time')}."


def _seeds(trials: int) -> str:
    return formatting.count(trials, "final training", "final trainings")


def _next(results: Results) -> Iterator[str]:
    """Yield what more search of this kind would gain at most, and the step to take; what to type for it comes last."""
    if statement := more_search(results, is_known=True):
        yield statement
    for step in next_steps(results)[:1]:
        yield step.why
        if step.command:
            yield f"The command: {step.command}"
