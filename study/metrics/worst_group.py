"""The group that a model serves worst: one statement, made from counts, wherever it is shown.

A group is a class with a bias class. Where each of those that conflict with the bias has too few samples, all of them
together come first: the others agree with the bias, which a biased model serves well. Then comes the worst of the
groups with enough samples. Those with fewer are named with their accuracies and as too small to judge. Standard library
only: a model in MLflow says it without SciPy.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from study.metrics.group_names import OptionalClassNames, group_in_words
from study.metrics.intervals import wilson_interval
from study.metrics.summary_metrics import MIN_SHOWN_GROUP_SAMPLES
from study.text import pluralise

ACCURACY_TOLERANCE = 1e-6
"""Difference of accuracies below which they count as equal."""


@dataclass(frozen=True)
class GroupCounts:
    """Right predictions of each group of a split.

    Attributes:
        split: its name.
        samples: of each class with each bias class; where `right` is empty, one row of the groups that have any.
        right: right predictions among these; a fraction where it is a mean over seeds or epochs; None: unknown. Empty
            where it is unknown for all groups.
        unknown: samples with a class whose bias is unknown; None: these are not counted.
        accuracy: over all samples with a class; None: unknown.
        lowest: the accuracy of the worst group, for where `right` does not show it.
        conflicting_sizes: samples of each group that conflicts with the bias and has any; empty where it is not known
            which do.
        conflicting_accuracy: over all of these; None: unknown.
    """

    split: str
    samples: Sequence[Sequence[int]]
    right: Sequence[Sequence[float | None]] = ()
    unknown: int | None = None
    accuracy: float | None = None
    lowest: float | None = None
    conflicting_sizes: Sequence[int] = ()
    conflicting_accuracy: float | None = None

    @classmethod
    def from_metrics(
        cls,
        split: str,
        samples: Sequence[Sequence[int]],
        value: Callable[[str], float | None],
        labelled: int | None = None,
        aligned_cells: Sequence[Sequence[bool]] | None = None,
    ) -> "GroupCounts":
        """Recover the counts from which a split's metrics were computed.

        Args:
            samples: of each class with each bias class.
            value: returns a metric of the split, by its name without the split; None where it has none.
            labelled: how many samples have a class; None: unknown.
            aligned_cells: for each class whether it goes with each bias class; None: unknown.
        """
        conflicting = conflicting_group_sizes(samples, aligned_cells)
        shares = [[value(f"group_{y}_{s}_accuracy") for s in range(len(row))] for y, row in enumerate(samples)]
        is_known = any(share is not None for row in shares for share in row)
        if not is_known:
            samples, shares = [[size for row in samples for size in row if size]], []
        right = [
            [None if share is None else share * size for share, size in zip(*rows, strict=True)]
            for rows in zip(shares, samples if shares else (), strict=True)
        ]
        unknown = None if labelled is None else labelled - sum(map(sum, samples))
        whole, worst, against = (value(f"{name}accuracy") for name in ("", "worst_group_", "conflicting_"))
        return cls(split, samples, right, unknown, whole, worst, conflicting, against)

    @property
    def by_cell(self) -> dict[tuple[int, int], tuple[float, int]]:
        """Numbers of right samples and of all samples by (class, bias class), where they are known."""
        return {
            (y, s): (right, size)
            for y, (row, sizes) in enumerate(zip(self.right, self.samples, strict=False))
            for s, (right, size) in enumerate(zip(row, sizes, strict=True))
            if right is not None and size
        }


def conflicting_group_sizes(
    samples: Sequence[Sequence[int]], aligned_cells: Sequence[Sequence[bool]] | None
) -> list[int]:
    """Return the samples of each group that conflicts with the bias and has any; empty where that is not known.

    Args:
        samples: of each class with each bias class.
        aligned_cells: for each class whether it goes with each bias class; None: unknown.
    """
    rows = zip(samples, aligned_cells or [], strict=False)
    return [size for sizes, of in rows for size, is_aligned in zip(sizes, of, strict=True) if size and not is_aligned]


@dataclass(frozen=True)
class GroupAccuracy:
    """A group with samples: its name in words, how many of its samples are right, on average, and how many it has.

    Attributes:
        mean_over: of what `right` is the mean.
    """

    name: str
    right: float
    samples: int
    mean_over: str = "the seeds"

    @property
    def share(self) -> float:
        """Share of right predictions."""
        return self.right / self.samples

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95% interval of the accuracy, given this share."""
        return wilson_interval(self.share, self.samples)

    @property
    def is_small(self) -> bool:
        """Whether it has too few samples to judge its accuracy."""
        return self.samples < MIN_SHOWN_GROUP_SAMPLES

    @property
    def counts_in_words(self) -> str:
        """The counts and interval in words: `0 of 8 right (0% to 32%)`."""
        whole = abs(self.right - round(self.right)) < ACCURACY_TOLERANCE
        right = f"{round(self.right)}" if whole else f"on average over {self.mean_over} {self.right:.1f}"
        low, high = self.interval
        return f"{right} of {self.samples} right ({low:.0%} to {high:.0%})"

    def to_document(self) -> dict[str, Any]:
        """Convert it to plain values."""
        return {"group": self.name, "right": self.right, "samples": self.samples, "interval": list(self.interval)}


@dataclass(frozen=True)
class WorstGroup:
    """What there is to say of the groups of a split.

    Attributes:
        split: its name.
        group_sizes: samples of each group that has any, ascending.
        worst: the groups with the lowest accuracy, the largest first; empty where all are alike or it is unknown which.
        lowest_accuracy: theirs; None where all are alike.
        too_small: groups of fewer than `MIN_SHOWN_GROUP_SAMPLES` samples, the lowest accuracy first; only where known.
        worst_of_large: where all of `worst` have too few samples, the worst of the groups with enough, the largest
            first.
        empty_groups: names of the groups without a sample.
        n_unknown_bias: samples whose bias is unknown.
        accuracy: over all samples.
        n_conflicting_groups, all_conflicting: where each group that conflicts with the bias has fewer than
            `MIN_SHOWN_GROUP_SAMPLES` samples, how many such groups there are, and all of them as one; 0 and None:
            another one is larger, or it is not known which conflict.
    """

    split: str
    group_sizes: tuple[int, ...]
    worst: tuple[GroupAccuracy, ...]
    lowest_accuracy: float | None
    too_small: tuple[GroupAccuracy, ...] = ()
    worst_of_large: tuple[GroupAccuracy, ...] = ()
    empty_groups: tuple[str, ...] = ()
    n_unknown_bias: int | None = None
    accuracy: float | None = None
    n_conflicting_groups: int = 0
    all_conflicting: GroupAccuracy | None = None

    def sentences(self, model: str = "the model") -> list[str]:
        """Say it in words, in at least one sentence.

        Args:
            model: whose predictions these are.
        """
        found = [*self._conflicting_sentences(), *self._lowest_sentences(model)]
        found += [] if self._is_judged_as_one else self._too_small_sentences()
        if self.empty_groups:
            found.append(f"no sample on {self.split} is of {_join_first_names(self.empty_groups, MAX_NAMED_GROUPS)}")
        if self.n_unknown_bias:
            verb = "is" if self.n_unknown_bias == 1 else "are"
            found.append(f"{pluralise(self.n_unknown_bias, 'sample')} of unknown bias {verb} in no group")
        if self.worst or self.too_small or self.all_conflicting:
            found.append("in brackets are Wilson's 95% intervals")
        return [f"{text[0].upper()}{text[1:]}." for text in found]

    def short_sentences(self, model: str = "the model") -> list[str]:
        """Say it where a table of all groups is beside it: no small and no absent group by its name."""
        few = sum(size < MIN_SHOWN_GROUP_SAMPLES for size in self.group_sizes)
        lowest = list(self._lowest_sentences(model))
        if not lowest and self.accuracy is not None:
            lowest = [f"on {self.split} {model} has {self.accuracy:.1%} right in each group"]
        found = [*self._conflicting_sentences(), *lowest]
        if few > self.n_conflicting_groups and not self._is_judged_as_one:
            small = f"fewer than {MIN_SHOWN_GROUP_SAMPLES} samples, too few to judge"
            found.append(f"{few} of {len(self.group_sizes)} groups {'has' if few == 1 else 'have'} {small}")
        if self.empty_groups:
            found.append(f"groups without a sample: {len(self.empty_groups)}")
        if "right (" in " ".join(found):
            found.append("in brackets is Wilson's 95% interval")
        return [f"{text[0].upper()}{text[1:]}." for text in found]

    def first_sentence(self) -> str:
        """Say the first of it in one sentence, with one group by its name."""
        lowest = self._lowest_sentences("the model", 1)
        first = [*self._conflicting_sentences(), *lowest, *self._too_small_sentences(1)][0]
        return f"{first[0].upper()}{first[1:]}. The model card says more."

    @property
    def _is_judged_as_one(self) -> bool:
        """Whether no group is large enough, none is known by itself, and those that conflict are known as one."""
        is_any_known = bool(self.worst or self.too_small)
        return self.all_conflicting is not None and max(self.group_sizes) < MIN_SHOWN_GROUP_SAMPLES and not is_any_known

    def _conflicting_sentences(self) -> Iterator[str]:
        """Yield how many are right of all groups that conflict with the bias, where each has too few samples."""
        if self.all_conflicting and self._is_judged_as_one:
            few = f"none of the {len(self.group_sizes)} groups has {MIN_SHOWN_GROUP_SAMPLES} samples or more, "
            over = "" if self.accuracy is None else f"; over all {self.accuracy:.1%} are right"
            of = f"of the samples that conflict with the bias {self.all_conflicting.counts_in_words}"
            yield f"on {self.split} {few}too few to judge one by one: {of}{over}"
        elif self.all_conflicting:
            groups = f"each of the {self.n_conflicting_groups} groups that conflict"
            groups = "the one group that conflicts" if self.n_conflicting_groups == 1 else groups
            few = f"has fewer than {MIN_SHOWN_GROUP_SAMPLES} samples, too few to judge"
            together = "" if self.n_conflicting_groups == 1 else "together "
            yield f"on {self.split} {groups} with the bias {few}: {together}{self.all_conflicting.counts_in_words}"

    def _lowest_sentences(self, model: str, most: int | None = None) -> Iterator[str]:
        """Yield which group is served worst, of those with enough samples where there are any.

        Args:
            most: how many groups are named.
        """
        if self.lowest_accuracy is None or self._is_judged_as_one:
            return
        over = "" if self.accuracy is None else f", over all {self.accuracy:.1%}"
        sizes, enough = self.group_sizes, f"{MIN_SHOWN_GROUP_SAMPLES} samples or more"
        n_enough, worst = sum(size >= MIN_SHOWN_GROUP_SAMPLES for size in sizes), self.worst_of_large or self.worst
        agree = ", which all agree with the bias" if self.all_conflicting else ""
        if not n_enough:
            over = "" if self.accuracy is None else f"; over all {self.accuracy:.1%} are right"
            few = f"none of the {len(sizes)} groups has {enough}: too few to judge which {model} serves worst"
            yield f"on {self.split} {few}{over}"
        elif not worst:
            groups = f"of {len(sizes)} groups of class and bias class, of {sizes[0]} to {sizes[-1]} samples"
            yield f"on {self.split}, in the worst {groups}, {model} has {self.lowest_accuracy:.1%} right{over}"
        elif self.worst_of_large and n_enough == 1:
            yield f"on {self.split} only {worst[0].name} has {enough}: {worst[0].counts_in_words}{over}"
        elif len(self.worst_of_large) == n_enough:
            alike = f"alike the {n_enough} groups with {enough}{agree}"
            yield f"on {self.split} {model} serves {alike}: {worst[0].share:.1%} right in each{over}"
        else:
            of = f"of the {n_enough} groups with {enough}{agree}" if self.worst_of_large else f"of {len(sizes)} groups"
            named = [f"{group.name}, {group.counts_in_words}" for group in worst]
            which = f"{worst[0].name} worst {of}: {worst[0].counts_in_words}"
            several = f"these worst {of}: {_join_first_names(named, most or _max_named_groups(worst))}"
            yield f"on {self.split} {model} serves {which if len(worst) == 1 else several}{over}"

    def _too_small_sentences(self, most: int | None = None) -> Iterator[str]:
        few = sum(size < MIN_SHOWN_GROUP_SAMPLES for size in self.group_sizes)
        if not few:
            return
        is_lowest = bool(self.worst) and all(group.is_small for group in self.worst)
        small = [group for group in self.worst if group.is_small]
        named = [f"{group.name}, {group.counts_in_words}" if is_lowest else group.name for group in small]
        named += [f"{group.name}, {group.counts_in_words}" for group in self.too_small]
        lowest = f"; the lowest accuracy, {self.lowest_accuracy:.1%}, is theirs" if self.worst_of_large else ""
        which = f" ({few} of {len(self.group_sizes)})"
        if named:
            which = f": {_join_first_names(named, most or _max_named_groups(small))}"
        yield f"groups of fewer than {MIN_SHOWN_GROUP_SAMPLES} samples are too small to judge{lowest}{which}"

    def to_document(self) -> dict[str, Any]:
        """Convert it to plain values."""
        groups = {name: [group.to_document() for group in getattr(self, name)] for name in ("worst", "too_small")}
        return {"split": self.split, "lowest": self.lowest_accuracy, **groups, "absent": list(self.empty_groups)}


MAX_NAMED_GROUPS, MAX_NAMED_GROUPS_IF_NONE_RIGHT = 4, 8
"""Largest number of groups that a sentence names; and how many it names where no sample is right in any of them."""


def _max_named_groups(groups: Sequence[GroupAccuracy]) -> int:
    """Return how many groups a sentence names: more where these, which come first, are few and no sample is right."""
    are_few = MAX_NAMED_GROUPS < len(groups) <= MAX_NAMED_GROUPS_IF_NONE_RIGHT
    return MAX_NAMED_GROUPS_IF_NONE_RIGHT if are_few and not groups[0].right else MAX_NAMED_GROUPS


def find_worst_group(
    counts: GroupCounts, classes: OptionalClassNames, biases: OptionalClassNames, mean_over: str = "the seeds"
) -> WorstGroup | None:
    """Find which groups are served worst, and which are too small to judge.

    Args:
        classes, biases: names in the order of their numbers.
        mean_over: of what the counts are means.

    Returns:
        None where there is nothing to say: no group has samples, or all have enough and the same accuracy.
    """
    samples = {(y, s): size for y, row in enumerate(counts.samples) for s, size in enumerate(row)}
    sizes = tuple(sorted(size for size in samples.values() if size))
    known = [
        GroupAccuracy(group_in_words(*cell, classes, biases), *of, mean_over) for cell, of in counts.by_cell.items()
    ]
    known.sort(key=lambda group: (round(group.share, 9), -group.samples))
    lowest, highest = (known[0].share, known[-1].share) if known else (counts.lowest, counts.accuracy)
    if not sizes or lowest is None:
        return None
    is_alike = highest is not None and highest - lowest < ACCURACY_TOLERANCE
    if is_alike and sizes[0] >= MIN_SHOWN_GROUP_SAMPLES:
        return None
    worst = () if is_alike else tuple(group for group in known if group.share - known[0].share < ACCURACY_TOLERANCE)
    enough = [group for group in known if not group.is_small]
    is_small = bool(worst) and all(group.is_small for group in worst)
    against, right = counts.conflicting_sizes, counts.conflicting_accuracy
    are_small = right is not None and bool(against) and max(against) < MIN_SHOWN_GROUP_SAMPLES
    together = None
    if right is not None and are_small:
        together = GroupAccuracy("conflicting", right * sum(against), sum(against), mean_over)
    return WorstGroup(
        counts.split,
        sizes,
        worst,
        None if is_alike else lowest,
        tuple(group for group in known if group.is_small and group not in worst),
        tuple(group for group in enough if group.share - enough[0].share < ACCURACY_TOLERANCE) if is_small else (),
        tuple(group_in_words(*cell, classes, biases) for cell, size in samples.items() if not size),
        counts.unknown,
        counts.accuracy,
        len(against) * are_small,
        together,
    )


def _join_first_names(names: Sequence[str], most: int) -> str:
    """Join the first names, and say how many more there are."""
    more = [f"and {len(names) - most} more"] if len(names) > most else []
    return "; ".join([*names[:most], *more])
