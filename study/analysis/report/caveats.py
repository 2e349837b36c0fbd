"""What a reader of a study's conclusions might assume to be known, and is not."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, starmap
from typing import Literal

from study.analysis.report.conclusions import BaselineMissing, has_single_configuration
from study.analysis.report.reference_sentences import ReferenceNotFitted
from study.analysis.statistics import formatting
from study.analysis.statistics.debiasing_metrics import cell_sizes_of_arm, statistics_with_sampling_error
from study.home.record import StudyRecord
from study.metrics.intervals import why_no_interval
from study.ranking import Results
from study.ranking.arms import Arm
from study.ranking.chosen_epoch import chosen_epoch_text, metric_at_chosen_epoch
from study.ranking.json_documents import Statement
from study.spec import StudySpec
from study.text import pluralise

ALIGNED_METRIC, CONFLICTING_METRIC = "val/aligned_accuracy", "val/conflicting_accuracy"
CONFLICTING_ERROR_METRIC = f"{CONFLICTING_METRIC}_standard_error"

MIN_ACCURACY_ERROR_HIDING_GAIN = 0.1
"""Smallest standard error of the accuracy on conflicting samples that may hide a gain of 20 points."""


class FixedRemark(Statement):
    """What needs no numbers."""

    text: str

    def __str__(self) -> str:
        return self.text


class GainHiddenInValidation(Statement):
    """A gain on samples that conflict with the bias cannot be seen in validation.

    Attributes:
        error: standard error of their accuracy; None: no validation sample conflicts with the bias.
    """

    error: float | None

    def __str__(self) -> str:
        if self.error is None:
            return "No validation sample conflicts with the bias: what a method gains on such samples cannot be seen."
        return (
            f"Few validation samples conflict with the bias: the standard error of {CONFLICTING_METRIC} is "
            f"{100 * self.error:.0f} points, and a gain of less than twice that may not be seen."
        )


def find_gain_hidden_in_validation(spec: StudySpec, baseline: Arm, best: Arm) -> GainHiddenInValidation | None:
    """Return why validation may hide a gain, for a search that gained nothing; None where nothing says so."""
    gain = best.difference_to(baseline, spec.metric)
    if gain is None or (gain.is_clear and spec.is_better(gain.value, 0.0)):
        return None
    aligned, conflicting, error = (
        baseline.metric_statistics(name) for name in (ALIGNED_METRIC, CONFLICTING_METRIC, CONFLICTING_ERROR_METRIC)
    )
    if aligned is None or (conflicting is not None and (error is None or error.mean < MIN_ACCURACY_ERROR_HIDING_GAIN)):
        return None
    return GainHiddenInValidation(error.mean if conflicting is not None and error is not None else None)


class MarginNotApplied(Statement):
    """Why `search.margin` does not apply."""

    why: Literal["several metrics", "no incumbent", "no standard error"]
    metric: str

    def __str__(self) -> str:
        return f"search.margin does not apply: {MARGIN_NOT_APPLIED_TEXTS[self.why].format(metric=self.metric)}."


MARGIN_NOT_APPLIED_TEXTS = {
    "several metrics": "with several metrics there is no single value to be ahead in",
    "no incumbent": "no incumbent is complete and keeps the limits",
    "no standard error": "no standard error of {metric} is known",
}


class TrialsFailed(Statement):
    """How many trials failed for a reason."""

    trials: int
    why: str

    def __str__(self) -> str:
        return f"{pluralise(self.trials, 'trial')} failed: {self.why}"


class TrialsWithoutMetric(Statement):
    """Complete trials without the study's metric at the epoch that counts."""

    spec: StudySpec
    trials: Sequence[int]

    def __str__(self) -> str:
        where = f"{chosen_epoch_text(self.spec.objective)} of {formatting.trial_numbers_text(self.trials)}"
        return f"{self.spec.metric} is not a number {where}; the results leave them out."


class CouldNotReadTestSplit(Statement):
    """Why the test split could not be read for some trials."""

    trials: Sequence[int]
    why: str

    def __str__(self) -> str:
        return f"The test split could not be read for {formatting.trial_numbers_text(self.trials)}: {self.why}"


class NoIntervalOfValue(Statement):
    """Why the study's metric has no interval, though its trials reported the error of their split's samples."""

    metric: str
    why: str

    def __str__(self) -> str:
        return (
            f"{self.metric} has no 95% interval of its own, as none would hold: {self.why}. The difference of two "
            "configurations, which are off alike, can have one."
        )


def _missing_interval_statements(results: Results, arm: Arm) -> Iterator[NoIntervalOfValue]:
    spec, record = results.spec, results.record
    for name in () if spec.training_function else spec.objective.metrics:
        found, cells = statistics_with_sampling_error(record, arm, name), cell_sizes_of_arm(record, arm, "val") or ()
        if found and found.confidence_interval() is None:
            facts, sizes = spec.facts_of_data(spec.trial_data_sections[0]), {size for row in cells for size in row}
            if why := why_no_interval(name, facts, sizes):
                yield NoIntervalOfValue(name, why)


UNKNOWN_ALIGNMENT_TEXT = (
    "No sample counts as agreeing or conflicting with the bias: the training samples do not clearly show which bias "
    "class goes with each class. data.aligned can name such pairs: all other samples then count as conflicting."
)


def _unknown_alignment_statements(results: Results) -> Iterator[FixedRemark]:
    """Yield where it is open which samples agree with the bias."""
    spec, groups = results.spec, results.record.group_sample_counts
    if "aligned" in spec.base["data"] and len(groups.biases) > 1 and groups.aligned_cells is None:
        yield FixedRemark(UNKNOWN_ALIGNMENT_TEXT)


def caveat_statements(results: Results) -> Iterator[Statement]:
    """Yield what a reader might assume to be known, and is not."""
    spec, record = results.spec, results.record
    baseline, best = results.baseline_and_best_arms
    final = results.final_training_arm
    is_search = spec.final_seeds is None
    trials = list(record.trials.values())
    yield from results.tied_metrics
    is_one = has_single_configuration(results)
    if is_search and best and baseline is None and not is_one:
        yield BaselineMissing(spec)
    if is_search and spec.search.margin and (best or baseline):
        if spec.objective.has_several_metrics:
            yield MarginNotApplied("several metrics", spec.metric)
        elif (held := results.incumbent_standing) is None:
            yield MarginNotApplied("no incumbent", spec.metric)
        elif any(lead.standard_error is None for lead in held.leads):
            yield MarginNotApplied("no standard error", spec.metric)
    if is_search and best and baseline and (unseen := find_gain_hidden_in_validation(spec, baseline, best)):
        yield unseen
    for state in ("running", "waiting", "interrupted"):
        if numbers := [trial.number for trial in trials if trial.state == state]:
            yield FixedRemark(f"{pluralise(len(numbers), 'trial')} {state}: {formatting.join_with_and(numbers)}.")
    reasons = Counter(trial.end_reason or "no reason given" for trial in trials if trial.state == "failed")
    yield from (TrialsFailed(count, reason) for reason, count in reasons.items())
    complete = (trial for trial in trials if trial.state == "complete")
    reported = chain.from_iterable(trial.reports[-1] for trial in trials if trial.reports)
    if final and not any(name.startswith("val/") for name in reported):
        yield FixedRemark(
            "Nothing validates, as all samples outside test are trained on: test alone tells what was learned."
        )
    elif without := [
        trial.number for trial in complete if metric_at_chosen_epoch(spec.objective, trial, spec.metric) is None
    ]:
        yield TrialsWithoutMetric(spec, without)
    if is_search and best:
        yield from _unknown_alignment_statements(results)
        yield from _drop_on_fresh_seeds_statements(results, best)
    if arm := final or best:
        yield from _missing_interval_statements(results, arm)
    yield from _narrow_kernel_statements(record)
    if spec.base["train"]["report_test"]:
        yield FixedRemark(
            "The test split was read in each epoch of every trial (train.report_test). Nothing was chosen by it."
        )
    yield from starmap(ReferenceNotFitted, results.why_references_failed.items())
    for why in dict.fromkeys(trial.test_failure for trial in trials if trial.test_failure):
        yield CouldNotReadTestSplit([trial.number for trial in trials if trial.test_failure == why], why)
    if final and not final.is_fitted_without_seed and len(final.trials) < 2:
        yield FixedRemark("There is only one seed, so the spread over seeds is not known.")


MIN_KERNEL_WEIGHT_SUM = 0.1
"""Sum of CCL-K's weights below which they are next to nothing: with form "released" a wide kernel's sum to about 1."""


class KernelTooNarrow(Statement):
    """Trials of CCL-K whose condition hardly enters the loss, see `study.losses.cclk.kernel_weight_diagnostics`."""

    trials: Sequence[int]

    def __str__(self) -> str:
        return (
            f"The kernel is too narrow in {formatting.trial_numbers_text(self.trials)}: the weights of a sample's "
            f"others sum to less than {MIN_KERNEL_WEIGHT_SUM:g} (train/weight_sum), where a wide kernel's sum to about "
            "1, so that the condition hardly enters the loss. A larger method.sigma2 makes it wider."
        )


def _narrow_kernel_statements(record: StudyRecord) -> Iterator[KernelTooNarrow]:
    sums = {trial.number: trial.last_metric("train/weight_sum") for trial in record.trials.values()}
    if numbers := [number for number, value in sums.items() if value is not None and value < MIN_KERNEL_WEIGHT_SUM]:
        yield KernelTooNarrow(numbers)


class DropOnFreshSeeds(Statement):
    """The value of the best in the search and its mean where it ran again: luck of a choice does not last."""

    arm: Arm
    searched: float
    fresh: float

    def __str__(self) -> str:
        name, label = self.arm.spec.metric, self.arm.label
        amount = formatting.format_difference(name, self.fresh - self.searched)
        where = "all folds it" if self.arm.repeats_text != "seeds" else "the fresh seeds the mean"
        before = formatting.format_metric_value(name, self.searched)
        return f"In the search {label} had {name} {before}; on {where} differs by {amount}."


def _drop_on_fresh_seeds_statements(results: Results, best: Arm) -> Iterator[DropOnFreshSeeds]:
    candidate = next(each for each in results.ranked_all if each.trial.number == best.trial_number)
    fresh = best.metric_statistics(results.spec.metric)
    if candidate.confirm_trials and fresh:
        yield DropOnFreshSeeds(best, candidate.search_value, fresh.mean)
