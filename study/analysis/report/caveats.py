"""A study's conclusions and their caveats, as statements computed from its trials; no more than the numbers support."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Literal

from study.analysis.report.front_section import front_result
from study.analysis.report.reference_sentences import reference_notes, reference_result
from study.analysis.statistics import formatting
from study.analysis.statistics.debiasing_metrics import Guesses, guesses, samples, with_error
from study.analysis.statistics.next_step import is_used_up
from study.home.record import StudyRecord
from study.ranking import Results, SeedStatistics, epochs
from study.ranking.candidates import Lead
from study.ranking.difference import Difference, Side, side_of
from study.ranking.documents import Statement
from study.ranking.remaining_gain import RemainingGain, remaining_gain, sentence
from study.spec import StudySpec
from study.spec.load import papers_configurations
from study.spec.schema import same
from study.text import counted, sentence_case


class MoreSearch(Statement):
    """What more search of this kind would gain at most, or why that is not known."""

    spec: StudySpec
    remaining: RemainingGain

    def __str__(self) -> str:
        return sentence(self.spec, self.remaining, partial(formatting.change, self.spec.metric, signed=False))


def more_search(results: Results, is_known: bool) -> MoreSearch | None:
    """Return what more search of this kind would gain at most (`is_known`), or why that is not known.

    None where the other one applies, and before a trial of the search is complete.
    """
    if results.spec.final_seeds is not None or results.spec.varied_data:
        return None
    if not any(trial.state == "complete" for trial in results.record.by_stage("search")):
        return None
    remaining = remaining_gain(results)
    is_told = remaining.gain is not None and not remaining.is_any
    return MoreSearch(results.spec, remaining) if is_told == is_known else None


ALIGNED, CONFLICTING = "val/aligned_accuracy", "val/conflicting_accuracy"
ERROR = f"{CONFLICTING}_standard_error"

BLIND = 0.1
"""Smallest standard error of the accuracy on conflicting samples that may hide a gain of 20 points."""


class GainUnseen(Statement):
    """A gain on samples that conflict with the bias cannot be seen in validation.

    Attributes:
        error: standard error of their accuracy; None: no validation sample conflicts with the bias.
    """

    error: float | None

    def __str__(self) -> str:
        if self.error is None:
            return "No validation sample conflicts with the bias: what a method gains on such samples cannot be seen."
        return (
            f"Few validation samples conflict with the bias: the standard error of {CONFLICTING} is "
            f"{100 * self.error:.0f} points, and a gain of less than twice that may not be seen."
        )


def why_nothing_gained(spec: StudySpec, reference: Side, best: Side) -> GainUnseen | None:
    """Return why validation may hide a gain, for a search that gained nothing; None where nothing says so."""
    gain = best.against(reference, spec.metric)
    if gain is None or (gain.clear and spec.better(gain.value, 0.0)):
        return None
    aligned, conflicting, error = (reference.spread(name) for name in (ALIGNED, CONFLICTING, ERROR))
    if aligned is None or (conflicting is not None and (error is None or error.mean < BLIND)):
        return None
    return GainUnseen(error.mean if conflicting is not None and error is not None else None)


class NothingYet(Statement):
    """No trial that could be a result is complete; the baseline's value stands before, if it is known."""

    stage: Literal["any", "final", "search"]
    baseline: Side | None = None

    def __str__(self) -> str:
        before = f"The baseline reaches {_value_text(self.baseline)}. " if self.baseline else ""
        return before + NOTHING_YET[self.stage]


NOTHING_YET = {
    "any": "No trial has been started yet.",
    "final": "No seed of the final training is complete yet.",
    "search": "No trial of the search is complete yet, so its result is not known.",
}


class Reached(Statement):
    """The value of a configuration that nothing is compared with."""

    who: Literal["alone", "best", "first", "highest", "lowest"]
    side: Side

    def __str__(self) -> str:
        return REACHED[self.who].format(label=self.side.label, value=_value_text(self.side))


REACHED = {
    "alone": "The one configuration, {label}, reaches {value}.",
    "best": "The best configuration of the search, {label}, reaches {value}.",
    "first": "What leads the search, {label}, reaches {value}.",
    "highest": "The highest value, {value}, is that of {label}.",
    "lowest": "The lowest value, {value}, is that of {label}.",
}


class NoBaseline(Statement):
    """The gain is not known: there is no baseline, or it is planned and not complete."""

    is_planned: bool

    @classmethod
    def of(cls, spec: StudySpec) -> "NoBaseline":
        return cls(spec.search.baseline is not None)

    def __str__(self) -> str:
        why = "The baseline is not complete" if self.is_planned else "The study has no baseline"
        return f"{why}, so what the search gained is not known."


class DataDiffer(Statement):
    """Trials differ in these keys of their data."""

    keys: Sequence[str]

    def __str__(self) -> str:
        return (
            f"The trials' data differ ({formatting.listed(self.keys)}), so their values do not say "
            "which configuration is better: compare those of the same data."
        )


def conclusions(results: Results) -> list[Statement]:
    """Return the search's gain over the baseline: which split chose, on which seeds, and what limits the gain.

    Where a reference is the result, how far that is ahead of both.
    """
    spec, (reference, best), final = results.spec, results.sides, results.final_side
    if spec.final_seeds is not None:
        if final is None:
            return [NothingYet("final")]
        return [*too_little(results, final), *_final(results, final), *told_alone(results, final)]
    if best is None:
        return [NothingYet("search" if results.record.trials else "any", reference)]
    if spec.varied_data:
        return [DataDiffer(spec.varied_data), Reached("lowest" if spec.mode == "min" else "highest", best)]
    beside, of_a_rule = list(reference_result(results)), list(_of_a_rule(results, best))
    stays = results.unbeaten and side_of(spec, results.unbeaten)
    if stays:
        front = front_result(results) if spec.objective.several else ()
        return [*too_little(results, stays), *beside, *front, *told_alone(results, stays)]
    if spec.objective.several:
        return [*too_little(results, best), *front_result(results), *beside, *of_a_rule]
    if reference:
        after = [*of_a_rule, *incumbent_stays(results), *told_alone(results, best)]
        return [*too_little(results, best), *_gain(results, reference, best), *beside, *after]
    if _is_alone(results):
        return [Reached("alone", best), *beside, *of_a_rule, *told_alone(results, best)]
    first = Reached("first" if results.above else "best", best)
    unknown = [*incumbent_stays(results), NoBaseline.of(spec)]
    return [first, *beside, *of_a_rule, *unknown, *told_alone(results, best)]


def _is_alone(results: Results) -> bool:
    """Return whether the search is of one configuration, which nothing is compared with."""
    return results.sides[0] is None and len(list(results.record.by_stage("search"))) == 1


class IncumbentStays(Statement):
    """The margin keeps what leads from being chosen.

    Attributes:
        lead: how far what leads is ahead of the incumbent.
        margin: in standard errors.
        samples: number of validation samples; None: not known.
        conflicting: how many of them conflict with the bias; None: not known.
        is_papers: whether the incumbent has a paper's values.
    """

    lead: Lead
    leading: Side
    incumbent: Side
    chosen: Side
    margin: float
    samples: int | None
    conflicting: int | None
    is_papers: bool

    def __str__(self) -> str:
        error, who = self.lead.error or 0.0, self.incumbent.words
        ahead, margin, one = (
            formatting.change(self.leading.spec.metric, number, signed=False)
            for number in (self.lead.gain, self.margin * error, error)
        )
        where = f" by a split of {self.samples} samples" if self.samples else ""
        where += f", {self.conflicting} of which conflict with the bias" if self.conflicting is not None else ""
        of = "" if self.lead.of_split else " over seeds, as that of the split's samples is not known"
        end = "the paper's values stay" if self.is_papers else f"{who} stays"
        if self.chosen.number != self.incumbent.number:
            end = f"{self.chosen.words} is beyond its own and is taken"
        return (
            f"{sentence_case(self.leading.words)} is {ahead} ahead of {who}{where}, within the margin of {margin} "
            f"({self.margin:g} times the standard error of {one}{of}): {end}. Of many that are tried, the luckiest "
            "leads."
        )


def incumbent_stays(results: Results) -> Iterator[IncumbentStays]:
    """Yield that the margin kept what leads from being chosen.

    Empty where it did not, and where what needs no search is the result.
    """
    held, spec = results.standing, results.spec
    if held is None or (lead := held.passed_over) is None or lead.error is None or results.unbeaten:
        return
    leading, incumbent, chosen = (side_of(spec, each) for each in (lead.candidate, held.incumbent, held.chosen))
    count, against = (samples(results.record, leading, "val", name) for name in ("accuracy", "conflicting_accuracy"))
    papers = [] if spec.function else papers_configurations(spec.space, spec.sections)
    is_papers = any(same(held.incumbent.trial.params, each) for each in papers)
    yield IncumbentStays(lead, leading, incumbent, chosen, held.margin, count, against, is_papers)


NEARLY_ALL = 0.99
"""Smallest accuracy at which a table's result is to be doubted: tables seldom say so much of a class."""


class TellsAlone(Statement):
    """An input of the user's table that tells the class alone."""

    told: str

    def __str__(self) -> str:
        return f"{sentence_case(self.told)}. A study without it: data.without."


class Doubted(Statement):
    """A result so near to 100% that it is to be doubted.

    Attributes:
        inputs: how many inputs tell the class alone; None: not known.
    """

    metric: str
    side: Side
    inputs: int | None

    def __str__(self) -> str:
        why = "That is no wonder, see above"
        if not self.inputs:
            why = f"{DOUBT}? {OTHERS if self.inputs is None else ALONE}"
        return f"{self.metric} of {self.side.label} is {formatting.measured(self.side, self.metric)}. {why}."


def told_alone(results: Results, side: Side) -> Iterator[TellsAlone | Doubted]:
    """Yield which inputs of the user's table tell the class alone, and what a result near to 100% may come from."""
    if results.spec.function or results.spec.base["data"]["name"] != "table":
        return
    datasets = results.record.sessions[-1].datasets or {} if results.record.sessions else {}
    telling = list(dict.fromkeys(one for of in datasets.values() for one in of.get("telling", ())))
    yield from map(TellsAlone, telling)
    for name in ("test/accuracy", "val/accuracy"):
        if (reached := side.spread(name)) and reached.mean >= NEARLY_ALL:
            is_known = telling or (datasets and all("telling" in of for of in datasets.values()))
            yield Doubted(name, side, len(telling) if is_known else None)
            return


DOUBT = "Is an input known only after the class is, or made from it"
OTHERS = "data.without leaves inputs out; data.group keeps rows of one person or place in one split"
ALONE = f"No column alone tells the class, several together may: {OTHERS}"
"""The question behind a result of nearly all, and what helps."""


class RulesPick(Statement):
    """The values of the best on fresh seeds, where it ran on them as a rule's pick alone."""

    side: Side

    def __str__(self) -> str:
        spec = self.side.spec
        tested = f", and {spec.test_metric} {formatting.measured(self.side, spec.test_metric)}"
        test = tested if self.side.spread(spec.test_metric) else ""
        return f"As a rule's pick it ran on {formatting.fresh(spec)}, too: {_value_text(self.side)}{test}."


def _of_a_rule(results: Results, best: Side) -> Iterator[RulesPick]:
    fresh = results.of_a_rule(best)
    if fresh is not None and fresh.spread(results.spec.metric):
        yield RulesPick(fresh)


class MarginSilent(Statement):
    """Why `search.margin` does not apply."""

    why: Literal["several metrics", "no incumbent", "no standard error"]
    metric: str

    def __str__(self) -> str:
        return f"search.margin does not apply: {MARGIN_SILENT[self.why].format(metric=self.metric)}."


MARGIN_SILENT = {
    "several metrics": "with several metrics there is no single value to be ahead in",
    "no incumbent": "no incumbent is complete and keeps the limits",
    "no standard error": "no standard error of {metric} is known",
}


class NotAllStarted(Statement):
    """How many of a search's planned trials were started, and what ended it, a key of `formatting.LIMITS`."""

    started: int
    planned: int
    ended_by: str | None

    def __str__(self) -> str:
        ended = f": {formatting.LIMITS[self.ended_by]}" if self.ended_by in formatting.LIMITS else ""
        return f"{self.started} of the {self.planned} planned trials of the search were started{ended}."


class NotEnded(Statement):
    """Trials that have not ended, by their state."""

    state: str
    trials: Sequence[int]

    def __str__(self) -> str:
        count = counted(len(self.trials), "trial")
        return f"{count} {self.state}: {formatting.listed(self.trials)}."


class Failed(Statement):
    """How many trials failed for a reason."""

    trials: int
    why: str

    def __str__(self) -> str:
        return f"{counted(self.trials, 'trial')} failed: {self.why}"


class NoNumber(Statement):
    """Complete trials without the study's metric at the epoch that counts."""

    spec: StudySpec
    trials: Sequence[int]

    def __str__(self) -> str:
        where = f"{epochs.words(self.spec.objective)} of {formatting.trials(self.trials)}"
        return f"{self.spec.metric} is not a number {where}; the results leave them out."


class ReadEachEpoch(Statement):
    """The test split was read in each epoch."""

    def __str__(self) -> str:
        return "The test split was read in each epoch of every trial (train.report_test). It chose nothing."


class NotRead(Statement):
    """Why the test split could not be read for a trial."""

    trial: int
    why: str

    def __str__(self) -> str:
        return f"The test split could not be read for trial {self.trial}: {self.why}"


class OneSeed(Statement):
    """A final training of one seed."""

    def __str__(self) -> str:
        return "There is only one seed, so the spread over seeds is not known."


def caveats(results: Results) -> Iterator[Statement]:
    """Yield what a reader might assume to be known, and is not."""
    spec, record = results.spec, results.record
    reference, best = results.sides
    final = results.final_side
    is_search = spec.final_seeds is None
    trials = list(record.trials.values())
    yield from results.ties
    is_one = _is_alone(results)
    if is_search and best and reference is None and not is_one:
        yield NoBaseline.of(spec)
    if is_search and spec.search.margin and (best or reference):
        if spec.objective.several:
            yield MarginSilent("several metrics", spec.metric)
        elif (held := results.standing) is None:
            yield MarginSilent("no incumbent", spec.metric)
        elif any(lead.error is None for lead in held.ahead):
            yield MarginSilent("no standard error", spec.metric)
    if is_search and best and reference and (unseen := why_nothing_gained(spec, reference, best)):
        yield unseen
    planned = record.limit(spec.trials)
    if is_search and record.tried < planned:
        ended_by = "every configuration of the space" if is_used_up(results) else record.enough
        yield NotAllStarted(record.tried, planned, ended_by)
    for state in ("running", "waiting", "interrupted"):
        if numbers := [trial.number for trial in trials if trial.state == state]:
            yield NotEnded(state, numbers)
    reasons = Counter(trial.why or "no reason given" for trial in trials if trial.state == "failed")
    yield from (Failed(count, reason) for reason, count in reasons.items())
    complete = (trial for trial in trials if trial.state == "complete")
    if without := [trial.number for trial in complete if epochs.value(spec.objective, trial, spec.metric) is None]:
        yield NoNumber(spec, without)
    if is_search and not is_one and (unknown := more_search(results, is_known=False)):
        yield unknown
    if is_search and best:
        yield from _drop(results, best)
    yield from _without_weight(record)
    if spec.base["train"]["report_test"]:
        yield ReadEachEpoch()
    yield from reference_notes(results)
    yield from (NotRead(trial.number, trial.untested) for trial in trials if trial.untested)
    if final and len(final.seeds(spec.metric)) < 2:
        yield OneSeed()


LITTLE_WEIGHT = 0.1
"""Sum of CCL-K's weights below which they are next to nothing: with form "released" a wide kernel's sum to about 1."""


class NarrowKernel(Statement):
    """Trials of CCL-K whose condition hardly enters the loss, see `study.losses.cclk.weight_measures`."""

    trials: Sequence[int]

    def __str__(self) -> str:
        return (
            f"The kernel is too narrow in {formatting.trials(self.trials)}: the weights of a sample's others sum to "
            f"less than {LITTLE_WEIGHT:g} (train/weight_sum), where a wide kernel's sum to about 1, so that the "
            "condition hardly enters the loss. A larger method.sigma2 makes it wider."
        )


def _without_weight(record: StudyRecord) -> Iterator[NarrowKernel]:
    sums = {trial.number: trial.last("train/weight_sum") for trial in record.trials.values()}
    if numbers := [number for number, value in sums.items() if value is not None and value < LITTLE_WEIGHT]:
        yield NarrowKernel(numbers)


TOO_SMALL = 0.05
"""Smallest standard error by a split's samples at which its figures say little: they may be 10 points off."""


class TooSmall(Statement):
    """A split that is too small to tell a metric.

    Attributes:
        interval: of the metric, with the split's error.
        conflicting: how many of the split's samples conflict with the bias; None: not known.
    """

    metric: str
    side: Side
    interval: tuple[float, float] | None
    conflicting: int | None

    def __str__(self) -> str:
        split = self.metric.split("/")[0]
        few = f" ({self.conflicting} conflict with the bias)" if self.conflicting is not None else ""
        within = formatting.between(self.metric, self.interval)
        return (
            f"The {'validation' if split == 'val' else split} split is too small to tell {self.metric} closely: with "
            f"the error of its own samples{few} {self.side.words} lies within {within} (95% interval), and more "
            "seeds do not take that error away."
        )


def too_little(results: Results, side: Side) -> Iterator[TooSmall | Guesses]:
    """Yield each split that is too small to tell the study's metric, whatever the seeds say; and if a side guesses."""
    for name in (results.spec.test_metric, results.spec.metric):
        found = with_error(results.record, side, name)
        if found and found.is_share and (found.split_error or 0.0) >= TOO_SMALL:
            count = samples(results.record, side, name.split("/")[0], "conflicting_accuracy")
            yield TooSmall(name, side, found.interval(), count)
    if guess := guesses(results.record, side):
        yield guess


class FinalReached(Statement):
    """The metrics of a final training on one split, with the split's error; empty: it has none.

    Attributes:
        is_first: whether this is the first split that is told.
    """

    side: Side
    values: Mapping[str, SeedStatistics]
    is_first: bool = True

    def __str__(self) -> str:
        if not self.values:
            return f"The final training has no {self.side.spec.metric}."
        head = "The final training reaches" if self.is_first else "On the test split it reaches"
        return f"{head} {', '.join(self._value(name, of.interval()) for name, of in self.values.items())}."

    def _value(self, name: str, ends: tuple[float, float] | None) -> str:
        whole = f" (95% interval {formatting.between(name, ends)}, the error of the split included)" if ends else ""
        return f"{_value_text(self.side, name)}{whole}"


def _final(results: Results, final: Side) -> Iterator[FinalReached]:
    metrics, is_first = results.spec.objective.metrics, True
    for names in (metrics, [f"test/{name.split('/')[1]}" for name in metrics]):
        values = {name: found for name in names if (found := with_error(results.record, final, name))}
        if values:
            yield FinalReached(final, values, is_first)
            is_first = False
    if is_first:
        yield FinalReached(final, {})


class Gain(Statement):
    """How the best of the search stands to the baseline in the study's metric.

    Attributes:
        won: the trial that is the best of the study.
        is_surpassed: whether what needs no search is above both.
        is_held_back: whether the margin keeps what leads from being chosen.
    """

    reference: Side
    best: Side
    difference: Difference
    won: int
    is_surpassed: bool
    is_held_back: bool

    @property
    def verdict(self) -> Literal["none", "unclear", "clear", "negative", "open"]:
        """Whether the best of the search is better than the baseline, and how surely.

        `none`: of the same value; `unclear`, `clear`: better, within or beyond the spread over seeds; `negative`: not
        better, and the baseline is the best of the study; `open`: none of these.
        """
        better = self.best.spec.better(self.difference.value, 0.0)
        if self.difference.value == 0.0:
            return "none"
        if better and self.difference.clear is not None and not self.difference.is_vague:
            return "clear" if self.difference.clear else "unclear"
        return "negative" if self.won == self.reference.number and not better else "open"

    def __str__(self) -> str:
        spec, best = self.best.spec, self.best.label
        name, rises, is_baseline = spec.metric, spec.mode == "max", self.won == self.reference.number
        after, before = (formatting.measured(side, name) for side in (self.best, self.reference))
        what = "what was chosen" if self.is_held_back and not is_baseline else "the best of the search"
        what = "what leads the search" if self.is_surpassed else what
        both = f"{name} is {before} for the baseline and {after} for"
        first = {
            "none": f"The search gained nothing: {both} {best}",
            "unclear": f"{name} did not {'rise' if rises else 'fall'} beyond the spread over {self.best.over}: "
            f"{before} (baseline), {after} ({best})",
            "clear": f"The search {'raised' if rises else 'lowered'} {name} from {before} (baseline) to {after} "
            f"({best})",
            "negative": f"The search found nothing better than the baseline: {both} {what} ({best})",
            "open": f"{both} {what} ({best})",
        }[self.verdict]
        closing = ""
        if not self.is_surpassed and (is_baseline or not spec.better(self.difference.value, 0.0)):
            won = "the baseline" if is_baseline else f"trial {self.won}"
            closing = f" The best of the study, which best.yaml holds, is {won}."
        return f"{first}, chosen by the validation split, {_seeds_text(name, self.reference, self.best)}.{closing}"


class Change(Statement):
    """The difference of the best of the search to the baseline in a metric."""

    metric: str
    reference: Side
    best: Side
    difference: Difference

    def __str__(self) -> str:
        name, best, reference = self.metric, self.best, self.reference
        if name == best.spec.metric:
            return f"Against the baseline {best.label} has {self._told()}."
        where = "" if best.seeds(name) == best.seeds(best.spec.metric) else f" ({_seeds_text(name, reference, best)})"
        return (
            f"On the test split, which chose nothing, {name} is {formatting.measured(best, name)} against "
            f"{formatting.measured(reference, name)} of the baseline{where}: {self._told()}."
        )

    def _told(self) -> str:
        """Return the difference, and whether it exceeds the spread over seeds."""
        name, best, difference = self.metric, self.best, self.difference
        if difference.interval == (0.0, 0.0):
            return "the same on all seeds"
        is_part = difference.paired and set(self.reference.seeds(name)) != set(best.seeds(name))
        where = " on the seeds that both have" if is_part else ""
        over = "other samples" if best.joined and name in best.joined.draws else best.over
        return formatting.judged(name, difference, best.spec.better(difference.value, 0.0), where, over)


def _gain(results: Results, reference: Side, best: Side) -> Iterator[Statement]:
    spec, held = results.spec, results.standing
    gain, on_test = (best.against(reference, name) for name in (spec.metric, spec.test_metric))
    assert gain is not None  # both sides are complete and have the metric
    is_held_back = bool(held and held.passed_over)
    yield Gain(reference, best, gain, results.ranked[0].trial.number, bool(results.above), is_held_back)
    if on_test is not None:
        yield Change(spec.test_metric, reference, best, on_test)
    elif gain.value == 0.0:
        yield from results.ties
    else:
        yield Change(spec.metric, reference, best, gain)


class Drop(Statement):
    """The value of the best in the search and its mean where it ran again: luck of a choice does not last."""

    side: Side
    searched: float
    fresh: float

    def __str__(self) -> str:
        name, label = self.side.spec.metric, self.side.label
        amount = formatting.change(name, self.fresh - self.searched)
        where = "all folds it" if self.side.over != "seeds" else "the fresh seeds the mean"
        before = formatting.value(name, self.searched)
        return f"In the search {label} had {name} {before}; on {where} differs by {amount}."


def _drop(results: Results, best: Side) -> Iterator[Drop]:
    candidate = next(each for each in results.ranked if each.trial.number == best.number)
    fresh = best.spread(results.spec.metric)
    if candidate.repeats and fresh:
        yield Drop(best, candidate.value, fresh.mean)


def _value_text(side: Side, name: str | None = None) -> str:
    """Return a metric of a side, by default the study's, and the seeds behind it."""
    name = name or side.spec.metric
    return f"{name} {formatting.measured(side, name)} on {formatting.ran_on(side, name)}"


def _seeds_text(name: str, reference: Side, chosen: Side) -> str:
    """Return the seeds of both sides, once where they are the same."""
    before, after = reference.seeds(name), chosen.seeds(name)
    if before == after:
        return f"both on {formatting.ran_on(chosen, name)}"
    return f"the baseline on {formatting.ran_on(reference, name)}, {chosen.label} on {formatting.ran_on(chosen, name)}"
