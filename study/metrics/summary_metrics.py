"""Which metrics a summary shows beside the study's own, and from how many samples on that of a group."""

from collections.abc import Collection, Mapping, Sequence

from study.metrics import add_accuracies_of_log_losses

SUMMARY_METRICS = ("accuracy", "aligned_accuracy", "conflicting_accuracy", "worst_group_accuracy", "equalized_odds")
"""Metrics that a summary shows beside the study's own: what a gain costs, and where."""

RARE_CLASS_SHARE = 0.5
"""Share of an equal part of the samples below which a class is rare: a summary shows the worst class then, too."""

MIN_SHOWN_GROUP_SAMPLES = 10
"""Samples of a group from which on its accuracy is shown in a summary: with 4 samples it is 0, 25, 50, 75 or 100%."""


def list_summary_metrics(
    study_metrics: Sequence[str], available: Collection[str], cells: Mapping[str, Sequence[Sequence[int]]]
) -> list[str]:
    """List the reported names that a summary shows.

    They are the study's own metrics on test, then on validation, a log loss with the accuracy of the same samples, then
    `SUMMARY_METRICS` on test, where that was read, else on validation; of classes of which one is rare the worst, too.

    Args:
        study_metrics: names of the study's metrics, as `val/accuracy`.
        available: the reported names that there are.
        cells: for each split that is known, how many samples each class has with each bias class.
    """
    split = "test" if any(name.startswith("test/") for name in available) else "val"
    classes = [sum(row) for row in cells.get(split) or ()] or [0]
    equal_part = sum(classes) / len(classes)
    is_one_rare = MIN_SHOWN_GROUP_SAMPLES <= min(classes) < RARE_CLASS_SHARE * equal_part
    sizes = [size for row in cells.get(split) or () for size in row if size]
    too_small = {"worst_group_accuracy"} if sizes and min(sizes) < MIN_SHOWN_GROUP_SAMPLES else set()
    names = [
        f"{where}/{name.split('/')[1]}"
        for name in add_accuracies_of_log_losses(study_metrics)
        for where in ("test", "val")
    ]
    names += [f"{split}/{name}" for name in SUMMARY_METRICS if name not in too_small]
    names += [f"{split}/worst_class_accuracy"] * is_one_rare
    return [name for name in dict.fromkeys(names) if name in available]
