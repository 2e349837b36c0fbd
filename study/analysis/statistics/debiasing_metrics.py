"""The metrics that a study of debiasing is about, before its own: worst group, conflicting samples, gaps of groups."""

import math
from collections.abc import Iterator, Sequence

from study.analysis.statistics import formatting
from study.home.record import StudyRecord
from study.metrics import is_gap_metric
from study.metrics.intervals import MAX_GROUPS_OF_MINIMUM
from study.metrics.metric_format import format_metric
from study.metrics.worst_group import GroupCounts, WorstGroup, find_worst_group
from study.ranking import SeedStatistics
from study.ranking.arms import Arm
from study.ranking.json_documents import Statement
from study.text import sentence_case


def cell_sizes_of_arm(record: StudyRecord, arm: Arm, split: str) -> Sequence[Sequence[int]] | None:
    """Return the samples of each group, a list per class, that an arm's metrics of a split are of.

    With folds, those of validation are the samples of the folds on which its trials ran, and all outside test where
    their metrics are of all folds together. None where they are not known.
    """
    groups = record.group_sample_counts
    if split != "val" or arm.spec.folds is None:
        return groups.cells.get(split)
    folds = {trial.fold for trial in arm.trials if trial.fold is not None}
    return groups.cells_of_folds(folds if folds and not arm.joined_folds else range(arm.spec.folds))


def group_counts_of_arm(record: StudyRecord, arm: Arm, split: str) -> GroupCounts | None:
    """Return how many samples of each group of a split are right, by the mean over an arm's seeds.

    None where the sizes of groups are not known: without bias labels, of several data sets, or of very many groups; and
    where each fold's samples were judged by another model, whose shares do not add up to a count.
    """
    cells = cell_sizes_of_arm(record, arm, split)
    if not cells or (split == "val" and arm.is_mean_over_folds(split)):
        return None

    def mean(name: str) -> float | None:
        found = arm.metric_statistics(f"{split}/{name}")
        return found.mean if found else None

    return GroupCounts.from_metrics(split, cells, mean, aligned_cells=record.group_sample_counts.aligned_cells)


def worst_group_of_arm(record: StudyRecord, arm: Arm, split: str) -> WorstGroup | None:
    """Return which groups of a split an arm serves worst; None where that is not known, or all are alike."""
    found, names = group_counts_of_arm(record, arm, split), record.group_sample_counts
    over = "the folds' models" if arm.is_mean_over_folds(split) else "the seeds"
    return find_worst_group(found, names.classes, names.biases, over) if found else None


def worst_group_on_validation_if_test_small(record: StudyRecord, arm: Arm) -> WorstGroup | None:
    """Return which groups of validation an arm serves worst.

    None where the groups that conflict with the bias are not too small on test, or on validation as well.
    """
    on_test, on_val = (worst_group_of_arm(record, arm, split) for split in ("test", "val"))
    is_better = on_test and on_test.all_conflicting and on_val and on_val.worst and not on_val.all_conflicting
    return on_val if is_better else None


def sampling_standard_error(record: StudyRecord, arm: Arm, name: str) -> float | None:
    """Return the standard error of an arm's metric because its split is a sample, whatever the seeds do.

    It is what the trials reported with the metric, the mean over them. On the test split of older studies, which
    reported none, it is the binomial error of an accuracy whose samples are counted: of all, of aligned and of
    conflicting samples, and of the worst group where groups have metrics of their own; (right + 1) / (samples + 2)
    replaces an accuracy of 0 or 1. None where neither is known, and of gaps between groups.
    """
    split, metric = name.split("/", 1)
    if is_gap_metric(name):
        return None
    if reported := arm.metric_statistics(f"{name}_standard_error"):
        return reported.mean
    value, count = arm.metric_statistics(name), n_samples_of_accuracy(record, arm, split, metric)
    if value is None or not count:
        return None
    share = value.mean if 0 < value.mean < 1 else (value.mean * count + 1) / (count + 2)
    return math.sqrt(share * (1 - share) / count)


def statistics_with_sampling_error(record: StudyRecord, arm: Arm, name: str) -> SeedStatistics | None:
    """Return an arm's metric over its seeds, with its `sampling_standard_error`."""
    found = arm.metric_statistics(name)
    error = sampling_standard_error(record, arm, name)
    return found.with_split_error(name, error) if found else None


def n_samples_of_accuracy(record: StudyRecord, arm: Arm, split: str, metric: str) -> int | None:
    """Return how many samples of a split an accuracy is of; None where that is not known, and for other metrics."""
    counts, cells = record.group_sample_counts, cell_sizes_of_arm(record, arm, split)
    if not cells:
        return None
    total = sum(map(sum, cells))
    if metric == "accuracy":
        return total
    if metric in ("aligned_accuracy", "conflicting_accuracy") and counts.aligned_cells is not None:
        rows = zip(cells, counts.aligned_cells, strict=True)
        aligned = sum(size for sizes, of in rows for size, is_aligned in zip(sizes, of, strict=True) if is_aligned)
        return aligned if metric == "aligned_accuracy" else total - aligned
    if metric == "worst_group_accuracy":
        found = group_counts_of_arm(record, arm, split)
        known = found.by_cell.values() if found else ()
        is_known = 0 < len(known) <= MAX_GROUPS_OF_MINIMUM
        return min(known, key=lambda of: of[0] / of[1])[1] if is_known else None
    return None


class NoBetterThanChance(Statement):
    """A result that is not told from guessing, nor from one that knows the bias alone.

    Attributes:
        metric: an `unbiased_accuracy`.
        interval: of the metric, with the split's error; None: not known.
        chance: what guessing has of it.
    """

    metric: str
    arm: Arm
    interval: tuple[float, float] | None
    chance: float

    def __str__(self) -> str:
        has = (
            f"{formatting.format_value_interval(self.metric, self.interval)} (95% interval)"
            if self.interval
            else formatting.format_arm_mean(self.arm, self.metric)
        )
        return (
            f"{sentence_case(self.arm.label_in_sentence)} may only be guessing: {self.metric} is {has}, and "
            f"guessing has {format_metric(self.metric, self.chance)}, as has any model that knows the bias and nothing "
            "else."
        )


def find_no_better_than_chance(record: StudyRecord, arm: Arm) -> NoBetterThanChance | None:
    """Tell whether an arm is no better than guessing by its unbiased accuracy; None where it is, or nothing tells.

    Of C classes guessing has 1/C in each (class, bias class) cell. So has, by the mean over all cells, any prediction
    that depends on the bias class alone. An arm whose 95% interval is above that on the validation or the test split is
    better. Splits in which a cell is empty tell nothing.
    """
    found = []
    for split in ("val", "test"):
        cells, name = cell_sizes_of_arm(record, arm, split), f"{split}/unbiased_accuracy"
        value = statistics_with_sampling_error(record, arm, name) if cells and all(map(all, cells)) else None
        if not cells or value is None:
            continue
        ends, chance = value.confidence_interval(), 1 / len(cells)
        if (ends[0] if ends else value.mean) > chance:
            return None
        found.append(NoBetterThanChance(name, arm, ends, chance))
    return found[0] if found else None


class ClassBelowChance(Statement):
    """A result that recognises one class less often than guessing does.

    Attributes:
        metric: a `worst_class_accuracy`.
        chance: what guessing has of each class.
        has_small_class: whether a class has fewer than half the samples of the largest in the split.
    """

    metric: str
    arm: Arm
    chance: float
    has_small_class: bool

    def __str__(self) -> str:
        remedy = "; method.class_weights lets small classes count as much as large ones" * self.has_small_class
        return (
            f"{sentence_case(self.arm.label_in_sentence)} recognises one class less often than guessing does: "
            f"{self.metric} is {formatting.format_arm_mean(self.arm, self.metric)}, and guessing has "
            f"{format_metric(self.metric, self.chance)}. study evaluate names the class{remedy}."
        )


def class_below_chance_statements(record: StudyRecord, arm: Arm) -> Iterator[ClassBelowChance]:
    """Yield if an arm's least recognised class is below guessing: on test or, where that is unread, validation."""
    for split in ("test", "val"):
        cells, name = cell_sizes_of_arm(record, arm, split), f"{split}/worst_class_accuracy"
        found = arm.metric_statistics(name) if cells else None
        if cells and found:
            sizes, chance = [sum(class_) for class_ in cells], 1 / len(cells)
            if found.mean < chance:
                yield ClassBelowChance(name, arm, chance, min(sizes) < max(sizes) / 2)
            return
