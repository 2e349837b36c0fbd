"""A study's conclusions, as statements computed from its trials; no more than the numbers support."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from study.analysis.report.pareto_front_section import front_statements
from study.analysis.report.reference_sentences import reference_statements
from study.analysis.statistics import formatting
from study.analysis.statistics.debiasing_metrics import (
    NoBetterThanChance,
    class_below_chance_statements,
    find_no_better_than_chance,
    n_samples_of_accuracy,
    statistics_with_sampling_error,
)
from study.data.table_findings import shortcut_sentences
from study.metrics import add_accuracies_of_log_losses
from study.metrics.metric_format import format_metric
from study.ranking import Results, SeedStatistics
from study.ranking.arms import Arm, arm_of_candidate
from study.ranking.difference import Difference
from study.ranking.final_model import ensemble_statistics, final_model_arm, final_model_trials
from study.ranking.incumbents import CandidateLead
from study.ranking.json_documents import Statement
from study.spec import StudySpec
from study.spec.configuration import are_same_configuration
from study.spec.paper_values import paper_configurations
from study.text import sentence_case


class NoResultYet(Statement):
    """No trial that could be a result is complete; the baseline's value stands before, if it is known."""

    stage: Literal["any", "final", "search", "over"]
    baseline: Arm | None = None

    def __str__(self) -> str:
        before = f"The baseline reaches {_value_with_seeds_text(self.baseline)}. " if self.baseline else ""
        return before + NO_RESULT_YET_TEXTS[self.stage]


NO_RESULT_YET_TEXTS = {
    "any": "No trial has been started yet.",
    "final": "No seed of the final training is complete yet.",
    "search": "No trial of the search is complete yet, so its result is not known.",
    "over": "No trial of the search is complete, so that it has no result.",
}


class ValueWithoutComparison(Statement):
    """The value of a configuration that nothing is compared with."""

    who: Literal["alone", "best", "first", "highest", "lowest"]
    arm: Arm

    def __str__(self) -> str:
        return VALUE_WITHOUT_COMPARISON_TEXTS[self.who].format(
            label=self.arm.label, value=_value_with_seeds_text(self.arm)
        )


VALUE_WITHOUT_COMPARISON_TEXTS = {
    "alone": "The one configuration, {label}, reaches {value}.",
    "best": "The best configuration of the search, {label}, reaches {value}.",
    "first": "What leads the search, {label}, reaches {value}.",
    "highest": "The highest value, {value}, is that of {label}.",
    "lowest": "The lowest value, {value}, is that of {label}.",
}


class BaselineMissing(Statement):
    """The gain is not known: there is no baseline, or it is planned and not complete."""

    spec: StudySpec

    def __str__(self) -> str:
        why = "The baseline is not complete" if self.spec.search.baseline is not None else "The study has no baseline"
        return f"{why}, so what the search gained is not known."


class TrialDataDiffer(Statement):
    """Trials differ in these keys of their data."""

    keys: Sequence[str]

    def __str__(self) -> str:
        return (
            f"The trials' data differ ({formatting.join_with_and(self.keys)}), so their values do not say "
            "which configuration is better: compare those of the same data."
        )


def conclusion_statements(results: Results) -> list[Statement]:
    """Return the search's gain over the baseline: which split chose, on which seeds, and what limits the gain.

    Where a reference is the result, how far that is ahead of both.
    """
    spec, (baseline, best), final = results.spec, results.baseline_and_best_arms, results.final_training_arm
    if spec.final_seeds is not None:
        if final is None:
            return [NoResultYet("final")]
        return [
            *chance_and_small_split_statements(results, final),
            *_final_training_statements(results, final),
            *_ensemble_statements(results),
            *class_below_chance_statements(results.record, final_model_arm(results) or final),
            *suspicious_result_statements(results, final),
        ]
    if best is None:
        stage: Literal["any", "search", "over"] = "over" if results.record.state == "complete" else "search"
        has_begun = any(trial.has_started for trial in results.record.trials.values())
        return [NoResultYet(stage if has_begun else "any", baseline)]
    if spec.varied_data_keys:
        return [
            TrialDataDiffer(spec.varied_data_keys),
            ValueWithoutComparison("lowest" if spec.mode == "min" else "highest", best),
        ]
    beside, of_a_rule = list(reference_statements(results)), list(_rule_pick_statements(results, best))
    reference = results.reference_as_result and arm_of_candidate(spec, results.reference_as_result)
    if reference:
        front = front_statements(results) if spec.objective.has_several_metrics else ()
        return [
            *chance_and_small_split_statements(results, reference),
            *beside,
            *front,
            *class_below_chance_statements(results.record, reference),
            *suspicious_result_statements(results, reference),
        ]
    little = list(chance_and_small_split_statements(results, best))
    is_guess = any(isinstance(one, NoBetterThanChance) for one in little)
    if spec.objective.has_several_metrics:
        return [*little, *front_statements(results, is_guess), *beside, *of_a_rule]
    if baseline:
        after = [*of_a_rule, *incumbent_statements(results), *suspicious_result_statements(results, best)]
        gained = list(_gain_statements(results, baseline, best, is_guess))
        if not is_guess:
            gained += _debiasing_not_needed_statements(results, baseline, best)
            gained += class_below_chance_statements(results.record, arm_of_candidate(spec, results.ranked_all[0]))
        return [*little, *gained, *beside, *after]
    if has_single_configuration(results):
        return [
            ValueWithoutComparison("alone", best),
            *beside,
            *of_a_rule,
            *suspicious_result_statements(results, best),
        ]
    first = ValueWithoutComparison("first" if results.references_above_best else "best", best)
    unknown = [*incumbent_statements(results), BaselineMissing(spec)]
    return [first, *beside, *of_a_rule, *unknown, *suspicious_result_statements(results, best)]


def has_single_configuration(results: Results) -> bool:
    """Return whether the search is of one configuration, which nothing is compared with."""
    return results.baseline_and_best_arms[0] is None and len(list(results.record.trials_of_stages("search"))) == 1


class IncumbentKeptByMargin(Statement):
    """The margin keeps what leads from being chosen.

    Attributes:
        lead: how far what leads is ahead of the incumbent.
        margin: in standard errors.
        samples: number of validation samples; None: not known.
        conflicting: how many of them conflict with the bias; None: not known.
        is_papers: whether the incumbent has a paper's values.
    """

    lead: CandidateLead
    leading: Arm
    incumbent: Arm
    chosen: Arm
    margin: float
    samples: int | None
    conflicting: int | None
    is_papers: bool

    def __str__(self) -> str:
        error, who = self.lead.standard_error or 0.0, self.incumbent.label_in_sentence
        name = self.leading.spec.metric
        ahead, margin, one = (
            formatting.format_difference(name, number, signed=False)
            for number in (self.lead.gain, self.margin * error, error)
        )
        where = f" by a split of {self.samples} samples" if self.samples else ""
        where += f", {self.conflicting} of which conflict with the bias" if self.conflicting is not None else ""
        of = "" if self.lead.includes_split_error else " over seeds, as that of the split's samples is not known"
        end = "the paper's values stay" if self.is_papers else f"{who} stays"
        if self.chosen.trial_number != self.incumbent.trial_number:
            end = f"{self.chosen.label_in_sentence} is beyond its own and is taken"
        return (
            f"{sentence_case(self.leading.label_in_sentence)} is {ahead} ahead of {who} in {name}{where}, within the "
            f"margin of {margin} ({self.margin:g} times the standard error of {one}{of}): {end}. Of many that are "
            "tried, the luckiest leads."
        )


def incumbent_statements(results: Results) -> Iterator[IncumbentKeptByMargin]:
    """Yield that the margin kept what leads from being chosen.

    Empty where it did not, and where what needs no search is the result.
    """
    held, spec = results.incumbent_standing, results.spec
    lead = held.held_back_lead if held else None
    if held is None or lead is None or lead.standard_error is None or results.reference_as_result:
        return
    leading, incumbent, chosen = (
        arm_of_candidate(spec, each) for each in (lead.candidate, held.incumbent, held.chosen)
    )
    count, against = (
        n_samples_of_accuracy(results.record, leading, "val", name) for name in ("accuracy", "conflicting_accuracy")
    )
    papers = [] if spec.training_function else paper_configurations(spec.space, spec.sections)
    is_papers = any(are_same_configuration(held.incumbent.trial.params, each) for each in papers)
    yield IncumbentKeptByMargin(lead, leading, incumbent, chosen, held.margin, count, against, is_papers)


SUSPICIOUS_ACCURACY = 0.99
"""Smallest accuracy at which a table's result is to be doubted: tables seldom say so much of a class."""


class InputRevealsClass(Statement):
    """An input of the user's table that tells the class alone."""

    told: str

    def __str__(self) -> str:
        return f"{sentence_case(self.told)}. A study without it: data.without."


class LikelyShortcut(Statement):
    """An input of the user's table that goes with the class far more than any other, where no bias is named.

    Attributes:
        share: of the training rows in which it does.
    """

    column: str
    share: float

    def __str__(self) -> str:
        return shortcut_sentences(self.column, self.share)


def likely_shortcut_statements(results: Results) -> Iterator[LikelyShortcut]:
    """Yield the inputs that the best, or the final model, may rest on and that may not go with the class in use."""
    if results.record.sessions and (results.final_training_arm or any(results.baseline_and_best_arms)):
        for dataset in (results.record.sessions[-1].datasets or {}).values():
            if found := dataset.get("shortcut"):
                yield LikelyShortcut(found["column"], found["share"])


class SuspiciousResult(Statement):
    """A result so near to 100% that it is to be doubted.

    Attributes:
        inputs: how many inputs tell the class alone; None: not known.
    """

    metric: str
    arm: Arm
    inputs: int | None

    def __str__(self) -> str:
        why = "That is no wonder, see above"
        if not self.inputs:
            why = f"{LEAKAGE_QUESTION}? {LEAKAGE_REMEDY if self.inputs is None else NO_SINGLE_COLUMN_TEXT}"
        return f"{self.metric} of {self.arm.label} is {formatting.format_arm_mean(self.arm, self.metric)}. {why}."


def suspicious_result_statements(results: Results, arm: Arm) -> Iterator[InputRevealsClass | SuspiciousResult]:
    """Yield which inputs of the user's table tell the class alone, and what a result near to 100% may come from."""
    if results.spec.training_function or results.spec.base["data"]["name"] != "table":
        return
    datasets = results.record.sessions[-1].datasets or {} if results.record.sessions else {}
    telling = list(dict.fromkeys(one for of in datasets.values() for one in of.get("telling", ())))
    yield from map(InputRevealsClass, telling)
    for name in ("test/accuracy", "val/accuracy"):
        if (reached := arm.metric_statistics(name)) and reached.mean >= SUSPICIOUS_ACCURACY:
            is_known = telling or (datasets and all("telling" in of for of in datasets.values()))
            yield SuspiciousResult(name, arm, len(telling) if is_known else None)
            return


LEAKAGE_QUESTION = "Is an input known only after the class is, or made from it"
LEAKAGE_REMEDY = "data.without leaves inputs out; data.group keeps rows of one person or place in one split"
NO_SINGLE_COLUMN_TEXT = f"No column alone tells the class, several together may: {LEAKAGE_REMEDY}"
"""The question behind a result of nearly all, and what helps."""


class RulePickValues(Statement):
    """The values of the best on fresh seeds, where it ran on them as a rule's pick alone."""

    arm: Arm

    def __str__(self) -> str:
        spec = self.arm.spec
        tested = f", and {spec.test_metric} {formatting.format_arm_mean(self.arm, spec.test_metric)}"
        test = tested if self.arm.metric_statistics(spec.test_metric) else ""
        value = _value_with_seeds_text(self.arm)
        return f"As a rule's pick it ran on {formatting.fresh_seeds_text(spec)}, too: {value}{test}."


def _rule_pick_statements(results: Results, best: Arm) -> Iterator[RulePickValues]:
    fresh = results.rule_pick_arm(best)
    if fresh is not None and fresh.metric_statistics(results.spec.metric):
        yield RulePickValues(fresh)


MIN_SMALL_SPLIT_ERROR = 0.05
"""Smallest standard error by a split's samples at which its figures say little: they may be 10 points off."""


class SplitTooSmall(Statement):
    """A split that is too small to measure a metric.

    Attributes:
        interval: of the metric, with the split's error.
        conflicting: how many of the split's samples conflict with the bias; None: not known.
    """

    metric: str
    arm: Arm
    interval: tuple[float, float] | None
    conflicting: int | None

    def __str__(self) -> str:
        split = self.metric.split("/")[0]
        few = f" ({self.conflicting} conflict with the bias)" if self.conflicting is not None else ""
        within = formatting.format_value_interval(self.metric, self.interval)
        return (
            f"The {'validation' if split == 'val' else split} split is too small to measure {self.metric} closely: "
            f"with the error of its own samples{few} {self.arm.label_in_sentence} lies within {within} (95% interval), "
            "and more seeds do not take that error away."
        )


def chance_and_small_split_statements(results: Results, arm: Arm) -> Iterator[SplitTooSmall | NoBetterThanChance]:
    """Yield if an arm guesses, and each split that is too small for the study's metric, whatever the seeds say."""
    if guess := find_no_better_than_chance(results.record, arm):
        yield guess
    for name in (results.spec.test_metric, results.spec.metric):
        found = statistics_with_sampling_error(results.record, arm, name)
        if found and found.is_proportion and (found.split_error or 0.0) >= MIN_SMALL_SPLIT_ERROR:
            count = n_samples_of_accuracy(results.record, arm, name.split("/")[0], "conflicting_accuracy")
            yield SplitTooSmall(name, arm, found.confidence_interval(), count)


class FinalTrainingValues(Statement):
    """The metrics of a final training on one split, with the split's error; empty: it has none.

    Attributes:
        is_first: whether this is the first split that is told.
    """

    arm: Arm
    values: Mapping[str, SeedStatistics]
    is_first: bool = True

    def __str__(self) -> str:
        if not self.values:
            return f"The final training has no {self.arm.spec.metric}."
        head = "The final training reaches" if self.is_first else "On the test split it reaches"
        reached, said = [], ""
        for name, of in self.values.items():
            same = formatting.arm_folds_and_seeds_text(self.arm, name)
            where = "" if said == same or self.arm.is_fitted_without_seed else f" on {same}"
            ends, included = of.confidence_interval(), "" if said else ", the error of the split included"
            interval = f" (95% interval {formatting.format_value_interval(name, ends)}{included})" if ends else ""
            reached.append(f"{name} {formatting.format_arm_mean(self.arm, name)}{where}{interval}")
            said = same
        return f"{head} {', '.join(reached)}."


class EnsembleValues(Statement):
    """The metrics of the mean of a final training's probabilities, with the split's error; and whether it is its model.

    Attributes:
        count: number of its networks.
        values: empty: no split was left to measure it, and it is the model.
        seed: of the network that is the model; None: the ensemble is.
    """

    count: int
    values: Mapping[str, SeedStatistics]
    seed: int | None = None

    def __str__(self) -> str:
        if not self.values:
            return (
                f"The model is the ensemble of these {self.count} networks, the mean of their probabilities. No sample "
                "is left to measure it by; its log loss is at most the mean of theirs."
            )
        told = []
        for name, of in self.values.items():
            ends = of.confidence_interval()
            interval = f" (95% interval {formatting.format_value_interval(name, ends)})" if ends else ""
            told.append(f"{name} {format_metric(name, of.mean)}{interval}")
        whose = "is the model"
        if self.seed is not None:
            whose = f"is not the model: validation does not show that it is better than seed {self.seed}"
        return (
            f"The ensemble of these {self.count} networks, the mean of their probabilities, reaches {', '.join(told)}. "
            f"It {whose}."
        )


def _ensemble_statements(results: Results) -> Iterator[EnsembleValues]:
    own, known = add_accuracies_of_log_losses(results.spec.objective.metrics), ensemble_statistics(results.record)
    names = [*own, *(f"test/{name.split('/')[1]}" for name in own)]
    values, model = {name: known[name] for name in names if name in known}, final_model_trials(results)
    if (measured := results.record.ensemble) and (values or not known):
        seed = model[0].seed if len(model) == 1 else None
        yield EnsembleValues(len(measured.trials), values, seed)


def _final_training_statements(results: Results, final: Arm) -> Iterator[FinalTrainingValues]:
    metrics, is_first = add_accuracies_of_log_losses(results.spec.objective.metrics), True
    for names in (metrics, [f"test/{name.split('/')[1]}" for name in metrics]):
        values = {
            name: found for name in names if (found := statistics_with_sampling_error(results.record, final, name))
        }
        if values:
            yield FinalTrainingValues(final, values, is_first)
            is_first = False
    if is_first:
        yield FinalTrainingValues(final, {})


class GainOverBaseline(Statement):
    """How the best of the search stands to the baseline in the study's metric.

    Attributes:
        won: the trial that is the best of the study.
        is_surpassed: whether what needs no search is above both.
        is_held_back: whether the margin keeps what leads from being chosen.
        is_guess: whether the best is not told from guessing, so that a gain is no achievement.
    """

    baseline: Arm
    best: Arm
    difference: Difference
    won: int
    is_surpassed: bool
    is_held_back: bool
    is_guess: bool

    @property
    def verdict(self) -> Literal["none", "unclear", "clear", "negative", "open"]:
        """Whether the best of the search is better than the baseline, and how surely.

        `none`: of the same value; `unclear`, `clear`: better, within or beyond the spread over seeds; `negative`: not
        better, and the baseline is the best of the study; `open`: none of these.
        """
        better = self.best.spec.is_better(self.difference.value, 0.0)
        if self.difference.value == 0.0:
            return "none"
        if better and self.difference.is_clear is not None and not self.difference.is_unclear_for_few_seeds:
            return "clear" if self.difference.is_clear else "unclear"
        return "negative" if self.won == self.baseline.trial_number and not better else "open"

    def __str__(self) -> str:
        spec, best = self.best.spec, self.best.label
        name, rises, is_baseline = spec.metric, spec.mode == "max", self.won == self.baseline.trial_number
        after, before = (formatting.format_arm_mean(arm, name) for arm in (self.best, self.baseline))
        what = "what was chosen" if self.is_held_back and not is_baseline else "the best of the search"
        what = "what leads the search" if self.is_surpassed else what
        is_in_doubt, told = self.is_guess and self.verdict == "clear", formatting.metric_in_words(name)
        both = f"{told} is {before} for the baseline and {after} for"
        first = {
            "none": f"The search gained nothing: {both} {best}",
            "unclear": f"{sentence_case(told)} did not {'rise' if rises else 'fall'} beyond the spread over "
            f"{self.best.interval_over_text(name)}: {before} (baseline), {after} ({best})",
            "clear": f"The search {'raised' if rises else 'lowered'} {told} from {before} (baseline) to {after} "
            f"({best})",
            "negative": f"The search found nothing better than the baseline: {both} {what} ({best})",
            "open": f"{sentence_case(both)} {what} ({best})",
        }["open" if is_in_doubt else self.verdict]
        closing = ""
        if not self.is_surpassed and (is_baseline or not spec.is_better(self.difference.value, 0.0)):
            won = "the baseline" if is_baseline else f"trial {self.won}"
            closing = f" The best of the study, which best.yaml holds, is {won}."
        seeds = _seeds_of_both_arms_text(name, self.baseline, self.best)
        seeds += f", though this does not say that {best} has learned the class" * is_in_doubt
        return f"{first}, chosen by the validation split, {seeds}.{closing}"


class MetricDifferenceToBaseline(Statement):
    """The difference of the best of the search to the baseline in a metric."""

    metric: str
    baseline: Arm
    best: Arm
    difference: Difference

    def __str__(self) -> str:
        name, best, baseline = self.metric, self.best, self.baseline
        if name == best.spec.metric:
            return f"The difference of {best.label} to the baseline in {name}: {self._difference_text()}."
        is_on_same_seeds = best.metric_seeds(name) == best.metric_seeds(best.spec.metric)
        where = "" if is_on_same_seeds else f" ({_seeds_of_both_arms_text(name, baseline, best)})"
        return (
            f"On the test split, which was not used to choose, {name} is {formatting.format_arm_mean(best, name)} "
            f"against {formatting.format_arm_mean(baseline, name)} of the baseline{where}: {self._difference_text()}"
            f"{self._accuracy_text()}."
        )

    def _accuracy_text(self) -> str:
        """Return the accuracy over the same samples beside a log loss; empty where there is none."""
        *others, name = add_accuracies_of_log_losses([self.metric])
        if not others or not all(arm.metric_statistics(name) for arm in (self.best, self.baseline)):
            return ""
        own, before = (formatting.format_arm_mean(arm, name) for arm in (self.best, self.baseline))
        return f"; {name} is {own} against {before}"

    def _difference_text(self) -> str:
        """Return the difference, and whether it exceeds the spread over seeds."""
        name, best, difference = self.metric, self.best, self.difference
        is_part = difference.is_paired and set(self.baseline.metric_seeds(name)) != set(best.metric_seeds(name))
        where = " on the seeds that both have" if is_part else ""
        return formatting.difference_with_verdict(
            name, difference, best.spec.is_better(difference.value, 0.0), best.interval_over_text(name), where
        )


def _gain_statements(results: Results, baseline: Arm, best: Arm, is_guess: bool) -> Iterator[Statement]:
    """Yield the gain and its interval; where the best is not told from guessing, a clear gain is left to the table."""
    spec, held = results.spec, results.incumbent_standing
    gain, on_test = (best.difference_to(baseline, name) for name in (spec.metric, spec.test_metric))
    assert gain is not None  # both arms are complete and have the metric
    is_held_back = bool(held and held.held_back_lead)
    won, is_surpassed = results.ranked_all[0].trial.number, bool(results.references_above_best)
    yield GainOverBaseline(baseline, best, gain, won, is_surpassed, is_held_back, is_guess)
    name, change = (spec.metric, gain) if on_test is None else (spec.test_metric, on_test)
    if on_test is None and gain.value == 0.0:
        yield from results.tied_metrics
    elif not (is_guess and change.is_clear and spec.is_better(change.value, 0.0)):
        yield MetricDifferenceToBaseline(name, baseline, best, change)


class SampleErrorUnknown(Statement):
    """What other samples would change is not known, as an own function does not say how many it measured."""

    metric: str

    def __str__(self) -> str:
        return (
            f"How much {self.metric} would differ on other samples is not known: ± and intervals are over seeds alone."
        )


def sample_error_statements(results: Results) -> Iterator[SampleErrorUnknown]:
    """Yield that the error of its samples is not known, of a training function's result."""
    arm, name = results.final_training_arm or results.baseline_and_best_arms[1], results.spec.metric
    value = arm.metric_statistics(name) if arm and results.spec.training_function else None
    if value and value.split_error is None:
        yield SampleErrorUnknown(name)


MAX_BIAS_GAP = 0.05
"""Largest difference of the accuracies with and against the bias, its error counted in, of what follows no bias."""


class DebiasingNotNeeded(Statement):
    """The baseline is as good as what was searched, and does not follow the bias.

    Attributes:
        aligned, conflicting: its accuracy on samples that agree, and that conflict, with the bias.
        over: what the spread is over beyond which nothing is better.
    """

    split: str
    aligned: float
    conflicting: float
    over: str

    def __str__(self) -> str:
        both = [
            formatting.format_metric_value(f"{self.split}/accuracy", one) for one in (self.aligned, self.conflicting)
        ]
        return (
            f"Debiasing is not needed here: the baseline has {both[0]} right of the samples that agree with the bias "
            f"and {both[1]} of those that conflict with it, and nothing is better beyond the spread over {self.over}."
        )


def _debiasing_not_needed_statements(results: Results, baseline: Arm, best: Arm) -> Iterator[DebiasingNotNeeded]:
    """Yield that debiasing is not needed.

    Only where the baseline ran on several seeds, and its gap between samples with and against the bias is below
    `MAX_BIAS_GAP` with 97.5% confidence.
    """
    spec, split = results.spec, "test" if baseline.metric_statistics("test/accuracy") else "val"
    gain = best.difference_to(baseline, spec.metric)
    aligned, conflicting = (
        statistics_with_sampling_error(results.record, baseline, f"{split}/{name}_accuracy")
        for name in ("aligned", "conflicting")
    )
    if gain is None or gain.is_clear is None or gain.is_unclear_for_few_seeds:
        return  # it is not known whether the best is no better
    if aligned is None or conflicting is None or conflicting.count < 2:
        return
    intervals = [one.confidence_interval() for one in (aligned, conflicting)]
    error = math.hypot(*((ends[1] - ends[0]) / 2 if ends else math.inf for ends in intervals))
    is_level = aligned.mean - conflicting.mean + error < MAX_BIAS_GAP
    if is_level and not (gain.is_clear and spec.is_better(gain.value, 0.0)):
        yield DebiasingNotNeeded(split, aligned.mean, conflicting.mean, best.interval_over_text(spec.metric))


def _value_with_seeds_text(arm: Arm) -> str:
    """Return the study's metric of an arm, and the seeds behind it."""
    name = arm.spec.metric
    where = "" if arm.is_fitted_without_seed else f" on {formatting.arm_folds_and_seeds_text(arm, name)}"
    return f"{name} {formatting.format_arm_mean(arm, name)}{where}"


def _seeds_of_both_arms_text(name: str, baseline: Arm, chosen: Arm) -> str:
    """Return the seeds of both arms, once where they are the same."""
    before, after = baseline.metric_seeds(name), chosen.metric_seeds(name)
    if before == after:
        return f"both on {formatting.arm_folds_and_seeds_text(chosen, name)}"
    texts = [formatting.arm_folds_and_seeds_text(arm, name) for arm in (baseline, chosen)]
    return f"the baseline on {texts[0]}, {chosen.label} on {texts[1]}"
