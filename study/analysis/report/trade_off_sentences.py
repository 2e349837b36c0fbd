"""What the result keeps and costs, in the lead of a report: its limits, and how accuracy changed from the baseline."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from study.analysis.statistics import formatting
from study.analysis.statistics.debiasing_metrics import n_samples_of_accuracy, sampling_standard_error
from study.ranking import FittedReference, Results, SeedStatistics
from study.ranking.arms import Arm, arm_of_candidate
from study.ranking.difference import Difference
from study.ranking.json_documents import Statement
from study.spec.constraints import MetricConstraint
from study.text import sentence_case, study_command

ArmsWithStatistics = Sequence[tuple[Arm, SeedStatistics]]
"""Arms with the metric of a constraint over their seeds."""


class ConstraintCheck(Statement):
    """Who breaks a constraint by the mean over its seeds, and who keeps it."""

    constraint: MetricConstraint
    breaking: ArmsWithStatistics
    keeping: ArmsWithStatistics

    def __str__(self) -> str:
        name = self.constraint.metric
        by_verb = {"breaks": self.breaking, "keeps": self.keeping}
        parts = (
            f"{arm.label_in_sentence} {verb} it ({formatting.format_mean_and_deviation(name, spread)})"
            for verb, means in by_verb.items()
            for arm, spread in means
        )
        return (
            f"The limit {name} {self.constraint.comparison} {formatting.format_setting(self.constraint.limit)}: "
            f"{', '.join(parts)}."
        )


def constraint_statements(results: Results) -> Iterator[ConstraintCheck]:
    """Yield each constraint with the baseline and the result; none of a final training."""
    compared = [arm for arm in results.baseline_and_result_arms if arm and results.spec.final_seeds is None]
    for constraint in results.spec.objective.constraints:
        if means := [(arm, spread) for arm in compared if (spread := arm.metric_statistics(constraint.metric))]:
            broken = [(arm, spread) for arm, spread in means if constraint.violation_of(spread.mean) > 0]
            yield ConstraintCheck(constraint, broken, [pair for pair in means if pair not in broken])


class ConstraintBrokenOnFreshSeeds(Statement):
    """What led the search breaks a constraint on the seeds that it ran again on, and is not chosen."""

    constraint: MetricConstraint
    arm: Arm
    statistics: SeedStatistics

    def __str__(self) -> str:
        constraint, arm = self.constraint, self.arm
        seeds = formatting.arm_folds_and_seeds_text(arm, constraint.metric)
        value = f"{formatting.format_mean_and_deviation(constraint.metric, self.statistics)} on {seeds}"
        return (
            f"{sentence_case(arm.label_in_sentence)} led the search, but breaks {constraint} where it ran again "
            f"({value}): it is not chosen."
        )


def constraints_broken_on_fresh_seeds(results: Results) -> Iterator[ConstraintBrokenOnFreshSeeds]:
    """Yield the constraints that what led the search kept there and breaks on fresh seeds, where another was chosen."""
    first, chosen = next(iter(results.ranked_by_search_value), None), results.best
    if first is None or chosen is None or not results.is_confirmed or first.trial.number == chosen.trial.number:
        return
    if first.score.total_violation > 0 or first.confirmed_score is None:
        return
    arm = arm_of_candidate(results.spec, first)
    for constraint in results.spec.objective.broken_constraints(first.confirmed_score):
        if found := arm.metric_statistics(constraint.metric):
            yield ConstraintBrokenOnFreshSeeds(constraint, arm, found)


SAMPLES_TEXT_BY_ACCURACY = {
    "shrunk_unbiased_accuracy": "with each group weighing alike (small ones shrunk to their class's mean)",
    "unbiased_accuracy": "with each group weighing alike",
    "aligned_accuracy": "on samples that agree with the bias",
    "conflicting_accuracy": "on samples that conflict with the bias",
    "accuracy": "overall",
}
"""Accuracies whose changes are told together, and the samples that each is of.

The first is told where there is none of samples that conflict with the bias; the second where it goes the other way
than the first.
"""

SPLIT_ERRORS_OF_CHANGE = 1.96
"""How many of the split's standard errors a change must reach to be called a rise or a fall."""

MIN_LOSS_TO_NAME_ALTERNATIVE = 0.05
"""Loss of accuracy above which a configuration that loses less is named."""


class AccuracyTradeOff(Statement):
    """How accuracies on a split changed from the baseline to the best.

    Attributes:
        changes: the difference by metric, over seeds or over the samples of all folds.
        split_errors: by metric the standard error of the best's value, by the samples of its split; where it is known.
        aligned_share: share of the split's samples that agree with the bias; None: not known.
    """

    split: str
    baseline: Arm
    best: Arm
    changes: Mapping[str, Difference]
    split_errors: Mapping[str, float] = field(default_factory=dict)
    aligned_share: float | None = None

    def __str__(self) -> str:
        changes = "; it ".join(self._change_text(name, change) for name, change in self.changes.items())
        told = f"From the baseline to {self.best.label} accuracy on the {self.split} split {changes}."
        if any(one.is_clear is None and one.value and not one.is_over_samples for one in self.changes.values()):
            why = f"{self.best.label} has no seeds" if self.best.is_reference else "it takes two seeds or more"
            told += f" There is no interval: {why}."
        if f"{self.split}/accuracy" in self.changes and (self.aligned_share or 0.0) > 0.5:
            told += (
                f" Of the {self.split} split's samples {self.aligned_share:.0%} agree with the bias: overall "
                "accuracy is mostly theirs."
            )
        return told

    def _change_text(self, name: str, change: Difference) -> str:
        where = SAMPLES_TEXT_BY_ACCURACY[name.split("/")[1]]
        before, after = (formatting.format_arm_mean(arm, name) for arm in (self.baseline, self.best))
        if change.interval == (0.0, 0.0):
            return f"stayed at {after} on {formatting.every_seed_or_draw_text(change)} {where}"
        if change.is_clear is None and not change.value:
            return f"is {after} for both {where}"
        error = self.split_errors.get(name, 0.0)
        is_within_error = change.is_clear is not False and abs(change.value) < SPLIT_ERRORS_OF_CHANGE * error
        is_unclear = is_within_error or change.is_clear is False
        verb = "shows no clear change" if is_unclear else "rose" if change.value > 0 else "fell"
        told = formatting.difference_with_interval(name, change, self._interval_words(change))
        if is_within_error:
            told += f", while the split's error is {formatting.format_difference(name, error, signed=False)}"
        if change.is_clear is None and change.is_over_samples:
            told += ", whose error on other samples is not known"
        return f"{verb} {where}, from {before} to {after}: {told}"

    def _interval_words(self, change: Difference) -> str:
        return "95% interval " if change.is_over_samples else f"95% interval over {self.best.repeats_text} "


class SmallerAccuracyLoss(Statement):
    """A configuration that loses less accuracy.

    Attributes:
        where: it was measured: in the search, on fresh seeds or on all folds.
        value: of the study's metric there.
        accuracy: on validation there.
        best_accuracy: that of the best.
        best_where: the best was measured; empty: in the same place.
        least: smallest accuracy that was asked for.
    """

    study: str
    trial: int
    where: str
    metric: str
    value: float
    accuracy: float
    best_accuracy: float
    best_where: str
    least: float

    @property
    def command(self) -> str:
        return study_command("export", self.study, "--trial", self.trial)

    def __str__(self) -> str:
        own, other = (
            formatting.format_metric_value("val/accuracy", one) for one in (self.accuracy, self.best_accuracy)
        )
        best = f"the best {self.best_where}".rstrip()
        return (
            f"Trial {self.trial} loses less accuracy: {self.where} it had {self.metric} "
            f"{formatting.format_metric_value(self.metric, self.value)} and val/accuracy {own} against {other} of "
            f"{best}. To export it: {self.command}"
        )


class ReferenceMoreAccurate(Statement):
    """A reference that has more of some accuracies than the best, and is behind it in the study's metric.

    Attributes:
        metrics: these accuracies, of one split.
    """

    reference: FittedReference
    best: Arm
    metrics: Sequence[str]

    def __str__(self) -> str:
        name, values = self.best.spec.metric, self.reference.metrics
        told = formatting.join_with_and(
            f"{each} {formatting.format_metric_value(each, values[each])}" for each in self.metrics
        )
        own, other = formatting.format_arm_mean(self.best, name), formatting.format_metric_value(name, values[name])
        return (
            f"{sentence_case(self.reference.name_in_sentence)}, which needs no search, has more than "
            f"{self.best.label_in_sentence} ({told}), but on validation {name} {other} against {own}."
        )


def _more_accurate_reference_statements(
    results: Results, best: Arm, metrics: Sequence[str]
) -> Iterator[ReferenceMoreAccurate]:
    """Yield the first reference, by the study's metric, with more of all these accuracies than the best."""
    spec = results.spec
    means = {name: found.mean for name in (spec.metric, *metrics) if (found := best.metric_statistics(name))}
    for reference in results.references:
        known = {name: value for name in means if (value := reference.metrics.get(name)) is not None}
        if len(known) <= len(metrics) or reference.kind.predicts_by_group:
            continue
        is_behind = spec.is_better(means[spec.metric], known[spec.metric])
        if is_behind and all(known[name] > means[name] for name in metrics):
            yield ReferenceMoreAccurate(reference, best, metrics)
            return


def trade_off_statements(results: Results) -> Iterator[AccuracyTradeOff | ReferenceMoreAccurate | SmallerAccuracyLoss]:
    """Yield how accuracy changed from the baseline to the result, with the bias, against it and over all.

    A method that helps samples against the bias often loses some that go with it. A configuration that costs less
    accuracy follows, where the best costs much. Empty where nothing changed, or the study's own metrics say it all.
    """
    baseline, best = results.baseline_and_result_arms
    if results.spec.training_function or results.spec.final_seeds is not None or best is None or baseline is None:
        return
    split = "test" if all(arm.metric_statistics("test/accuracy") for arm in (best, baseline)) else "val"
    told = {name.split("/")[1] for name in results.spec.objective.metrics}
    names = [f"{split}/{name}" for name in SAMPLES_TEXT_BY_ACCURACY if name not in told]
    changes = {name: change for name in names if (change := best.difference_to(baseline, name))}
    shrunk, plain = f"{split}/shrunk_unbiased_accuracy", f"{split}/unbiased_accuracy"
    if f"{split}/conflicting_accuracy" in changes or "conflicting_accuracy" in told:
        changes.pop(shrunk, None)
    if shrunk not in changes or plain not in changes or changes[shrunk].value * changes[plain].value >= 0:
        changes.pop(plain, None)
    if not any(change.value for change in changes.values()):
        return
    errors = {
        name: error
        for name, change in changes.items()
        if not change.is_over_samples and (error := sampling_standard_error(results.record, best, name))
    }
    aligned, whole = (
        n_samples_of_accuracy(results.record, best, split, name) for name in ("aligned_accuracy", "accuracy")
    )
    share = aligned / whole if aligned is not None and whole else None
    yield AccuracyTradeOff(split, baseline, best, changes, errors, share)
    yield from _more_accurate_reference_statements(results, best, list(changes))
    lost = best.difference_to(baseline, "val/accuracy")
    costs_much = lost is not None and lost.is_clear and lost.value < -MIN_LOSS_TO_NAME_ALTERNATIVE
    if costs_much and results.spec.metric != "val/accuracy":
        yield from smaller_accuracy_loss_statements(results, baseline, best)


def smaller_accuracy_loss_statements(results: Results, baseline: Arm, best: Arm) -> Iterator[SmallerAccuracyLoss]:
    """Yield the best configuration besides the result that is better than the baseline and loses little accuracy.

    It breaks no constraint: the choice would not allow it.
    """
    spec = results.spec
    own = baseline.metric_statistics(spec.metric)
    whole, of_best = (arm.metric_statistics("val/accuracy") for arm in (baseline, best))
    assert own
    assert whole
    assert of_best
    least = math.floor(1000 * (whole.mean - MIN_LOSS_TO_NAME_ALTERNATIVE)) / 1000
    for candidate in results.ranked_search if best.has_all_folds else ():
        arm, is_confirmed = arm_of_candidate(spec, candidate), candidate.confirm_statistics is not None
        if arm.trial_number == best.trial_number or not arm.has_all_folds:
            continue
        if (candidate.confirmed_score or candidate.score).total_violation > 0:
            continue
        value, accuracy = (arm.metric_statistics(name) for name in (spec.metric, "val/accuracy"))
        if value and accuracy and accuracy.mean >= least and spec.is_better(value.mean, own.mean):
            again = f"on {formatting.fresh_seeds_text(spec)}"
            is_elsewhere = not is_confirmed and best.metric_seeds("val/accuracy") != arm.metric_seeds("val/accuracy")
            yield SmallerAccuracyLoss(
                spec.name,
                arm.trial_number,
                again if is_confirmed else "in the search",
                spec.metric,
                value.mean,
                accuracy.mean,
                of_best.mean,
                again if is_elsewhere and not best.is_reference else "",
                least,
            )
            return
