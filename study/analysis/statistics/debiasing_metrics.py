"""The metrics that a study of debiasing is about, before its own: worst group, conflicting samples, gaps of groups."""

import math
from dataclasses import replace

from study.analysis.statistics import formatting
from study.home.record import StudyRecord
from study.metrics import is_share, printed
from study.metrics.worst_group import Counts, WorstGroup
from study.metrics.worst_group import worst_group as worst
from study.ranking import SeedStatistics
from study.ranking.difference import Side
from study.ranking.documents import Statement
from study.text import sentence_case


def counts(record: StudyRecord, side: Side, split: str) -> Counts | None:
    """Return how many samples of each group of a split are right, by the mean over a side's seeds.

    None where the sizes of groups are not known: without bias labels, of several data sets, or of very many groups.
    """
    cells = record.groups.cells.get(split)
    if not cells:
        return None

    def mean(name: str) -> float | None:
        found = side.spread(f"{split}/{name}")
        return found.mean if found else None

    return Counts.of(split, cells, mean)


def worst_group(record: StudyRecord, side: Side, split: str) -> WorstGroup | None:
    """Return which groups of a split a side serves worst; None where that is not known, or all are alike."""
    found = counts(record, side, split)
    return worst(found, record.groups.classes, record.groups.biases) if found else None


def sampling_error(record: StudyRecord, side: Side, name: str) -> float | None:
    """Return the standard error of a side's metric because its split is a sample, whatever the seeds do.

    It is what the trials reported with the metric, the mean over them. On the test split of older studies, which
    reported none, it is the binomial error of an accuracy whose samples are counted: of all, of aligned and of
    conflicting samples, and of the worst group where groups have metrics of their own; (right + 1) / (samples + 2)
    replaces an accuracy of 0 or 1. None where neither is known.
    """
    split, metric = name.split("/", 1)
    if reported := side.spread(f"{name}_standard_error"):
        return reported.mean
    value, count = side.spread(name), samples(record, side, split, metric)
    if value is None or not count:
        return None
    share = value.mean if 0 < value.mean < 1 else (value.mean * count + 1) / (count + 2)
    return math.sqrt(share * (1 - share) / count)


def with_error(record: StudyRecord, side: Side, name: str) -> SeedStatistics | None:
    """Return a side's metric over its seeds, with its `sampling_error`."""
    found = side.spread(name)
    return replace(found, split_error=sampling_error(record, side, name), is_share=is_share(name)) if found else None


def samples(record: StudyRecord, side: Side, split: str, metric: str) -> int | None:
    """Return how many samples of a split an accuracy is of; None where that is not known, and for other metrics."""
    cells = record.groups.cells.get(split)
    if not cells:
        return None
    total = sum(map(sum, cells))
    if metric == "accuracy":
        return total
    if metric in ("aligned_accuracy", "conflicting_accuracy") and len(cells) == len(cells[0]):
        aligned = sum(row[place] for place, row in enumerate(cells))
        return aligned if metric == "aligned_accuracy" else total - aligned
    if metric == "worst_group_accuracy":
        found = counts(record, side, split)
        known = found.known.values() if found else ()
        return min(known, key=lambda of: of[0] / of[1])[1] if known else None
    return None


class Guesses(Statement):
    """A result that is not told from guessing, nor from one that knows the bias alone.

    Attributes:
        metric: an `unbiased_accuracy`.
        interval: of the metric, with the split's error; None: not known.
        chance: what guessing has of it.
    """

    metric: str
    side: Side
    interval: tuple[float, float] | None
    chance: float

    def __str__(self) -> str:
        has = (
            f"{formatting.between(self.metric, self.interval)} (95% interval)"
            if self.interval
            else formatting.measured(self.side, self.metric)
        )
        return (
            f"{sentence_case(self.side.words)} is not told from guessing: {self.metric} is {has}, and guessing has "
            f"{printed(self.metric, self.chance)}, as has any model that knows the bias and nothing else."
        )


def guesses(record: StudyRecord, side: Side) -> Guesses | None:
    """Tell whether a side is no better than guessing by its unbiased accuracy; None where it is, or nothing tells.

    Of C classes guessing has 1/C in each (class, bias class) cell. So has, by the mean over all cells, any prediction
    that depends on the bias class alone. A side whose 95% interval is above that on the validation or the test split is
    better. Splits in which a cell is empty tell nothing.
    """
    found = []
    for split in ("val", "test"):
        cells, name = record.groups.cells.get(split), f"{split}/unbiased_accuracy"
        value = with_error(record, side, name) if cells and all(map(all, cells)) else None
        if not cells or value is None:
            continue
        ends, chance = value.interval(), 1 / len(cells)
        if (ends[0] if ends else value.mean) > chance:
            return None
        found.append(Guesses(name, side, ends, chance))
    return found[0] if found else None
