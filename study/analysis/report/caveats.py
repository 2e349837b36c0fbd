"""A study's conclusions and their caveats, as sentences computed from its trials; no more than the numbers support."""

from collections import Counter
from collections.abc import Iterator
from functools import partial

from study.analysis.report.front_section import front_result
from study.analysis.report.reference_sentences import reference_notes, reference_result
from study.analysis.statistics import formatting
from study.analysis.statistics.debiasing_metrics import samples, with_error
from study.analysis.statistics.next_step import is_used_up
from study.home.record import StudyRecord
from study.ranking import Results, epochs
from study.ranking.difference import (
    Difference,
    Side,
    side_of,
)
from study.ranking.remaining_gain import remaining_gain, sentence
from study.spec import StudySpec
from study.spec.load import papers_configurations
from study.spec.schema import same

# Whether a search was enough, in words.


def more_search(results: Results, is_known: bool) -> str | None:
    """Return what more search of this kind would gain at most, or why that is not known; None where it is the other,
    and before a trial of the search is complete."""
    if results.spec.final_seeds is not None or results.spec.varied_data:
        return None
    if not any(trial.state == "complete" for trial in results.record.by_stage("search")):
        return None
    remaining = remaining_gain(results)
    if (remaining.gain is not None and not remaining.is_any) != is_known:
        return None
    return sentence(results.spec, remaining, partial(formatting.change, results.spec.metric, signed=False))


# Why a search gained nothing over its baseline, as far as the validation split can say it.

ALIGNED, CONFLICTING = "val/aligned_accuracy", "val/conflicting_accuracy"
ERROR = f"{CONFLICTING}_standard_error"

BLIND = 0.1
"""Standard error of the accuracy on conflicting samples from which on gains of 20 points may not be seen."""


def why_nothing_gained(spec: StudySpec, reference: Side, best: Side) -> str | None:
    """A sentence; None if the search gained something, or nothing is known of samples that conflict with the bias."""
    gain = best.against(reference, spec.metric)
    if gain is None or (gain.clear and spec.better(gain.value, 0.0)):
        return None
    aligned, conflicting, error = (reference.spread(name) for name in (ALIGNED, CONFLICTING, ERROR))
    if aligned is None:
        return None
    if conflicting is None:
        return "No validation sample conflicts with the bias: what a method gains on such samples cannot be seen."
    if error is not None and error.mean >= BLIND:
        return (
            f"Few validation samples conflict with the bias: the standard error of {CONFLICTING} is "
            f"{100 * error.mean:.0f} points, and a gain of less than twice that may not be seen."
        )
    return None


LITTLE_WEIGHT = 0.1
"""Below it the weights of CCL-K are next to nothing: with form "released" a wide kernel's sum to about 1."""


def conclusions(results: Results) -> list[str]:
    """One or two sentences: the search's gain over the baseline, which split chose, on which seeds."""
    reference, best = results.sides
    final = results.final_side
    if results.spec.final_seeds is not None:
        if final is None:
            return ["No seed of the final training is complete yet."]
        return [*too_small(results, final), *_final(results, final), *told_alone(results, final)]
    if best and results.spec.varied_data:
        end = "lowest" if results.spec.mode == "min" else "highest"
        return [
            f"The trials' data differ ({formatting.listed(results.spec.varied_data)}), so their values do not say "
            "which configuration is better: compare those of the same data.",
            f"The {end} value, {_value_text(results.spec.metric, best)}, is that of {best.label}.",
        ]
    if best and results.spec.objective.several:
        after = [*reference_result(results), *_of_a_rule(results, best)]
        return [*too_small(results, best), *front_result(results), *after]
    if best and reference:
        result = [*_gain(results, reference, best), *reference_result(results)]
        if results.unbeaten:
            result = [*reference_result(results), *_gain(results, reference, best)]
        after = [*_of_a_rule(results, best), *incumbent_stays(results), *told_alone(results, best)]
        return [*too_small(results, best), *result, *after]
    if best and len(list(results.record.by_stage("search"))) == 1:
        reached = f"The one configuration, {best.label}, reaches {_value_text(results.spec.metric, best)}."
        after = [*_of_a_rule(results, best), *told_alone(results, best)]
        return [reached, *reference_result(results), *after]
    if best:
        leading = "What leads the search" if results.above else "The best configuration of the search"
        return [
            f"{leading}, {best.label}, reaches {_value_text(results.spec.metric, best)}.",
            *reference_result(results),
            *_of_a_rule(results, best),
            *incumbent_stays(results),
            f"{_no_baseline(results.spec)}, so what the search gained is not known.",
            *told_alone(results, best),
        ]
    baseline_sentence = f"The baseline reaches {_value_text(results.spec.metric, reference)}. " if reference else ""
    if not results.record.trials:
        return ["No trial has been started yet."]
    return [f"{baseline_sentence}No trial of the search is complete yet, so its result is not known."]


def incumbent_stays(results: Results) -> Iterator[str]:
    """Yield that the margin kept what leads from being chosen, and why; nothing where it did not, or where what needs
    no search is the result."""
    held = results.standing
    if held is None or (lead := held.passed_over) is None or lead.error is None or results.unbeaten:
        return
    ahead, margin, error = (
        formatting.change(results.spec.metric, number, signed=False)
        for number in (lead.gain, held.margin * lead.error, lead.error)
    )
    leading, incumbent, chosen = (side_of(results.spec, each) for each in (lead.candidate, held.incumbent, held.chosen))
    count, against = (samples(results.record, leading, "val", name) for name in ("accuracy", "conflicting_accuracy"))
    where = f" by a split of {count} samples" if count else ""
    where += f", {against} of which conflict with the bias" if against is not None else ""
    of = "" if lead.of_split else " over seeds, as that of the split's samples is not known"
    told = (
        f"{leading.words} is {ahead} ahead of {incumbent.words}{where}, within the margin of {margin} "
        f"({held.margin:g} times the standard error of {error}{of})"
    )
    papers = [] if results.spec.function else papers_configurations(results.spec.space, results.spec.sections)
    whose = "the paper's values" if any(same(held.incumbent.trial.params, each) for each in papers) else incumbent.words
    end = f"{whose} stay{'s' * (whose == incumbent.words)}"
    if chosen.number != incumbent.number:
        end = f"{chosen.words} is beyond its own and is taken"
    yield f"{told[0].upper()}{told[1:]}: {end}. Of many that are tried, the luckiest leads."


NEARLY_ALL = 0.99
"""Accuracy from which on a table's result is to be doubted: tables seldom say so much of a class."""


def told_alone(results: Results, side: Side) -> Iterator[str]:
    """Yield which inputs of the user's table tell the class alone, and what a result of nearly all may come from."""
    if results.spec.function or results.spec.base["data"]["name"] != "table":
        return
    datasets = results.record.sessions[-1].get("datasets", {}) if results.record.sessions else {}
    telling = list(dict.fromkeys(one for of in datasets.values() for one in of.get("telling", ())))
    yield from (f"{one[0].upper()}{one[1:]}. A study without it: data.without." for one in telling)
    for name in ("test/accuracy", "val/accuracy"):
        reached = side.spread(name)
        if reached and reached.mean >= NEARLY_ALL:
            is_known = bool(datasets) and all("telling" in of for of in datasets.values())
            why = "That is no wonder, see above" if telling else f"{DOUBT}? {ALONE if is_known else OTHERS}"
            yield f"{name} of {side.label} is {formatting.mean(name, reached)}. {why}."
            return


DOUBT = "Is an input known only after the class is, or made from it"
OTHERS = "data.without leaves inputs out; data.group keeps rows of one person or place in one split"
ALONE = f"No column alone tells the class, several together may: {OTHERS}"
"""The question behind a result of nearly all, and what helps."""


def _of_a_rule(results: Results, best: Side) -> Iterator[str]:
    """Yield the values of the best on fresh seeds that it ran on as a rule's pick alone."""
    fresh = results.of_a_rule(best)
    if fresh is not None and fresh.spread(results.spec.metric):
        tested = fresh.spread(results.spec.test_metric)
        test = f", and {results.spec.test_metric} {formatting.mean(results.spec.test_metric, tested)}" if tested else ""
        where, value = formatting.fresh(results.spec), _value_text(results.spec.metric, fresh)
        yield f"As a rule's pick it ran on {where}, too: {value}{test}."


def caveats(results: Results) -> Iterator[str]:
    """Yield what a reader might assume to be known, and is not."""
    spec, record = results.spec, results.record
    reference, best = results.sides
    final = results.final_side
    is_search = spec.final_seeds is None
    trials = list(record.trials.values())
    yield from map(str, results.ties)
    is_one = len(list(record.by_stage("search"))) == 1 and reference is None
    if is_search and best and reference is None and not is_one:
        yield f"{_no_baseline(spec)}, so what the search gained is not known."
    if is_search and spec.search.margin and (best or reference):
        if spec.objective.several:
            yield "search.margin has no say: with several metrics there is no single value to be ahead in."
        elif (held := results.standing) is None:
            yield "search.margin has no say: no incumbent is complete and keeps the limits."
        elif any(lead.error is None for lead in held.ahead):
            yield f"search.margin has no say: no standard error of {spec.metric} is known."
    if is_search and best and reference and (reason := why_nothing_gained(spec, reference, best)):
        yield reason
    planned = record.limit(spec.trials)
    if is_search and record.tried < planned:
        why = "every configuration of the space" if is_used_up(results) else record.enough
        ended = f": {formatting.LIMITS[why]}" if why in formatting.LIMITS else ""
        yield f"{record.tried} of the {planned} planned trials of the search were started{ended}."
    for state in ("running", "waiting", "interrupted"):
        if numbers := [trial.number for trial in trials if trial.state == state]:
            yield f"{formatting.count(len(numbers), 'trial')} {state}: {formatting.listed(numbers)}."
    reasons = Counter(trial.why or "no reason given" for trial in trials if trial.state == "failed")
    for reason, count in reasons.items():
        yield f"{formatting.count(count, 'trial')} failed: {reason}"
    complete = (trial for trial in trials if trial.state == "complete")
    without_metric = [trial.number for trial in complete if epochs.value(spec.objective, trial, spec.metric) is None]
    if without_metric:
        left_out = formatting.trials(without_metric)
        yield f"{spec.metric} is not a number {epochs.words(spec.objective)} of {left_out}; the results leave them out."
    if is_search and not is_one and (reason := more_search(results, is_known=False)):
        yield reason
    if is_search and best:
        yield from _drop(results, best)
    yield from _without_weight(record)
    if spec.base["train"]["report_test"]:
        yield "The test split was read in each epoch of every trial (train.report_test). It chose nothing."
    yield from reference_notes(results)
    for trial in trials:
        if trial.untested:
            yield f"The test split could not be read for trial {trial.number}: {trial.untested}"
    if final and len(final.seeds(spec.metric)) < 2:
        yield "There is only one seed, so the spread over seeds is not known."


def _no_baseline(spec: StudySpec) -> str:
    return "The study has no baseline" if spec.search.baseline is None else "The baseline is not complete"


def _without_weight(record: StudyRecord) -> Iterator[str]:
    """Trials of CCL-K whose condition hardly enters the loss, see `study.losses.cclk.weight_measures`."""
    sums = {trial.number: trial.last("train/weight_sum") for trial in record.trials.values()}
    if numbers := [number for number, value in sums.items() if value is not None and value < LITTLE_WEIGHT]:
        yield (
            f"The kernel is too narrow in {formatting.trials(numbers)}: the weights of a sample's others sum to less "
            f"than {LITTLE_WEIGHT:g} (train/weight_sum), where a wide kernel's sum to about 1, so that the condition "
            "hardly enters the loss. A larger method.sigma2 makes it wider."
        )


TOO_SMALL = 0.05
"""Standard error by a split's samples from which on its figures say little: they may be 10 points off."""


def too_small(results: Results, side: Side) -> Iterator[str]:
    """A sentence on each split that is too small to tell the study's metric, whatever the seeds say."""
    for name in (results.spec.test_metric, results.spec.metric):
        found = with_error(results.record, side, name)
        if found is None or not found.is_share or (found.split_error or 0.0) < TOO_SMALL:
            continue
        split = name.split("/")[0]
        count = samples(results.record, side, split, "conflicting_accuracy")
        few = f" ({count} conflict with the bias)" if count is not None else ""
        yield (
            f"The {'validation' if split == 'val' else split} split is too small to tell {name} closely: with the "
            f"error of its own samples{few} {side.label} has {formatting.between(name, found.interval())} "
            "(95% interval), and more seeds do not take that error away."
        )


def _final(results: Results, final: Side) -> list[str]:
    metrics = results.spec.objective.metrics
    of_splits = (metrics, [f"test/{name.split('/')[1]}" for name in metrics])
    measured = ([name for name in names if final.spread(name)] for names in of_splits)
    heads = ("The final training reaches", "On the test split it reaches")
    sentences = [
        f"{head} {', '.join(_with_interval(results.record, final, name) for name in names)}."
        for head, names in zip(heads, filter(None, measured), strict=False)
    ]
    return sentences or [f"The final training has no {results.spec.metric}."]


def _with_interval(record: StudyRecord, final: Side, name: str) -> str:
    found = with_error(record, final, name)
    ends = found.interval() if found else None
    whole = f" (95% interval {formatting.between(name, ends)}, the error of the split included)" if ends else ""
    return f"{_value_text(name, final)}{whole}"


def _gain(results: Results, reference: Side, best: Side) -> list[str]:
    name, test, closing = results.spec.metric, results.spec.test_metric, ""
    gain = best.against(reference, name)
    assert gain is not None  # both sides are complete and have the metric
    after, before = (formatting.mean(name, side.spread(name)) for side in (best, reference))
    is_baseline, held = results.ranked[0].trial.stage == "baseline", results.standing
    of_search = "what was chosen" if held and held.passed_over and not is_baseline else "the best of the search"
    of_search = "what leads the search" if (surpassed := results.above) else of_search
    if gain.value == 0.0:
        first = f"The search gained nothing: {name} is {before} for the baseline and {after} for {best.label}"
    elif results.spec.better(gain.value, 0.0) and gain.clear is False and not gain.is_vague:
        verb = "rise" if results.spec.mode == "max" else "fall"
        first = f"{name} did not {verb} beyond the spread over {best.over}: {before} (baseline), {after} ({best.label})"
    elif results.spec.better(gain.value, 0.0) and gain.clear:
        verb = "raised" if results.spec.mode == "max" else "lowered"
        first = f"The search {verb} {name} from {before} (baseline) to {after} ({best.label})"
    elif is_baseline and not results.spec.better(gain.value, 0.0):
        first = f"The search found nothing better than the baseline: {name} is {before} for the baseline"
        first += f" and {after} for {of_search} ({best.label})"
    else:
        first = f"{name} is {before} for the baseline and {after} for {of_search} ({best.label})"
    if surpassed:
        pass
    elif is_baseline:
        closing = " The best of the study, which best.yaml holds, is the baseline."
    elif not results.spec.better(gain.value, 0.0):
        closing = f" The best of the study, which best.yaml holds, is trial {results.ranked[0].trial.number}."
    sentence = f"{first}, chosen by the validation split, {_seeds_text(name, reference, best)}.{closing}"
    test_gain = best.against(reference, test)
    if test_gain is None:
        if gain.value == 0.0:
            return [sentence, *map(str, results.ties)]
        return [
            sentence,
            f"Against the baseline {best.label} has {_change_text(results.spec, name, gain, reference, best)}.",
        ]
    after, before = (formatting.mean(test, side.spread(test)) for side in (best, reference))
    on_which = "" if best.seeds(test) == best.seeds(name) else f" ({_seeds_text(test, reference, best)})"
    second = f"On the test split, which chose nothing, {test} is {after} against {before} of the baseline{on_which}"
    return [sentence, f"{second}: {_change_text(results.spec, test, test_gain, reference, best)}."]


def _drop(results: Results, best: Side) -> Iterator[str]:
    """Yield what the search had promised of the best, where it ran again: the luck of a choice among many does not
    last."""
    candidate = next(each for each in results.ranked if each.trial.number == best.number)
    fresh = best.spread(results.spec.metric)
    if candidate.repeats and fresh:
        before = formatting.value(results.spec.metric, candidate.value)
        amount = formatting.change(results.spec.metric, fresh.mean - candidate.value)
        where = "all folds it" if best.over != "seeds" else "the fresh seeds the mean"
        yield f"In the search {best.label} had {results.spec.metric} {before}; on {where} differs by {amount}."


def _change_text(spec: StudySpec, name: str, difference: Difference, reference: Side, best: Side) -> str:
    """A difference, and whether it exceeds the spread over seeds."""
    if difference.interval == (0.0, 0.0):
        return "the same on all seeds"
    is_part = difference.paired and set(reference.seeds(name)) != set(best.seeds(name))
    where = " on the seeds that both have" if is_part else ""
    over = "other samples" if best.joined and name in best.joined.draws else best.over
    return formatting.judged(name, difference, spec.better(difference.value, 0.0), where, over)


def _value_text(name: str, side: Side) -> str:
    return f"{name} {formatting.mean(name, side.spread(name))} on {formatting.ran_on(side, name)}"


def _seeds_text(name: str, reference: Side, chosen: Side) -> str:
    """The seeds of both, once where they are the same."""
    before, after = reference.seeds(name), chosen.seeds(name)
    if before == after:
        return f"both on {formatting.ran_on(chosen, name)}"
    return f"the baseline on {formatting.ran_on(reference, name)}, {chosen.label} on {formatting.ran_on(chosen, name)}"
