"""The report's section on the groups of class and bias class: a grid of how many are right in each."""

from collections.abc import Iterator, Sequence

import pandas as pd

from study.analysis.report.page_formats import PageBlock, PageSection, TableBlock
from study.analysis.statistics import formatting
from study.analysis.statistics.debiasing_metrics import (
    group_counts_of_arm,
    sampling_standard_error,
    worst_group_on_validation_if_test_small,
)
from study.metrics import MAX_GROUP_METRICS, group_names
from study.metrics.selection_rules import BIAS_LABEL_METRICS
from study.metrics.summary_metrics import MIN_SHOWN_GROUP_SAMPLES
from study.metrics.worst_group import GroupCounts
from study.ranking import Results
from study.ranking.arms import Arm
from study.ranking.final_model import final_model_arm

GROUP_GRID_NOTE = (
    f"In brackets are groups of fewer than {MIN_SHOWN_GROUP_SAMPLES} samples, too few to judge. The metric "
    "group_Y_S_accuracy is of row Y and column S, counted from 0."
)


def groups_section(results: Results) -> PageSection | None:
    """Return a grid for the test split where it was read, else for validation, or why there is none.

    Both where the groups that conflict with the bias are too small on test alone. None where groups are not counted.
    """
    grids = _group_grids_of_splits(results, "test", "val")
    blocks = _grids_with_notes(grids if _are_both_splits_shown(results) else grids[:1])
    blocks = blocks or list(_too_many_groups_sentences(results))
    return PageSection("Groups", blocks) if blocks else None


def _group_grids_of_splits(results: Results, *splits: str) -> list[tuple[TableBlock, str]]:
    """Return the grids of the splits that have one, each with what it shows."""
    return [grid for split in splits if (grid := _group_grid_of_split(results, split))]


def _grids_with_notes(grids: Sequence[tuple[TableBlock, str]]) -> list[PageBlock]:
    """Return each grid with its note, the last with what is true of all."""
    blocks: list[PageBlock] = []
    for place, (grid, note) in enumerate(grids, 1):
        blocks += [grid, f"{note} {GROUP_GRID_NOTE}" if place == len(grids) else note]
    return blocks


def _are_both_splits_shown(results: Results) -> bool:
    return any(worst_group_on_validation_if_test_small(results.record, arm) for arm in _grid_arms(results)[-1:])


def _too_many_groups_sentences(results: Results) -> Iterator[str]:
    """Yield that there are too many groups for a grid, and which metrics take them together."""
    names, cells = results.record.group_sample_counts, results.record.group_sample_counts.cells
    split = next((split for split in ("test", "val") if split in cells), None)
    if split is None or len(cells[split]) * len(cells[split][0]) <= MAX_GROUP_METRICS or not _compared_arms(results):
        return
    sizes = [size for row in cells[split] for size in row]
    yield (
        f"{len(cells[split])} classes and {len(cells[split][0])} bias classes are {len(sizes)} groups, of {min(sizes)} "
        f"to {max(sizes)} samples each on {split}. Groups are measured one by one where there are at most "
        f"{MAX_GROUP_METRICS}."
        + (
            " Here the summary has two figures instead: for the samples that agree with the bias (aligned_accuracy) "
            "and for those that conflict with it (conflicting_accuracy)."
            if names.aligned_cells
            else ""
        )
    )


def _group_grid_of_split(results: Results, split: str) -> tuple[TableBlock, str] | None:
    """Return the grid of a split and what it shows; None where no group has a metric of its own."""
    counts = [
        (arm, found)
        for arm in _grid_arms(results)
        if (found := group_counts_of_arm(results.record, arm, split)) and found.by_cell
    ]
    if not counts:
        return None
    names, (arm, result) = results.record.group_sample_counts, counts[-1]
    biases = [group_names.class_name(names.biases, place) for place in range(len(result.samples[0]))]
    rows = [
        [_accuracies_text([of for _, of in counts], (y, s)) for s in range(len(biases))]
        for y in range(len(result.samples))
    ]
    shares = [[_accuracy_if_large(result, (y, s)) for s in range(len(biases))] for y in range(len(result.samples))]
    frame = pd.DataFrame(rows, columns=biases)
    frame.insert(0, "class ↓ bias class →", [group_names.class_name(names.classes, y) for y in range(len(rows))])
    which = f", {' → '.join(arm.label_in_sentence for arm, _ in counts)}" if len(counts) > 1 else ""
    which += _folds_text([arm for arm, _ in counts], split)
    note = f"How many of each group's samples on {split} are right{which}; the bar is that of {arm.label_in_sentence}."
    return TableBlock(frame, [[None, *row] for row in shares]), note


def _folds_text(arms: Sequence[Arm], split: str) -> str:
    """Say what counts are of where there are folds: of the samples of all, or means over the folds' models."""
    averaged = [arm.label_in_sentence for arm in arms if arm.is_mean_over_folds(split)]
    if averaged:
        which = "" if len(averaged) == len(arms) else f"of {formatting.join_with_and(averaged)} "
        return f", {which}on average over the {arms[0].spec.folds} folds' models"
    return ", of the samples of all folds together" * (split == "val" and any(arm.joined_folds for arm in arms))


def _accuracies_text(counts: Sequence[GroupCounts], cell: tuple[int, int]) -> str:
    known = [of.by_cell[cell] for of in counts if cell in of.by_cell]
    if not known:
        return formatting.MISSING_TEXT
    sizes = [samples for _, samples in known]
    parts = [
        f"{right / samples:.0%}" + f" of {samples}" * (after != samples)
        for (right, samples), after in zip(known, [*sizes[1:], None], strict=True)
    ]
    text = " → ".join(parts)
    return f"({text})" if known[-1][1] < MIN_SHOWN_GROUP_SAMPLES else text


def _accuracy_if_large(counts: GroupCounts, cell: tuple[int, int]) -> float | None:
    right, samples = counts.by_cell.get(cell, (0.0, 0))
    return right / samples if samples >= MIN_SHOWN_GROUP_SAMPLES else None


def _compared_arms(results: Results) -> list[Arm]:
    return [arm for arm in (*results.baseline_and_result_arms, results.final_training_arm) if arm]


def _grid_arms(results: Results) -> list[Arm]:
    """Return the arms whose groups are shown: of a final training its model."""
    return [arm for arm in (*results.baseline_and_result_arms, final_model_arm(results)) if arm]


def group_blocks_below_summary(results: Results) -> Iterator[PageBlock]:
    """Yield what stands on groups below the summary; nothing without bias labels."""
    record, compared = results.record, _compared_arms(results)
    names = [
        f"{split}/{name}"
        for split in ("val", "test")
        for name in BIAS_LABEL_METRICS
        if any(arm.metric_statistics(f"{split}/{name}") for arm in compared)
    ]
    splits = list(dict.fromkeys(name.split("/")[0] for name in names))
    if len(splits) > 1 and not _are_both_splits_shown(results):
        yield from _grids_with_notes(_group_grids_of_splits(results, "val"))
    by_sentence: dict[str, list[str]] = {}
    for split in splits:
        if cells := record.group_sample_counts.cells.get(split):
            told = group_names.groups_compared_by_gaps_sentence(cells, record.group_sample_counts.classes)
            by_sentence.setdefault(told, []).append(split)
    yield from (f"On {formatting.join_with_and(on)} {told}" for told, on in by_sentence.items())
    if any(sampling_standard_error(record, compared[-1], name) is not None for name in names):
        yield (
            f"The split's error is the standard error of the value of {compared[-1].label_in_sentence}, because the "
            "split is a sample: more seeds do not make it smaller. The lowest accuracy of several groups is, besides, "
            "too low on average, the more so the smaller they are."
        )
