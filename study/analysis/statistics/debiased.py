"""The metrics that a study of debiasing is about, before its own: worst group, conflicting samples, gaps of groups."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from study.analysis.statistics.difference import Side
from study.home.record import StudyRecord
from study.metrics import GROUPS
from study.ranking import Spread


@dataclass(frozen=True)
class Group:
    """One group of a split: a class with a bias class.

    Attributes:
        name: in words.
        samples: None: not known.
    """

    name: str
    samples: int | None


def worst_group(record: StudyRecord, side: Side, split: str) -> Group | None:
    """The group with the smallest accuracy, by its mean over a side's seeds.

    None where the accuracies of the groups are no metrics of their own: a data set of many groups.
    """
    means = {cell: found.mean for name, cell in GROUPS.items() if (found := side.spread(f"{split}/{name}")) is not None}
    if not means:
        return None
    y, s = min(means, key=lambda cell: means[cell])
    groups = record.groups or {}
    names = (_named(groups.get("classes"), y, "class"), _named(groups.get("biases"), s, "bias class"))
    cells = groups.get(split)
    samples = cells[y][s] if cells and y < len(cells) and s < len(cells[y]) else None
    return Group(f"{names[0]} with {names[1]}", samples)


def sampling_error(record: StudyRecord, side: Side, name: str) -> float | None:
    """The standard error of a side's metric because its split is a sample, whatever the seeds do.

    What the trials reported with it, the mean over them. On the test split of older studies, which reported none, the
    binomial error of an accuracy whose samples are counted: that of all, of aligned and of conflicting samples, and of
    the worst group where groups have metrics of their own; with (right + 1) / (samples + 2) in the place of an accuracy
    of 0 or 1. None where neither is known.
    """
    split, metric = name.split("/", 1)
    if reported := side.spread(f"{name}_standard_error"):
        return reported.mean
    value, count = side.spread(name), samples(record, side, split, metric)
    if value is None or not count:
        return None
    share = value.mean if 0 < value.mean < 1 else (value.mean * count + 1) / (count + 2)
    return math.sqrt(share * (1 - share) / count)


def with_error(record: StudyRecord, side: Side, name: str) -> Spread | None:
    """A side's metric over its seeds, with that error."""
    found = side.spread(name)
    return replace(found, split_error=sampling_error(record, side, name)) if found else None


def group_range(record: StudyRecord, split: str) -> tuple[int, int, int] | None:
    """Return how many groups of a split have samples, and those of the smallest and the largest; None: not known."""
    sizes = [size for row in (record.groups or {}).get(split) or () for size in row if size]
    return (len(sizes), min(sizes), max(sizes)) if sizes else None


def samples(record: StudyRecord, side: Side, split: str, metric: str) -> int | None:
    """Of how many samples of a split an accuracy is; None where that is not known, and for other metrics."""
    cells: Sequence[Sequence[int]] | None = (record.groups or {}).get(split)
    if not cells:
        return None
    total = sum(map(sum, cells))
    if metric == "accuracy":
        return total
    if metric in ("aligned_accuracy", "conflicting_accuracy") and len(cells) == len(cells[0]):
        aligned = sum(row[place] for place, row in enumerate(cells))
        return aligned if metric == "aligned_accuracy" else total - aligned
    if metric == "worst_group_accuracy":
        group = worst_group(record, side, split)
        return group.samples if group else None
    return None


def _named(names: Sequence[str] | None, code: int, what: str) -> str:
    return names[code] if names and code < len(names) else f"{what} {code}"
