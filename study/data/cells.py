"""Count samples by class and bias class in the splits of a data set, from labels alone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from study import data
from study.data.dataset import Dataset, Facts, GroupSizes, HasLabels
from study.data.folds import split_into_folds
from study.errors import UserError
from study.knobs import Section
from study.text import list_few_names, quoted


@dataclass(frozen=True)
class SplitCounts:
    """Counts of one split; None: there is no such thing.

    Attributes:
        unlabelled: samples without a class.
        classes: samples of each.
        cells: with bias labels, samples of each pair of class and bias class.
        smallest, largest: of the cells that are not empty.
        empty: how many cells are.
        aligned, conflicting: samples with the bias and against it, where a bias class is a class's own.
    """

    samples: int
    unlabelled: int
    classes: Sequence[int]
    cells: Sequence[Sequence[int]] | None = None
    smallest: int | None = None
    largest: int | None = None
    empty: int | None = None
    aligned: int | None = None
    conflicting: int | None = None


@dataclass(frozen=True)
class DatasetCounts:
    """The counts of a data set by split, with its names.

    Attributes:
        unknown: why nothing could be counted; None: it was.
        aligned_cells: for each class whether it goes with each bias class; None: no sample is aligned.
    """

    splits: Mapping[str, SplitCounts]
    unknown: str | None = None
    class_names: Sequence[str] | None = None
    bias_names: Sequence[str] | None = None
    aligned_cells: Sequence[Sequence[bool]] | None = None

    @classmethod
    def from_facts(cls, splits: Mapping[str, SplitCounts], facts: Facts, unknown: str | None = None) -> "DatasetCounts":
        """Return the counts of a data set with the names that its facts give."""
        return cls(splits, unknown, facts.class_names, facts.bias_names, facts.aligned_cells)


def aligned_pairs_text(section: Mapping[str, object], counts: DatasetCounts) -> str:
    """Say which bias classes of a user's own data go with which classes; empty where there is no bias."""
    classes, biases = counts.class_names or (), counts.bias_names or ()
    has_key = any(knob.key == "aligned" for knob in data.data_knobs(str(section["name"])))
    if counts.unknown or not has_key or len(biases) < 2:
        return ""
    own = counts.aligned_cells or []
    pairs = [f"{bias}={of}" for s, bias in enumerate(biases) for of, row in zip(classes, own, strict=False) if row[s]]
    if pairs:
        return f"agree with the bias (data.aligned): {list_few_names(pairs)}; all other samples conflict with it"
    return "no sample counts as agreeing or conflicting with the bias; data.aligned can name pairs of bias and class"


def warnings_from_counts(counts: DatasetCounts, *, has_folds: bool = False) -> list[str]:
    """Return sentences on what the splits lack by their counts.

    Empty for data without class names or counts.

    Args:
        has_folds: whether all samples outside test train and validate, in turn; whichever fold is counted here, the
            sentences are the same.
    """
    if counts.unknown or not counts.class_names:
        return []
    train, others = counts.splits["train"], {**counts.splits}
    del others["train"]
    if has_folds:
        train = _add_counts(train, others.pop("val"))
    found = [*_uninformative_bias_warnings(counts, train)]
    for name, split in others.items():
        found += _unseen_in_training_warnings(counts, train, name, split)
    return [*found, *(_single_sample_warnings(counts, train) if has_folds else ())]


def _add_counts(one: SplitCounts, other: SplitCounts) -> SplitCounts:
    """Return samples, classes and cells of two splits together."""
    classes = [sum(pair) for pair in zip(one.classes, other.classes, strict=True)]
    cells = None
    if one.cells is not None and other.cells is not None:
        cells = [[sum(pair) for pair in zip(*rows, strict=True)] for rows in zip(one.cells, other.cells, strict=True)]
    return SplitCounts(one.samples + other.samples, one.unlabelled + other.unlabelled, classes, cells)


def _single_sample_warnings(counts: DatasetCounts, pool: SplitCounts) -> Iterator[str]:
    """Yield the classes and groups of one sample outside test: no fold both trains on them and validates."""
    classes, biases = counts.class_names or (), counts.bias_names or ()
    of_classes = [y for y, count in enumerate(pool.classes) if count == 1]
    told = [f"class {quoted(classes[y])}" for y in of_classes]
    told += [
        f"class {quoted(classes[y])} with bias class {quoted(biases[s])}"
        for y, row in enumerate((pool.cells or ()) if biases else ())
        for s, count in enumerate(row)
        if count == 1 and y not in of_classes
    ]
    if told:
        yield (
            f"only 1 sample outside test of {list_few_names(told, MAX_NAMED_CELLS)}: the fold that validates on it "
            "trains on none, and the other folds tell nothing of such samples"
        )


def _uninformative_bias_warnings(counts: DatasetCounts, train: SplitCounts) -> Iterator[str]:
    """Yield why nothing can be told of the bias: it has one value, copies the class, or no training sample has one."""
    names, cells = counts.bias_names, train.cells
    if names and len(names) == 1:
        yield f"the bias is {quoted(names[0])} in every row: no group differs from another. Leave out data.bias"
    elif cells and not any(map(sum, cells)):
        yield "the bias is known for no training sample: nothing can be learned of it"
    elif all(split.conflicting == 0 for split in counts.splits.values()):
        yield "no sample goes against the bias: it cannot be told from the class. Name another column, or none"


MAX_NAMED_CELLS = 3
"""Largest number of cells that a sentence names."""


def _unseen_in_training_warnings(
    counts: DatasetCounts, train: SplitCounts, name: str, split: SplitCounts
) -> Iterator[str]:
    """Yield what a split has and training has not; of a class that is unseen its groups are not told again."""
    classes, biases = counts.class_names or (), counts.bias_names or ()
    unseen = [y for y, count in enumerate(split.classes) if count and not train.classes[y]]
    if unseen:
        told = [f"{quoted(classes[y])} ({split.classes[y]} in {name})" for y in unseen]
        yield (
            f"class {list_few_names(told)} has no training sample: it cannot be learned, and all of it counts as wrong"
        )
    if not biases or not split.cells or not train.cells or not any(map(sum, train.cells)):
        return
    pairs = [(y, s) for y in range(len(classes)) for s in range(len(biases)) if y not in unseen]
    groups = [
        f"class {quoted(classes[y])} with bias class {quoted(biases[s])} ({split.cells[y][s]} in {name})"
        for y, s in pairs
        if split.cells[y][s] and not train.cells[y][s]
    ]
    if groups:
        yield f"no training sample of {list_few_names(groups, MAX_NAMED_CELLS)}: nothing is learned of such samples"


def count_cells_of_dataset(section: Section) -> DatasetCounts:
    """Count the samples of each split of a `data` section by class and cell; no image is decoded."""
    facts = data.describe(section)
    unknown = partial(DatasetCounts.from_facts, {}, facts)
    if any(source.path_or_none() is None for source in data.sources(section)):
        return unknown(f"its files are not here, see study data prepare {section['name']}")
    try:
        labels = data.load_labels(section)
    except UserError as error:
        return unknown(str(error))
    if labels is None:
        return unknown("the data set does not tell its labels without its samples")
    splits = {name: count_cells_of_split(split, facts.facts_of_split(name)) for name, split in labels.items()}
    return DatasetCounts.from_facts(splits, facts)


def count_cells_of_split(labels: HasLabels, facts: Facts) -> SplitCounts:
    """Count the samples of one split by class and cell."""
    labelled = labels.target >= 0
    classes = np.bincount(labels.target[labelled], minlength=facts.classes).tolist()
    of_classes = len(labels.target), int((~labelled).sum()), classes
    if labels.bias is None or not facts.bias_classes:
        return SplitCounts(*of_classes)
    known = labelled & (labels.bias >= 0)
    codes = labels.target[known] * facts.bias_classes + labels.bias[known]
    cells = np.bincount(codes, minlength=facts.classes * facts.bias_classes)
    table, filled = cells.reshape(facts.classes, facts.bias_classes), cells[cells > 0].tolist()
    aligned = conflicting = None
    if (own := facts.aligned_cells) is not None:
        aligned = int(table[np.array(own)].sum())
        conflicting = int(cells.sum()) - aligned
    of_cells = min(filled, default=None), max(filled, default=None), len(cells) - len(filled)
    return SplitCounts(*of_classes, table.tolist(), *of_cells, aligned, conflicting)


MAX_STORED_GROUPS = 400
"""Number of cells of a data set whose sizes are kept: they tell how reliable a worst group's accuracy is."""


def group_sizes(datasets: Mapping[str, Dataset]) -> GroupSizes | None:
    """Return the size of each cell of a study's data set, with names where it has names.

    Returns:
        Without splits that have none; None without bias labels, for more than `MAX_STORED_GROUPS`, and for several data
        sets.
    """
    if len(datasets) != 1:
        return None
    (dataset,) = datasets.values()
    facts = dataset.facts
    if not facts.bias_classes or facts.classes * facts.bias_classes > MAX_STORED_GROUPS:
        return None

    def cell_sizes(name: str, samples: HasLabels) -> list[list[int]]:
        return [list(row) for row in count_cells_of_split(samples, facts.facts_of_split(name)).cells or ()]

    sizes: GroupSizes = {}
    if "val" in dataset.splits and (val := cell_sizes("val", dataset.splits["val"])):
        sizes["val"] = val
        if dataset.folds:
            sizes["val_by_fold"] = [cell_sizes("val", fold) for fold in split_into_folds(dataset.folds)]
    if "test" in dataset.splits and (test := cell_sizes("test", dataset.splits["test"])):
        sizes["test"] = test
    if not sizes:
        return None
    if facts.class_names:
        sizes["classes"] = list(facts.class_names)
    if facts.bias_names:
        sizes["biases"] = list(facts.bias_names)
    pairs = facts.aligned
    sizes["aligned"] = None if pairs is None else [list(own) if isinstance(own, tuple) else own for own in pairs]
    return sizes
